"""A policy to look at: from a run's checkpoint, an exported model or any other.

A model is a Hugging Face directory, a .gguf file, or a run folder: its newest
checkpoint, with the run's own prompts, verifier and limits.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from flax import nnx
from jax.sharding import Mesh

from rlvr_jax import config as config_lib
from rlvr_jax.config import Config, ModelConfig
from rlvr_jax.data.problems import load_problems, verifier_of
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.sources import read_source, split_sources
from rlvr_jax.data.tokenizer import Tokenizer, load_tokenizer
from rlvr_jax.errors import UserError
from rlvr_jax.train.checkpoint import Checkpoints
from rlvr_jax.train.policy import architecture_of, make_decoder
from rlvr_jax.train.sampler_plan import weights_program
from rlvr_jax.validate import validate


class Model(NamedTuple):
    """A policy that can be sampled from."""

    tokenizer: Tokenizer
    graphdef: nnx.GraphDef
    parameters: nnx.State
    origin: str
    """Where the parameters come from, in words."""


def settings_of(target: pathlib.Path, changes: Mapping[str, Any]) -> Config:
    """The settings to evaluate a model with: those of its run, or the defaults.

    Args:
      target: a run folder, a folder in one (as run_dir/model), a model directory or a
        .gguf file.
      changes: dotted settings to change, as {"evaluation.temperature": 0.6}.

    Raises:
      UserError: the folder is neither, or the run's settings cannot be read.
      FileNotFoundError: there is nothing at the path.
    """
    if not target.exists():
        raise FileNotFoundError(f"there is no model or run at {target}")
    config = _run_settings(target)
    if config is None and target.parent != target:
        config = _run_settings(target.parent)
        if config is not None:
            config.model = ModelConfig(path=str(target), dtype=config.model.dtype)
    if config is None:
        if target.is_dir() and not (target / "config.json").is_file():
            raise UserError(
                f"{target} is neither a run folder nor a model directory: it has no "
                "config.json"
            )
        config = Config()
        config.model.path = str(target)
    for name, value in changes.items():
        *path, last = name.split(".")
        section = functools.reduce(getattr, path, config)
        setattr(section, last, value)
    return config


def training_problems(
    target: pathlib.Path,
    *,
    data: str | None,
    prompts: int | None,
    num_generations: int,
    temperature: float,
    seed: int | None,
) -> tuple[Config, list[Problem]]:
    """A model's settings, changed and checked, and training problems to sample it on.

    Args:
      target: as for `settings_of`.
      data: a source as of data.train; None: the run's.
      prompts: only the first so many problems; None: all.
      num_generations: completions of each.
      temperature: of sampling them.
      seed: None: the run's.

    Raises:
      UserError: as `settings_of`; the settings cannot run, or the data not be read.
      FileNotFoundError: there is nothing at the path.
    """
    changes = {
        "evaluation.num_generations": num_generations,
        "evaluation.temperature": temperature,
        # Not read here, but at 0 the two above would be refused.
        "evaluation.prompts": prompts or 1,
        "data.train": data,
        "seed": seed,
    }
    config = settings_of(target, {n: v for n, v in changes.items() if v is not None})
    validate(config)
    problems = load_problems(
        config.data,
        split="train",
        default_verifier=config.reward.verifier,
        seed=config.seed,
    )
    return config, problems[:prompts]


def problems_of(config: Config, data: str) -> list[Problem]:
    """The problems of a source, or the held-out ones of a run where `data` is "".

    Of a source that has a test part, that part; else all of it.

    Raises:
      UserError, FileNotFoundError: as `load_problems`.
    """
    if not data:
        return load_problems(
            config.data,
            split="evaluation",
            default_verifier=config.reward.verifier,
            seed=config.seed,
        )
    found = []
    for source in split_sources(data):
        part = read_source(source, config.data, config.seed)
        found += part.test or part.problems
    return [
        dataclasses.replace(p, verifier=verifier_of(p, config.reward.verifier))
        for p in found
    ]


def load_model(
    config: Config, target: pathlib.Path, mesh: Mesh, step: int | None = None
) -> Model:
    """Tokenizer and parameters; of a run folder those of its newest checkpoint.

    Args:
      config: of `settings_of`.
      target: as there.
      mesh: where the parameters go, that of sampling.
      step: another checkpoint that a run folder still has.

    Raises:
      UserError: no readable model, a run without a checkpoint, or a step of what is no
        run.
    """
    is_run = _run_settings(target) is not None
    if step is not None and not is_run:
        raise UserError(
            f"{target} is a model and has no step {step}: give a run folder"
        )
    folder = target / "checkpoints"
    tokenizer = load_tokenizer(config.model.path)
    architecture = architecture_of(config.model, tokenizer.vocab_size)
    graphdef, parameters = make_decoder(config, architecture, mesh)
    origin = str(target)
    if is_run:
        checkpoints = Checkpoints(folder, config.checkpoint)
        try:
            parameters, step = checkpoints.restore_parameters(parameters, step)
        finally:
            checkpoints.close()
        origin = f"{target}, step {step}"
    weights = weights_program(parameters, config.model.dtype, mesh, mesh)
    return Model(tokenizer, graphdef, weights(parameters), origin)


def _run_settings(folder: pathlib.Path) -> Config | None:
    """The settings of a run folder; None where it is none."""
    path = folder / "config.json"
    if not path.is_file():
        return None
    saved = json.loads(path.read_text(encoding="utf8"))
    # A model's config.json has a model_type and knows of no run_dir.
    return config_lib.from_dict(saved) if "run_dir" in saved else None
