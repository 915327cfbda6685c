"""A reward model that scores another model's completions, to choose among them."""

import os
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Float

from rlvr_jax.config import Config
from rlvr_jax.core.process import solution_scores
from rlvr_jax.data.tokenizer import Tokenizer, load_tokenizer, stop_ids
from rlvr_jax.models.reward_model import RewardModelDirectory
from rlvr_jax.train.evaluation import Batch
from rlvr_jax.train.policy import load_value_model
from rlvr_jax.train.reward_model import judged_batch, place_scores, scores_of
from rlvr_jax.train.step_labels import steps_of


class Reranker(NamedTuple):
    """A reward model, ready to score."""

    graphdef: nnx.GraphDef
    parameters: dict[str, Any]
    tokenizer: Tokenizer
    end_ids: tuple[int, ...]
    aggregation: str
    """How scores of steps become one; "" for the score after the last token."""


def load_reranker(
    path: str | os.PathLike[str], config: Config, mesh: Mesh, *, steps: str = ""
) -> Reranker:
    """Loads a reward model of any architecture that a decoder here can have.

    Args:
      path: a directory of `launch.reward_model` or of transformers (one label).
      config: how it is computed (model.*), and what ends a completion.
      mesh: where its parameters go.
      steps: of a process reward model, how the chances of its steps become one score:
        min, product, last or mean.

    Raises:
      UserError: no reward model there.
    """
    place = pathlib.Path(path).expanduser()
    directory = RewardModelDirectory(place)
    directory.close()
    graphdef, parameters = load_value_model(place, config, directory.architecture, mesh)
    tokenizer = load_tokenizer(str(place))
    ends = stop_ids(tokenizer, config.rollout.stop)
    return Reranker(graphdef, parameters, tokenizer, ends, steps)


def batch_scores(reranker: Reranker, batch: Batch) -> Float[np.ndarray, "P G"]:
    """The score of each completion of the problems that count."""
    data = judged_batch(batch)
    rows = (reranker.graphdef, reranker.parameters, data, len(data.rewards))
    if not reranker.aggregation:
        found = scores_of(*rows)
    else:
        steps = steps_of(data, reranker.tokenizer, reranker.end_ids)
        at_ends = np.take_along_axis(place_scores(*rows), steps.ends, axis=1)
        found = solution_scores(
            jax.nn.sigmoid(jnp.asarray(at_ends)),
            jnp.asarray(steps.mask),
            aggregation=reranker.aggregation,
        )
    return np.asarray(found, np.float32).reshape(-1, batch.lengths.shape[1])
