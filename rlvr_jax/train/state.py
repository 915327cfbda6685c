"""What a step changes, and what it is compiled for."""

import dataclasses
from typing import Any

import jax
import optax
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.config import BatchConfig, CriticConfig, Objective


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CriticState:
    """The value model of advantage "gae"."""

    parameters: dict[str, Any]
    """"decoder": as the policy's; "value_head": [D] and "value_bias": []."""
    optimizer: optax.OptState


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RewardHistory:
    """Earlier rewards of each of N problems, newest first, of "running_mean"."""

    rewards: Float[Array, "... N W"]
    seen: Bool[Array, "... N W"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """All that a step changes. Everything random is a function of (seed, step)."""

    parameters: nnx.State
    """float32 master weights."""
    optimizer: optax.OptState
    reference: nnx.State | None
    """Parameters of the KL term; None at beta 0."""
    step: Int[Array, "..."]
    """Rollout batches learned from so far: the version of the policy."""
    critic: CriticState | None = None
    history: RewardHistory | None = None
    entropy_coefficient: tuple[Float[Array, "..."], Float[Array, "..."]] | None = None
    """(what climbs, what is applied); None while the coefficient is fixed."""
    band_shift: Float[Array, "..."] | None = None
    """Of the bands of "sign_bands"; None while these stay."""
    behaviour: tuple[nnx.State, ...] | None = None
    """In checkpoints: policies whose batches were under way, oldest first."""


@dataclasses.dataclass(frozen=True, eq=False)
class StepPlan:
    """What the step is compiled for."""

    graphdef: nnx.GraphDef
    optimizer: optax.GradientTransformation
    objective: Objective
    batch: BatchConfig
    max_completion_tokens: int
    temperature: float
    mesh: Mesh
    dtype: Any
    """Of activations, and of the weights they meet."""
    logprob_kernel: str = "auto"
    """As model.logprob_kernel."""
    replay_routing: bool = True
    """Tokens go through the experts of the rollouts, where these have recorded any."""
    seed: int = 0
    """Of what the step draws: the tokens that "clip_cov" holds back."""
    critic: CriticConfig | None = None
    """None without a critic."""
    critic_optimizer: optax.GradientTransformation | None = None
