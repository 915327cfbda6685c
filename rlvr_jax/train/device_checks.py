"""Whether the devices and processes of a run can do what its settings ask for."""

import jax
from jax.sharding import AbstractMesh, Mesh

from rlvr_jax.config import Config
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import ROLLOUT_SHAPE, SHAPE, row_spec
from rlvr_jax.train.micro_batches import micro_batch_shape
from rlvr_jax.validate import ConfigError


def check_processes(config: Config) -> None:
    """What one process has to itself: ways to sample in which the host decides, and
    bundles, which hold whole arrays.

    Raises:
      ConfigError: there are several.
    """
    if jax.process_count() == 1:
        return
    for name, value, off in (
        ("rollout.engine", config.rollout.engine, "batch"),
        ("rollout.staleness", config.rollout.staleness, 0),
        ("reward.execution", config.reward.execution, "pool"),
        ("replay.save_every", config.replay.save_every, 0),
    ):
        if value != off:
            raise ConfigError(
                f"{name}={value!r} works in a single process so far, and this run has "
                f"{jax.process_count()}: set {name}={off!r}."
            )


def check_row_devices(
    config: Config, mesh: Mesh | AbstractMesh, rollout_mesh: Mesh | AbstractMesh
) -> None:
    """Batches and micro-batches divide over the row devices, or it says so now.

    Args:
      config: of the run.
      mesh: of training, which micro-batches are split over.
      rollout_mesh: of sampling, which all that is sampled is split over.

    Raises:
      ConfigError: one does not; names the mesh's setting.
    """
    batch, generations = config.batch, config.rollout.num_generations
    minibatch = batch.prompts_per_step // batch.minibatches_per_step
    whole = {"a rollout batch": (batch.prompts_per_step, generations)}
    learned = whole | {
        "a micro-batch": micro_batch_shape(
            minibatch, generations, batch.micro_batch_size
        )
    }
    sampled = dict(whole)
    if config.rollout.prompts_at_once:
        sampled["rollout.prompts_at_once"] = (
            config.rollout.prompts_at_once,
            generations,
        )
    if config.evaluation.prompts:
        sampled["an evaluation batch"] = (
            batch.prompts_per_step,
            config.evaluation.num_generations,
        )
    if config.objective.advantage == "remax":
        sampled["the greedy answers of objective.advantage='remax'"] = (
            batch.prompts_per_step,
            1,
        )
    if config.warmup.steps:
        learned["warmup.batch_size"] = (config.warmup.batch_size, 1)
    apart = SHAPE if rollout_mesh == mesh else ROLLOUT_SHAPE
    for setting, devices, shapes in (
        (SHAPE, mesh, learned),
        (apart, rollout_mesh, sampled),
    ):
        for name, shape in shapes.items():
            try:
                row_spec(devices, shape, setting=setting)
            except UserError as error:
                raise ConfigError(f"mesh: {name}: {error}") from error
