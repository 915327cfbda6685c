"""The plan of a recipe on a topology: what fits, what it takes, what to change."""

import contextlib
import dataclasses
import importlib.util
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from rlvr_jax.config import Config
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import AXES, ROLLOUT_SHAPE, filled_shape
from rlvr_jax.mesh.sharding import check_heads, parameter_spec
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import parameter_shapes
from rlvr_jax.models.known import KNOWN
from rlvr_jax.models.weights import open_checkpoint
from rlvr_jax.planning import exchange, memory, programs
from rlvr_jax.planning.abstract_run import abstract_run
from rlvr_jax.planning.chips import Topology
from rlvr_jax.planning.exchange import Held, Sent
from rlvr_jax.planning.flops import StepFlops, step_flops
from rlvr_jax.planning.timing import StepTime, step_time
from rlvr_jax.planning.work import Work, work_of
from rlvr_jax.train.device_checks import check_row_devices
from rlvr_jax.train.policy import new_architecture
from rlvr_jax.validate import ConfigError

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Row:
    """One parameter of the table of shardings."""

    name: str
    shape: tuple[int, ...]
    spec: str
    bytes_per_device: int
    """As a float32 master weight."""
    sampled_spec: str
    sampled_bytes: int
    """In the type of the sampler, split as it samples."""


@dataclasses.dataclass(frozen=True)
class PodPlan:
    """What was found out."""

    config: Config
    architecture: Architecture
    topology: Topology
    mesh_shape: tuple[int, int, int]
    rollout_shape: tuple[int, int, int]
    """Of sampling; often the same."""
    work: Work
    sampled: Work
    """The same step where it is sampled: which kernels apply may differ."""
    flops: StepFlops
    time: StepTime
    parts: dict[str, memory.Parts]
    """Estimates: program -> name -> bytes of one device."""
    sent: dict[str, list[Sent]]
    """Estimates between devices: "prefill", "decode" and "update"."""
    compiled: dict[str, programs.Compiled]
    """By program; empty where nothing was compiled."""
    resident_bytes: dict[str, float]
    """Of one device, beside what a program says of itself."""
    rows: list[Row]

    def hbm_gib(self, program: str) -> float:
        """Peak of one device: as compiled, or as estimated."""
        found = self.compiled.get(program)
        if found is None or (found.refusal and not found.hbm_bytes):
            return sum(self.parts[program].values()) / GIB
        return (found.hbm_bytes + self.resident_bytes[program]) / GIB

    @property
    def fits(self) -> bool:
        """Every program within the memory of a device, and none refused."""
        refused = any(found.refusal for found in self.compiled.values())
        room = self.topology.hbm_gib_per_device
        return not refused and all(self.hbm_gib(p) <= room for p in programs.NAMES)

    @property
    def host_gib(self) -> float:
        """Of all hosts while a checkpoint is saved: one copy of the training state.

        Devices along "data" hold the same; one of them writes it.
        """
        state, replicas = self.resident_bytes["decode"], self.mesh_shape[0]
        return state * self.topology.devices / replicas / GIB


def planned_architecture(config: Config, layers: int | None = None) -> Architecture:
    """Of the model at `model.path` if it is there, else of `model.architecture`.

    Args:
      config: the recipe.
      layers: plan for so many layers in place of the model's own.

    Raises:
      ConfigError: neither is there, or sizes of a new model do not fit together.
    """
    model = config.model
    if model.architecture:
        found = KNOWN[model.architecture]
    elif model.path:
        try:
            with contextlib.closing(open_checkpoint(model.path)) as checkpoint:
                found = checkpoint.architecture
        except UserError as error:
            raise ConfigError(
                f"plan: {error}\nWithout the files, name one of {', '.join(KNOWN)} "
                "as model.architecture."
            ) from error
    else:
        found = new_architecture(model, vocab_size=256)
    return found if layers is None else dataclasses.replace(found, num_layers=layers)


def plan_pod(
    config: Config,
    topology: Topology,
    *,
    layers: int | None = None,
    compile_programs: bool = True,
    on_compiled: Callable[[str, programs.Compiled], None] = lambda *_: None,
) -> PodPlan:
    """Plans a recipe for a topology.

    Args:
      config: validated settings.
      topology: where it is to run.
      layers: depth in place of the model's own.
      compile_programs: also compile, where libtpu is installed; else estimate only.
      on_compiled: told of each program as it is done.

    Raises:
      UserError: settings that cannot run there.
    """
    architecture = planned_architecture(config, layers)
    shape, rollout_shape = _shapes(config, topology.devices)
    training, sampling = (AbstractMesh(s, AXES) for s in (shape, rollout_shape))
    check_heads(architecture.num_heads, training)
    check_heads(architecture.num_heads, sampling, setting=ROLLOUT_SHAPE)
    check_row_devices(config, training, sampling)
    work = work_of(config, architecture, training.shape)
    sampled = work_of(config, architecture, sampling.shape)
    check_positions(work)
    width = jnp.dtype(config.model.dtype).itemsize
    rows = sharding_rows(architecture, training, sampling, width)
    held = _held({row.name: row.bytes_per_device / 4 for row in rows}, training)
    held_to_sample = _held(
        {row.name: row.sampled_bytes / width for row in rows}, sampling
    )
    weights, to_sample = held.numbers, held_to_sample.numbers
    waiting = memory.resident(work, weights, to_sample)
    ahead = memory.under_way(sampled, sampling, to_sample)
    parts = {
        "train": memory.train_parts(work, training, width, weights) | ahead,
        "reshard": memory.reshard_parts(
            waiting,
            0.0 if rollout_shape == shape else width * weights,
            [float(row.sampled_bytes) for row in rows],
        ),
        "prefill": memory.prefill_parts(sampled, sampling, width, to_sample, waiting),
        "decode": memory.decode_parts(sampled, sampling, width, to_sample, waiting),
    }
    flops = step_flops(work)
    sent = {
        "prefill": exchange.of_prefill(sampled, held_to_sample, width),
        "decode": exchange.of_decoding(sampled, held_to_sample, width),
        "update": exchange.of_updates(work, held, width),
    }
    found: dict[str, programs.Compiled] = {}
    if compile_programs and has_libtpu():
        meshes = programs.topology_meshes(topology.name, shape, rollout_shape)
        run = abstract_run(config, architecture, *meshes)
        for name in programs.NAMES:
            found[name] = programs.compiled(run, name)
            on_compiled(name, found[name])
    return PodPlan(
        config=config,
        architecture=architecture,
        topology=topology,
        mesh_shape=shape,
        rollout_shape=rollout_shape,
        work=work,
        sampled=sampled,
        flops=flops,
        time=step_time(
            work,
            flops,
            topology,
            held,
            held_to_sample,
            sent,
            width=width,
            cache_bytes=parts["decode"]["cache"],
        ),
        parts=parts,
        sent=sent,
        compiled=found,
        resident_bytes={
            # The sampler's weights are let go before the step learns.
            "train": math.fsum(ahead.values()),
            # The parameters are part of the program.
            "reshard": waiting - 4 * (weights + work.adapters),
            "prefill": waiting,
            "decode": waiting,
        },
        rows=rows,
    )


def _held(numbers: Mapping[str, float], mesh: AbstractMesh) -> Held:
    """Of each parameter's part on one device."""
    in_layers = sum(n for name, n in numbers.items() if name.startswith("layers."))
    return Held(sum(numbers.values()), in_layers, mesh)


def _shapes(config: Config, devices: int) -> tuple[tuple, tuple]:
    """mesh.shape and mesh.rollout_shape with their -1 worked out."""
    shape = filled_shape(config.mesh.shape, devices)
    if not config.mesh.rollout_shape:
        return shape, shape
    return shape, filled_shape(
        config.mesh.rollout_shape, devices, setting=ROLLOUT_SHAPE
    )


def sharding_rows(
    architecture: Architecture,
    training: Mesh | AbstractMesh,
    sampling: Mesh | AbstractMesh,
    width: int,
) -> list[Row]:
    """Every parameter, how it is split, and what of it one device holds.

    Args:
      architecture: of the policy.
      training: mesh that float32 parameters are split over.
      sampling: mesh that the sampler's weights are split over.
      width: bytes of one of these.
    """

    def split(name, shape, mesh):
        spec = parameter_spec(name.removeprefix("layers."), shape, mesh)
        held = math.prod(NamedSharding(mesh, spec).shard_shape(shape))
        return ", ".join(axis or "-" for axis in spec) or "whole", held

    rows = []
    for name, shape in parameter_shapes(architecture).items():
        spec, held = split(name, shape, training)
        sampled_spec, sampled = split(name, shape, sampling)
        rows.append(Row(name, shape, spec, 4 * held, sampled_spec, width * sampled))
    return rows


def has_libtpu() -> bool:
    """Whether programs can be compiled for TPUs here."""
    return importlib.util.find_spec("libtpu") is not None


def as_json(plan: PodPlan) -> dict[str, Any]:
    """What `launch.plan --json` prints last."""
    return {
        "fits": plan.fits,
        "hbm_gib_per_chip": {
            name: round(plan.hbm_gib(name) * plan.topology.chip.devices, 3)
            for name in programs.NAMES
        },
        "compile_s": round(sum(c.seconds for c in plan.compiled.values()), 1)
        if plan.compiled
        else None,
        "flops_per_step": plan.flops.total,
        # By hand: libtpu cannot print every program that it compiles.
        "collective_bytes": sum(
            each.results for phase in plan.sent.values() for each in phase
        ),
    }


def check_positions(work: Work) -> None:
    """Prompts and completions at their limits are within the model's positions.

    Raises:
      ConfigError: they are not.
    """
    needed, has = work.slots + work.length, work.architecture.max_positions
    if needed > has:
        raise ConfigError(
            f"plan: prompts of {work.slots} and completions of {work.length} tokens "
            f"need {needed} positions; the model has {has}. Lower "
            "rollout.max_completion_tokens or data.max_prompt_tokens."
        )
