"""The state of a run as shapes, types and shardings: nothing is allocated."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.mesh.sharding import parameter_spec
from rlvr_jax.train.critic import new_critic
from rlvr_jax.train.state import CriticState, RewardHistory, StepPlan, TrainState
from rlvr_jax.train.trainable import trainable_of


@dataclasses.dataclass(frozen=True)
class StandIn:
    """Shapes, types and shardings of the arrays of a tree, and how they make it up.

    Apart from it, as our types hold arrays and nothing else.
    """

    names: list[str]
    """The path of each leaf in the tree."""
    leaves: list[Any]
    tree: Any


def stand_in(build: Callable, sharding: Callable, *shapes: Any) -> StandIn:
    """What `build` makes of `shapes`, as `sharding(path, leaf)`; nothing is run."""
    paths, trees = [], []

    def flat(*arrays):
        made = build(*arrays)
        found, tree = jax.tree_util.tree_flatten_with_path(made)
        paths.extend(path for path, _ in found)
        trees.append(tree)
        return [leaf for _, leaf in found]

    leaves = [
        jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding(path, leaf))
        for path, leaf in zip(paths, jax.eval_shape(flat, *shapes), strict=True)
    ]
    return StandIn([jax.tree_util.keystr(path) for path in paths], leaves, trees[0])


def abstract_state(
    shapes: nnx.State,
    plan: StepPlan,
    *,
    num_problems: int,
    behaviours: int = 0,
    rollout_mesh: Mesh | None = None,
) -> StandIn:
    """As `train/policy.py: new_state`, without arrays.

    Args:
      shapes: of the parameters; arrays will do.
      plan: says which parts the objective needs.
      num_problems: of the training set, for advantage "running_mean".
      behaviours: policies of batches under way, as checkpoints of a stale run hold.
      rollout_mesh: where these are; by default with the rest.
    """
    objective = plan.objective
    width = nnx.eval_shape(
        lambda state: nnx.merge(plan.graphdef, state).head_weight, shapes
    ).shape[-1]

    def new(parameters):
        critic = history = coefficient = None
        if plan.critic_optimizer is not None:
            values = new_critic(parameters, width)
            critic = CriticState(values, plan.critic_optimizer.init(values))
        if objective.advantage == "running_mean":
            past = jnp.zeros((num_problems, objective.baseline_window))
            history = RewardHistory(past, past > 0)
        if objective.entropy_target > 0:
            coefficient = (jnp.float32(0), jnp.float32(0))
        weights = jax.tree.map(lambda leaf: leaf.astype(plan.dtype), parameters)
        return TrainState(
            parameters=parameters,
            optimizer=plan.optimizer.init(trainable_of(parameters)),
            reference=parameters if objective.beta > 0 else None,
            step=jnp.int32(0),
            critic=critic,
            history=history,
            entropy_coefficient=coefficient,
            band_shift=jnp.float32(0) if objective.band_entropy > 0 else None,
            behaviour=(weights,) * behaviours if behaviours else None,
        )

    of_sampling = plan.mesh if rollout_mesh is None else rollout_mesh

    def sharding(path, leaf):
        mesh = of_sampling if path[0].name == "behaviour" else plan.mesh
        # Moments have the names of their parameters.
        names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
        if not names:
            return NamedSharding(mesh, PartitionSpec())
        return NamedSharding(mesh, parameter_spec(names[-1], leaf.shape, mesh))

    return stand_in(new, sharding, shapes)
