"""What samples: the policy in the sampler's type, laid out over the mesh of sampling.

Training and sampling may split the same weights in different ways: gradients want
parameters spread over all devices, a decode step wants few of them to gather. After
each update one program casts the float32 parameters and sends them where the sampler
wants them; nothing of it passes the host. Rollouts go the other way.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
from flax import nnx
from jax.sharding import Mesh, NamedSharding

from rlvr_jax.config import Config
from rlvr_jax.mesh.mesh import moved, prompt_spec, rearranged, row_spec
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.train.policy import abstract_decoder
from rlvr_jax.train.state import StepPlan
from rlvr_jax.types import Rollouts


@dataclasses.dataclass(frozen=True, eq=False)
class SamplerPlan:
    """What the sampler is compiled for, as `StepPlan` is for the train step."""

    graphdef: nnx.GraphDef
    """With the kernels that apply on its mesh."""
    mesh: Mesh
    training_mesh: Mesh
    weights: Callable[[nnx.State], nnx.State]
    """The program that makes the sampler's weights from the parameters."""

    def plan_beside(self, plan: StepPlan) -> StepPlan:
        """The plan of training for log-probs by the sampler's weights, where they are.

        Without an update: evaluations score completions so.
        """
        return dataclasses.replace(plan, graphdef=self.graphdef, mesh=self.mesh)

    def for_training(self, rollouts: Rollouts) -> Rollouts:
        """The rollouts, split over the mesh of training as its step takes them."""
        if self.mesh == self.training_mesh:
            return rollouts
        return moved(rollouts, rollout_shardings(rollouts, self.training_mesh))


def sampler_plan(
    config: Config,
    architecture: Architecture,
    plan: StepPlan,
    parameters: nnx.State,
    rollout_mesh: Mesh,
) -> SamplerPlan:
    """The sampler of a run.

    Args:
      config: of the run.
      architecture: of the policy.
      plan: of its train step.
      parameters: or their shapes.
      rollout_mesh: of sampling, `mesh.rearranged` from the plan's.

    Raises:
      ConfigError: a kernel is asked for that this mesh does not take.
    """
    graphdef = plan.graphdef
    if rollout_mesh != plan.mesh:
        graphdef, _ = abstract_decoder(config, architecture, rollout_mesh)
    return SamplerPlan(
        graphdef,
        rollout_mesh,
        plan.mesh,
        weights_program(parameters, plan.dtype, plan.mesh, rollout_mesh),
    )


def weights_program(
    parameters: nnx.State, dtype: Any, mesh: Mesh, rollout_mesh: Mesh
) -> Callable[[nnx.State], nnx.State]:
    """The jitted program from the parameters to the weights that are sampled with.

    Args:
      parameters: or their shapes.
      dtype: that the sampler computes with.
      mesh: where the parameters are.
      rollout_mesh: where the weights go; its devices have the order of `mesh`.
    """

    # Cast where they are, so that the smaller type travels.
    stages = [mesh]
    if rollout_mesh != mesh:
        # Copies for a data axis come last, of parts that a tensor device wants: from
        # (1, 256, 1) to (32, 1, 8) at once, XLA makes parameters whole everywhere.
        data, fsdp, tensor = rollout_mesh.devices.shape
        stages.append(rearranged(rollout_mesh, (1, data * fsdp, tensor)))

    def cast(parameters):
        weights = jax.tree.map(lambda leaf: leaf.astype(dtype), parameters)
        for stage in stages:
            shardings = parameter_shardings(weights, stage)
            weights = jax.lax.with_sharding_constraint(weights, shardings)
        return weights

    return jax.jit(cast, out_shardings=parameter_shardings(parameters, rollout_mesh))


def rollout_shardings(rollouts: Rollouts, mesh: Mesh) -> list[NamedSharding]:
    """How each array of rollouts is split over the row devices of `mesh`, in order."""
    rows = row_spec(mesh, rollouts.completion_tokens.shape)
    prompts = prompt_spec(rows)

    found, _ = jax.tree_util.tree_flatten_with_path(rollouts)
    of_prompts = [path[0].name.startswith("prompt_") for path, _ in found]
    return [NamedSharding(mesh, prompts if each else rows) for each in of_prompts]
