"""The three programs of a step, compiled for a pod that is not there.

libtpu compiles for a named topology on any machine; arrays are stood in for by their
shapes, types and shardings, so a plan of a 32B model needs 2 GB of memory.
"""

import dataclasses
import functools
import os
import re
import time
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.config import Config
from rlvr_jax.mesh.mesh import make_mesh, row_spec
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.planning.collectives import Collectives, collectives_of
from rlvr_jax.planning.work import Work, work_of
from rlvr_jax.rollout.sampler import Sampling, sample
from rlvr_jax.train.critic import new_critic
from rlvr_jax.train.optimizer import make_critic_optimizer, make_optimizer
from rlvr_jax.train.policy import abstract_decoder, moment_shardings
from rlvr_jax.train.state import CriticState, RewardHistory, StepPlan, TrainState
from rlvr_jax.train.step import Extras, train_step
from rlvr_jax.train.trainable import trainable_of
from rlvr_jax.types import Rollouts

NAMES = ("prefill", "decode", "train")


@dataclasses.dataclass(frozen=True)
class AbstractRun:
    """Everything the programs of a run take, as shapes on a mesh."""

    work: Work
    plan: StepPlan
    state: TrainState
    weights: nnx.State
    """Of the sampler: the parameters in the type it computes with."""
    sampling: Sampling


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What a compiled program said of itself."""

    hbm_bytes: float
    """Peak of one device, arguments included."""
    seconds: float
    """Of compiling."""
    refusal: str = ""
    """Why it was not compiled; `hbm_bytes` is then what it asked for, 0 if unsaid."""
    collectives: Collectives | None = None
    """None where the program cannot be read."""


def topology_mesh(name: str, shape: tuple[int, ...]) -> Mesh:
    """A mesh over the devices of a named topology.

    Raises:
      ImportError: libtpu is not installed.
      ValueError: the shape does not fill the topology, or libtpu does not know it.
    """
    # Before libtpu starts: no questions to a metadata server that is not there.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    # No chip is opened, so plans need not wait for one another.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    import libtpu  # noqa: F401 - an extra; without it the plan is an estimate
    from jax.experimental import topologies

    try:
        topology = topologies.get_topology_desc(platform="tpu", topology_name=name)
    except Exception as error:
        raise ValueError(
            f"topology_mesh: libtpu does not know {name!r}: {error}"
        ) from error
    return make_mesh(shape, topology.devices)


def abstract_run(config: Config, architecture: Architecture, mesh: Mesh) -> AbstractRun:
    """A run of `config` on `mesh` without arrays.

    Raises:
      ValueError: a batch does not divide over the mesh.
    """
    work = work_of(config, architecture)
    for shape in ((work.prompts, work.generations), work.micro):
        row_spec(mesh, shape)

    graphdef, shapes = abstract_decoder(config, architecture)
    dtype = jnp.dtype(config.model.dtype)
    critic = {}
    if work.critic:
        critic = {
            "critic": config.critic,
            "critic_optimizer": make_critic_optimizer(config),
        }
    plan = StepPlan(
        graphdef=graphdef,
        optimizer=make_optimizer(config),
        objective=config.objective,
        batch=config.batch,
        max_completion_tokens=config.rollout.max_completion_tokens,
        temperature=config.rollout.temperature,
        mesh=mesh,
        dtype=dtype,
        **critic,
    )
    state = _state(shapes, plan, work)
    return AbstractRun(
        work=work,
        plan=plan,
        state=state,
        weights=jax.tree.map(
            lambda leaf: _stand_in(leaf.shape, dtype, sharding=leaf.sharding),
            state.parameters,
        ),
        sampling=Sampling.from_config(config.rollout, (0, 1)),
    )


def compiled(run: AbstractRun, name: str) -> Compiled:
    """Compiles one of NAMES ahead of time for the devices of the run's mesh."""
    begun = time.perf_counter()
    lowered = lower(run, name)
    try:
        program = lowered.compile()
    except Exception as error:
        asked = _asked_for(str(error))
        if asked is None:
            raise
        seconds = time.perf_counter() - begun
        return Compiled(asked, seconds, refusal=_first_line(str(error)))
    seconds = time.perf_counter() - begun
    memory: Any = program.memory_analysis()
    peak = getattr(memory, "peak_memory_in_bytes", 0) or (
        memory.argument_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
    )
    try:
        text = program.as_text()
    except Exception:  # libtpu cannot print some v5p and tpu7x programs
        text = None
    return Compiled(
        peak, seconds, collectives=None if text is None else collectives_of(text)
    )


def lower(run: AbstractRun, name: str) -> jax.stages.Lowered:
    """Traces one of NAMES for the shapes of the run."""
    work, mesh = run.work, run.plan.mesh
    if name == "train":
        learn = jax.jit(functools.partial(train_step, plan=run.plan), donate_argnums=0)
        scores = _rows(work, mesh, (), jnp.float32)
        return learn.lower(run.state, _rollouts(run), scores, scores, _extras(run))
    if name == "prefill":
        graphdef = run.plan.graphdef

        @jax.jit
        def prefill(weights, tokens, lengths):
            return nnx.merge(graphdef, weights).prefill(tokens, lengths)

        return prefill.lower(run.weights, *_prompts(work, mesh, work.at_once))
    keys = jax.eval_shape(lambda: jax.random.key(0))
    return sample.lower(
        run.plan.graphdef,
        run.weights,
        *_prompts(work, mesh, work.prompts),
        _rows(work, mesh, (), keys.dtype),
        sampling=run.sampling,
    )


def _stand_in(shape: tuple[int, ...], dtype: Any, *, sharding: Any) -> Any:
    """In place of an array, for tracing."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def _state(shapes: nnx.State, plan: StepPlan, work: Work) -> TrainState:
    """As `train/policy.py: new_state`, without arrays."""
    mesh = plan.mesh
    everywhere = NamedSharding(mesh, PartitionSpec())
    parameters = _placed(shapes, parameter_shardings(shapes, mesh))
    critic = history = coefficient = None
    if plan.critic_optimizer is not None:
        width = work.architecture.hidden_size
        values = jax.eval_shape(lambda p: new_critic(p, width), parameters)
        values = _placed(values, parameter_shardings(values, mesh))
        critic = CriticState(values, _moments(values, plan.critic_optimizer, mesh))
    if plan.objective.advantage == "running_mean":
        shape = (work.prompts, plan.objective.baseline_window)
        history = RewardHistory(
            _stand_in(shape, jnp.float32, sharding=everywhere),
            _stand_in(shape, jnp.bool_, sharding=everywhere),
        )
    scalar = functools.partial(_stand_in, (), sharding=everywhere)
    if plan.objective.entropy_target > 0:
        coefficient = (scalar(jnp.float32), scalar(jnp.float32))
    return TrainState(
        parameters=parameters,
        optimizer=_moments(trainable_of(parameters), plan.optimizer, mesh),
        reference=parameters if plan.objective.beta > 0 else None,
        step=scalar(jnp.int32),
        critic=critic,
        history=history,
        entropy_coefficient=coefficient,
    )


def _moments(parameters, optimizer, mesh: Mesh):
    shapes = jax.eval_shape(optimizer.init, parameters)
    return _placed(shapes, moment_shardings(parameters, optimizer, mesh))


def _placed(shapes: Any, shardings: Any) -> Any:
    return jax.tree.map(
        lambda leaf, at: _stand_in(leaf.shape, leaf.dtype, sharding=at),
        shapes,
        shardings,
    )


def _rows(work: Work, mesh: Mesh, rest: tuple[int, ...], dtype):
    """[P, G, *rest], split as the sampler leaves it."""
    spec = row_spec(mesh, (work.prompts, work.generations))
    shape = (work.prompts, work.generations, *rest)
    return _stand_in(shape, dtype, sharding=NamedSharding(mesh, spec))


def _prompts(work: Work, mesh: Mesh, count: int):
    """Tokens [count, S] and lengths [count]."""
    spec = row_spec(mesh, (count, work.generations))
    spec = spec if len(spec) == 1 else PartitionSpec()
    place = functools.partial(
        _stand_in, dtype=jnp.int32, sharding=NamedSharding(mesh, spec)
    )
    return place((count, work.slots)), place((count,))


def _rollouts(run: AbstractRun) -> Rollouts:
    work, mesh = run.work, run.plan.mesh
    tokens, lengths = _prompts(work, mesh, work.prompts)
    words = -(-work.architecture.vocab_size // 32)
    return Rollouts(
        prompt_tokens=tokens,
        prompt_lengths=lengths,
        completion_tokens=_rows(work, mesh, (work.length,), jnp.int32),
        completion_lengths=_rows(work, mesh, (), jnp.int32),
        ended=_rows(work, mesh, (), jnp.bool_),
        rollout_logprobs=_rows(work, mesh, (work.length,), jnp.float32),
        group_id=_rows(work, mesh, (), jnp.int32),
        kept_tokens=_rows(work, mesh, (work.length, words), jnp.uint32)
        if run.sampling.truncates
        else None,
    )


def _extras(run: AbstractRun) -> Extras | None:
    """What `train/extras.py` adds, for the advantages that read it."""
    work, mesh, advantage = run.work, run.plan.mesh, run.plan.objective.advantage
    per_prompt = _prompts(work, mesh, work.prompts)[1]
    everywhere = NamedSharding(mesh, PartitionSpec())
    if advantage == "gdpo":
        return Extras(
            reward_parts=_rows(work, mesh, (2,), jnp.float32),
            part_weights=_stand_in((2,), jnp.float32, sharding=everywhere),
        )
    if advantage == "remax":
        return Extras(
            greedy_rewards=_stand_in(
                per_prompt.shape, jnp.float32, sharding=per_prompt.sharding
            )
        )
    if advantage == "running_mean":
        return Extras(problem_ids=per_prompt)
    return None


def _asked_for(message: str) -> float | None:
    """Bytes of memory that a refused program wanted; None for another error."""
    found = re.search(r"Used ([\d.]+)([KMGT]) of [\d.]+[KMGT] hbm", message)
    if found:
        return float(found[1]) * 1024 ** ("KMGT".index(found[2]) + 1)
    return 0.0 if "RESOURCE_EXHAUSTED" in message else None


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0][:300]
