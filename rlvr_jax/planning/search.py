"""Meshes, micro-batches and remat policies that fit, the fastest first."""

import dataclasses
from collections.abc import Iterator

from jax.sharding import AbstractMesh

from rlvr_jax.config import Config, RolloutConfig
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import AXES, rows_divide
from rlvr_jax.planning.chips import Topology
from rlvr_jax.planning.pod_plan import (
    PodPlan,
    check_positions,
    plan_pod,
    planned_architecture,
)
from rlvr_jax.planning.work import work_of

MARGIN = 0.9
"""Share of a device's memory that an estimate may take: compiled programs differ."""


def search(
    config: Config, topology: Topology, *, layers: int | None = None, compiles: int = 3
) -> list[PodPlan]:
    """Plans that fit, the fastest first by the estimate of time.

    Every candidate is estimated; only the best are compiled, one after the other,
    until one fits or the bound is reached. Each samples on the mesh that it trains on.

    Args:
      config: where the search starts; mesh.shape, batch.micro_batch_size,
        rollout.prompts_at_once (or rollout.slots) and model.remat are varied.
      topology: the chips.
      layers: as `plan_pod`.
      compiles: most candidates that are compiled; 0 for estimates alone.

    Returns:
      the plans that fit, a compiled one first; estimates alone where none of those that
      were compiled did; empty if none fits.

    Raises:
      ConfigError: there is no model to plan for, or it has too few positions.
    """
    # What no candidate could mend is said once, and not taken for a mesh that does not
    # fit the batch.
    architecture = planned_architecture(config, layers)
    check_positions(work_of(config, architecture))
    estimates = []
    for candidate in candidates(config, topology.devices):
        try:
            plan = plan_pod(candidate, topology, layers=layers, compile_programs=False)
        except UserError:  # a batch that does not divide over this mesh
            continue
        room = MARGIN * topology.hbm_gib_per_device
        if plan.mesh_shape[2] > plan.architecture.num_kv_heads:
            continue  # a head of the cache is the least that a device can hold
        if max(plan.hbm_gib(name) for name in plan.parts) <= room:
            estimates.append(plan)
    # Among equals the larger micro-batch waits less often for others.
    estimates.sort(key=lambda plan: (plan.time.total_s, -_micro(plan)))
    for number in range(min(compiles, len(estimates))):
        found = plan_pod(estimates[number].config, topology, layers=layers)
        if found.fits:
            return [found, *estimates[number + 1 :]]
    return estimates[compiles:]


def candidates(config: Config, devices: int) -> Iterator[Config]:
    """Settings to try, all valid for the batch of `config`."""
    prompts, generations = config.batch.prompts_per_step, config.rollout.num_generations
    minibatch = prompts // config.batch.minibatches_per_step
    for tensor in _powers(min(devices, 16)):
        rows = devices // tensor
        for fsdp in _powers(rows):
            shape = (rows // fsdp, fsdp, tensor)
            mesh = AbstractMesh(shape, AXES)
            for micro in _micros(minibatch, generations, mesh):
                for rollout in _rollouts(config, mesh):
                    for remat in ("layer", "dots", "none", "groups"):
                        yield _changed(config, shape, micro, rollout, remat)


def _rollouts(config: Config, mesh: AbstractMesh) -> Iterator[RolloutConfig]:
    """Completions at the same time: of whole prompts, or in slots."""
    rollout, prompts = config.rollout, config.batch.prompts_per_step
    if rollout.engine == "slots":
        slots = min(rollout.slots, prompts * rollout.num_generations)
        for n in range(slots.bit_length()):
            yield dataclasses.replace(rollout, slots=slots >> n)
        return
    for at_once in _powers(prompts):
        if rows_divide(mesh, (at_once, rollout.num_generations)):
            yield dataclasses.replace(rollout, prompts_at_once=at_once)


def _powers(limit: int) -> list[int]:
    return [2**n for n in range(limit.bit_length()) if limit % 2**n == 0]


def _micros(minibatch: int, generations: int, mesh: AbstractMesh) -> list[int]:
    """Parts of a group, then whole groups; each device has a whole number of rows."""
    parts = [(1, n) for n in range(1, generations) if generations % n == 0]
    groups = [(n, generations) for n in range(1, minibatch + 1) if minibatch % n == 0]
    return [p * g for p, g in parts + groups if rows_divide(mesh, (p, g))]


def _changed(config: Config, shape, micro: int, rollout, remat: str) -> Config:
    replace = dataclasses.replace
    return replace(
        config,
        mesh=replace(config.mesh, shape=shape, rollout_shape=()),
        batch=replace(config.batch, micro_batch_size=micro),
        rollout=rollout,
        model=replace(config.model, remat=remat),
    )


def _micro(plan: PodPlan) -> int:
    return plan.work.micro[0] * plan.work.micro[1]
