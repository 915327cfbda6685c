"""Advantages from rewards per step of the reasoning (process supervision)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.core import groups
from rlvr_jax.core.returns import suffix_scan
from rlvr_jax.core.shapes import TokenMask


def process_advantages(
    step_rewards: Float[Array, "B T"],
    step_ends: Bool[Array, "B T"],
    group_id: Int[Array, " B"],
    token_mask: TokenMask,
    *,
    ddof: int = 0,
    epsilon: float = 1e-6,
) -> Float[Array, "B T"]:
    r"""Process-supervised GRPO: a token is paid for its own step and all later ones.

        r~ = (r - mean(R)) / (std(R) + epsilon)     R: every step reward of the group
        A_{i,t} = sum of r~ over the steps of i that end at t or later

    Steps are pooled over the group, so a completion of many steps weighs more in mean
    and std than one of few. Equal step rewards give exactly 0.

    Args:
      step_rewards: the reward of each step at the token where it ends; what stands
        elsewhere is not read.
      step_ends: True on the last token of a step.
      group_id: equal for rows that are compared; values in 0..B-1.
      token_mask: 1 on tokens of the policy. A step that ends outside does not count.
      ddof: of the std, 0 or 1.
      epsilon: added to the std, in the unit of the rewards.

    Returns:
      advantages, [B, T], unitless, 0 at masked tokens. No gradient flows back.

    Raises:
      ValueError: `ddof` is not 0 or 1.

    References:
      DeepSeekMath, sec. 4.1.3. https://arxiv.org/abs/2402.03300

    Example:
      >>> rewards = jnp.array([[0.0, 1.0, 0.0, 3.0]])
      >>> ends, mask = jnp.array([[False, True, False, True]]), jnp.ones((1, 4))
      >>> print(process_advantages(rewards, ends, jnp.array([0]), mask).round(3))
      [[0. 0. 1. 1.]]
    """
    if ddof not in (0, 1):
        raise ValueError(f"process_advantages: ddof must be 0 or 1, got {ddof!r}.")
    kept = token_mask.astype(bool)
    ends = step_ends & kept
    rewards = groups.widened(jax.lax.stop_gradient(step_rewards))
    normalised = _normalised_steps(rewards, ends, group_id, ddof, epsilon)
    sums = suffix_scan(normalised, jnp.ones_like(normalised))
    return jnp.where(kept, sums, 0)


def _normalised_steps(
    rewards: Float[Array, "B T"],
    ends: Bool[Array, "B T"],
    group_id: Int[Array, " B"],
    ddof: int,
    epsilon: float,
) -> Float[Array, "B T"]:
    """Step rewards by mean and std of all steps of the group; 0 elsewhere."""
    everyone = jnp.ones(group_id.shape, bool)

    def total(values: Float[Array, "B T"]) -> Float[Array, "B 1"]:
        rows = jnp.sum(values, axis=1, where=ends)
        return groups.group_sum(rows, group_id, everyone)[:, None]

    count = total(jnp.ones_like(rewards))
    centred = rewards - total(rewards) / jnp.maximum(count, 1)
    std = jnp.sqrt(total(centred**2) / jnp.maximum(count - ddof, 1))
    largest = groups.group_max(
        jnp.max(rewards, axis=1, where=ends, initial=-jnp.inf), group_id, everyone
    )
    smallest = -groups.group_max(
        jnp.max(-rewards, axis=1, where=ends, initial=-jnp.inf), group_id, everyone
    )
    differ = ends & ~(largest <= smallest)[:, None]
    return jnp.where(differ, centred / jnp.where(differ, std + epsilon, 1), 0)
