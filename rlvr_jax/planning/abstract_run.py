"""A run without arrays: what its programs take, as shapes, types and shardings.

So a plan of a 32B model needs 2 GB of memory.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.config import Config
from rlvr_jax.mesh.mesh import prompt_spec, row_spec
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.planning.work import Work, work_of
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.train.abstract import StandIn, abstract_state, stand_in
from rlvr_jax.train.policy import abstract_decoder
from rlvr_jax.train.sampler_plan import SamplerPlan, sampler_plan
from rlvr_jax.train.state import StepPlan
from rlvr_jax.train.step import Extras
from rlvr_jax.train.step_plan import step_plan_of
from rlvr_jax.types import Rollouts


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
    """
    rollout_mesh = mesh if rollout_mesh is None else rollout_mesh
    work = work_of(config, architecture)
    graphdef, shapes = abstract_decoder(config, architecture, mesh)
    plan = step_plan_of(config, graphdef, mesh)
    return AbstractRun(
        work=work,
        plan=plan,
        state=abstract_state(shapes, plan, num_problems=work.prompts),
        parameters=_on(shapes, jnp.dtype("float32"), mesh),
        sampler=sampler_plan(config, architecture, plan, shapes, rollout_mesh),
        weights=_on(shapes, plan.dtype, rollout_mesh),
        sampling=Sampling.from_config(config.rollout, (0, 1)),
    )


def _on(shapes: nnx.State, dtype: Any, mesh: Mesh) -> nnx.State:
    """Parameters of that type, split over the mesh."""
    return jax.tree.map(
        lambda leaf, at: jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=at),
        shapes,
        parameter_shardings(shapes, mesh),
    )


def _row_specs(work: Work, mesh: Mesh, prompts: int):
    """How [P, ...] and [P, G, ...] are split."""
    rows = row_spec(mesh, (prompts, work.generations))
    return prompt_spec(rows), rows


def prompt_shapes(work: Work, mesh: Mesh, count: int) -> tuple[Any, Any]:
    """Tokens [count, S] and lengths [count]."""
    by_prompt, _ = _row_specs(work, mesh, count)
    place = functools.partial(
        jax.ShapeDtypeStruct, dtype=jnp.int32, sharding=NamedSharding(mesh, by_prompt)
    )
    return place((count, work.slots)), place((count,))


def per_row_shape(work: Work, mesh: Mesh, dtype) -> Any:
    """[P, G]."""
    _, rows = _row_specs(work, mesh, work.prompts)
    shape = (work.prompts, work.generations)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, rows))


def rollouts_of(run: AbstractRun) -> StandIn:
    """What sampling hands to the train step."""
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


def extras_of(run: AbstractRun) -> StandIn:
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
