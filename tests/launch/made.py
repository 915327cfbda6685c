"""A run folder without a run."""

import pathlib
from typing import Any

import jax
from flax import nnx

from rlvr_jax import config as config_lib
from rlvr_jax.config import CheckpointConfig
from rlvr_jax.data.tokenizer import load_tokenizer
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.weights import save_decoder
from rlvr_jax.train.checkpoint import Checkpoints
from rlvr_jax.train.policy import architecture_of, make_decoder, new_state
from tests import tiny
from tests.end_to_end import tiny_recipe


def made_run(folder: pathlib.Path) -> tuple[nnx.GraphDef, Any]:
    """A run as it stands after a checkpoint: settings, state, exported model."""
    config = tiny_recipe.get_config()
    config.run_dir = str(folder)
    config_lib.save(config, folder / "config.json")
    tokenizer = load_tokenizer("")
    mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    graphdef, parameters = make_decoder(
        config, architecture_of(config.model, tokenizer.vocab_size), mesh
    )
    plan = tiny.plan(graphdef)
    checkpoints = Checkpoints(folder / "checkpoints", CheckpointConfig(keep=1))
    checkpoints.save(new_state(parameters, plan), 3, {"before": None})
    checkpoints.close()
    tokenizer.save(folder / "model")
    save_decoder(nnx.merge(graphdef, parameters), folder / "model", source=None)
    return graphdef, parameters
