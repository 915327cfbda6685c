"""The four programs of a step, compiled for a pod that is not there.

libtpu compiles for a named topology on any machine; arrays are stood in for by their
shapes, types and shardings, so a plan of a 32B model needs 2 GB of memory.
"""

import contextlib
import dataclasses
import functools
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.config import Config
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import ROLLOUT_SHAPE, SHAPE, make_mesh, rearranged, row_spec
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.planning import slot_programs
from rlvr_jax.planning.collectives import Collectives, collectives_of
from rlvr_jax.planning.work import Work, work_of
from rlvr_jax.rollout.sampler import Sampling, sample
from rlvr_jax.train.abstract import StandIn, abstract_state, stand_in
from rlvr_jax.train.optimizer import make_critic_optimizer, make_optimizer
from rlvr_jax.train.policy import abstract_decoder
from rlvr_jax.train.sampler_plan import SamplerPlan, sampler_plan
from rlvr_jax.train.state import StepPlan
from rlvr_jax.train.step import Extras, train_step
from rlvr_jax.types import Rollouts

NAMES = ("reshard", "prefill", "decode", "train")
"""In the order of a step: the sampler's weights are made, sampled with, let go."""


@dataclasses.dataclass(frozen=True)
class AbstractRun:
    """Everything the programs of a run take, as shapes on its meshes."""

    work: Work
    plan: StepPlan
    state: StandIn
    parameters: nnx.State
    """Part of the state."""
    sampler: SamplerPlan
    weights: nnx.State
    """What the sampler makes of the parameters."""
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


def topology_meshes(
    name: str, shape: tuple[int, ...], rollout_shape: tuple[int, ...] = ()
) -> tuple[Mesh, Mesh]:
    """Meshes of training and sampling over the devices of a named topology.

    Raises:
      ImportError: libtpu is not installed.
      UserError: a shape does not fill the topology, or libtpu does not know it.
    """
    # Before libtpu starts: no questions to a metadata server that is not there.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    # No chip is opened, so plans need not wait for one another.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    import libtpu  # noqa: F401 - an extra; without it the plan is an estimate
    from jax.experimental import topologies

    try:
        with _without_native_log():
            topology = topologies.get_topology_desc(platform="tpu", topology_name=name)
    except Exception as error:
        raise UserError(
            f"plan: libtpu does not know the topology {name!r}: {error}"
        ) from error
    mesh = make_mesh(shape, topology.devices)
    return mesh, rearranged(mesh, rollout_shape)


@contextlib.contextmanager
def _without_native_log() -> Iterator[None]:
    """libtpu prints a stack trace beside each error that it raises, and warnings that
    there is no TPU."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def abstract_run(
    config: Config,
    architecture: Architecture,
    mesh: Mesh,
    rollout_mesh: Mesh | None = None,
) -> AbstractRun:
    """A run of `config` without arrays.

    Args:
      config: of the run.
      architecture: of the policy.
      mesh: of training.
      rollout_mesh: of sampling; by default the same.

    Raises:
      UserError: a batch does not divide over its mesh.
    """
    rollout_mesh = mesh if rollout_mesh is None else rollout_mesh
    work = work_of(config, architecture)
    for shape in ((work.prompts, work.generations), work.micro):
        row_spec(mesh, shape)
    apart = SHAPE if rollout_mesh == mesh else ROLLOUT_SHAPE
    # Slots are split by heads alone.
    at_once = () if work.engine == "slots" else (work.at_once,)
    for prompts in (work.prompts, *at_once):
        row_spec(rollout_mesh, (prompts, work.generations), setting=apart)

    graphdef, shapes = abstract_decoder(config, architecture, mesh)
    dtype = jnp.dtype(config.model.dtype)
    critic = {}
    if work.critic_updates:
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
        logprob_kernel=config.model.logprob_kernel,
        **critic,
    )
    return AbstractRun(
        work=work,
        plan=plan,
        state=abstract_state(shapes, plan, num_problems=work.prompts),
        parameters=_on(shapes, jnp.dtype("float32"), mesh),
        sampler=sampler_plan(config, architecture, plan, shapes, rollout_mesh),
        weights=_on(shapes, dtype, rollout_mesh),
        sampling=Sampling.from_config(config.rollout, (0, 1)),
    )


def _on(shapes: nnx.State, dtype: Any, mesh: Mesh) -> nnx.State:
    """Parameters of that type, split over the mesh."""
    return jax.tree.map(
        lambda leaf, at: jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=at),
        shapes,
        parameter_shardings(shapes, mesh),
    )


def compiled(run: AbstractRun, name: str) -> Compiled:
    """Compiles one of NAMES ahead of time for the devices of the run."""
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
        with _without_native_log():
            text = program.as_text()
    except Exception:  # libtpu cannot print some v5p and tpu7x programs
        text = None
    return Compiled(
        float(peak), seconds, collectives=None if text is None else collectives_of(text)
    )


def lower(run: AbstractRun, name: str) -> jax.stages.Lowered:
    """Traces one of NAMES for the shapes of the run."""
    work, mesh, graphdef = run.work, run.sampler.mesh, run.sampler.graphdef
    if name == "train":
        return _lower_train(run)
    if name == "reshard":
        program: Any = run.sampler.weights
        return program.lower(run.parameters)
    if work.engine == "slots":
        args = (graphdef, run.weights, work, mesh)
        if name == "prefill":
            return slot_programs.lower_prefill(*args)
        return slot_programs.lower_decode(*args, run.sampling)
    if name == "prefill":

        @jax.jit
        def prefill(weights, tokens, lengths):
            return nnx.merge(graphdef, weights).prefill(tokens, lengths)

        return prefill.lower(run.weights, *_prompts(work, mesh, work.at_once))
    keys = jax.eval_shape(lambda: jax.random.key(0))
    return sample.lower(
        graphdef,
        run.weights,
        *_prompts(work, mesh, work.prompts),
        _per_row(work, mesh, keys.dtype),
        sampling=run.sampling,
    )


def _lower_train(run: AbstractRun) -> jax.stages.Lowered:
    given = (run.state, _rollouts(run), _extras(run))
    trees = [part.tree for part in given]

    def learn(state, rollouts, extras, rewards, correct):
        parts = (state, rollouts, extras)
        trio = [jax.tree.unflatten(t, p) for t, p in zip(trees, parts, strict=True)]
        state, rollouts, extras = trio
        return train_step(state, rollouts, rewards, correct, extras, plan=run.plan)

    scores = _per_row(run.work, run.plan.mesh, jnp.float32)
    return jax.jit(learn, donate_argnums=0).lower(
        *(part.leaves for part in given), scores, scores
    )


def _row_specs(work: Work, mesh: Mesh, prompts: int):
    """How [P, ...] and [P, G, ...] are split."""
    rows = row_spec(mesh, (prompts, work.generations))
    return (rows if len(rows) == 1 else PartitionSpec()), rows


def _prompts(work: Work, mesh: Mesh, count: int) -> tuple[Any, Any]:
    """Tokens [count, S] and lengths [count]."""
    by_prompt, _ = _row_specs(work, mesh, count)
    place = functools.partial(
        jax.ShapeDtypeStruct, dtype=jnp.int32, sharding=NamedSharding(mesh, by_prompt)
    )
    return place((count, work.slots)), place((count,))


def _per_row(work: Work, mesh: Mesh, dtype) -> Any:
    """[P, G]."""
    _, rows = _row_specs(work, mesh, work.prompts)
    shape = (work.prompts, work.generations)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, rows))


def _rollouts(run: AbstractRun) -> StandIn:
    work, mesh = run.work, run.plan.mesh
    by_prompt, by_row = _row_specs(work, mesh, work.prompts)
    rows = (work.prompts, work.generations)
    words = -(-work.architecture.vocab_size // 32)

    def new():
        tokens = jnp.zeros((*rows, work.length), jnp.int32)
        per_row = jnp.zeros(rows, jnp.int32)
        return Rollouts(
            prompt_tokens=jnp.zeros((work.prompts, work.slots), jnp.int32),
            prompt_lengths=jnp.zeros(work.prompts, jnp.int32),
            completion_tokens=tokens,
            completion_lengths=per_row,
            ended=per_row > 0,
            rollout_logprobs=tokens.astype(jnp.float32),
            group_id=per_row,
            kept_tokens=jnp.zeros((*tokens.shape, words), jnp.uint32)
            if run.sampling.truncates
            else None,
        )

    def sharding(path, _):
        of_prompts = path[0].name.startswith("prompt_")
        return NamedSharding(mesh, by_prompt if of_prompts else by_row)

    return stand_in(new, sharding)


def _extras(run: AbstractRun) -> StandIn:
    """What `train/extras.py` adds, for the objectives and rules that read it."""
    work, mesh, advantage = run.work, run.plan.mesh, run.plan.objective.advantage
    by_prompt, by_row = _row_specs(work, mesh, work.prompts)
    rows, parts = (work.prompts, work.generations), 2
    found = {}
    if advantage == "gdpo":
        found = {
            "reward_parts": ((*rows, parts), jnp.float32, by_row),
            "part_weights": ((parts,), jnp.float32, PartitionSpec()),
        }
    if advantage == "remax":
        found = {"greedy_rewards": (rows[:1], jnp.float32, by_prompt)}
    if advantage == "running_mean":
        found = {"problem_ids": (rows[:1], jnp.int32, by_prompt)}

    def new():
        arrays = {n: jnp.zeros(shape, dtype) for n, (shape, dtype, _) in found.items()}
        return Extras(**arrays) if arrays else None

    return stand_in(new, lambda path, _: NamedSharding(mesh, found[path[0].name][2]))


def _asked_for(message: str) -> float | None:
    """Bytes of memory that a refused program wanted; None for another error."""
    found = re.search(r"Used ([\d.]+)([KMGT]) of [\d.]+[KMGT] hbm", message)
    if found:
        return float(found[1]) * 1024 ** ("KMGT".index(found[2]) + 1)
    return 0.0 if "RESOURCE_EXHAUSTED" in message else None


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0][:300]
