"""Several rewards per completion: added before or after they are normalised."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Real

from rlvr_jax.core import groups
from rlvr_jax.core.advantages import group_advantages


def summed_rewards(
    rewards: Real[Array, "B R"],
    weights: Float[Array, " R"],
    *,
    applies: Bool[Array, "B R"] | None = None,
) -> Float[Array, " B"]:
    """The weighted sum of a row's rewards, over those that apply to it.

    Args:
      rewards: R rewards per completion.
      weights: one per reward.
      applies: False where a reward is not defined for a row (a format checker on a
        prompt without a format); what stands there is not read.

    Returns:
      one reward per row, [B]; 0 where none applies. Leave those rows out of the group
      with `row_mask=applies.any(axis=1)`.

    Example:
      >>> rewards = jnp.array([[1.0, jnp.nan], [1.0, 1.0]])
      >>> weights, applies = jnp.array([1.0, 0.5]), ~jnp.isnan(rewards)
      >>> print(summed_rewards(rewards, weights, applies=applies))
      [1.  1.5]
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    weighted = rewards * weights[None, :].astype(rewards.dtype)
    return jnp.sum(weighted, axis=1, where=_applying(rewards, applies))


def gdpo_advantages(
    rewards: Real[Array, "B R"],
    group_id: Int[Array, " B"],
    weights: Float[Array, " R"],
    *,
    ddof: int = 0,
    epsilon: float = 1e-6,
    scale: str = "group",
    applies: Bool[Array, "B R"] | None = None,
) -> Float[Array, " B"]:
    r"""GDPO: every reward is normalised within its group before they are added.

        A_i = sum_k w_k (r_{k,i} - mean_g(r_k)) / (std_g(r_k) + epsilon)

    Added first and normalised after, (1, 0) and (0, 1) become the same advantage, and a
    reward that varies little drowns. The paper then normalises A over the batch: apply
    `group_advantages(A, jnp.zeros_like(group_id))` for rows, or `whitening.whiten` for
    tokens.

    Args:
      rewards: R rewards per completion, each in its own unit.
      group_id: equal for rows that are compared; values in 0..B-1.
      weights: one per reward, unitless.
      ddof: of each std, 0 or 1.
      epsilon: added to each std.
      scale: as in `group_advantages`, for each reward.
      applies: False where a reward is not defined for a row; it is then left out of
        that reward's statistics and adds 0.

    Returns:
      advantages, [B], unitless unless scale is "none". No gradient flows back.

    Raises:
      ValueError: `scale` or `ddof` is unknown.

    References:
      GDPO. https://arxiv.org/abs/2601.05242

    Example:
      >>> rewards = jnp.array([[1.0, 0.0], [0.0, 0.1]])
      >>> weights = jnp.array([1.0, 0.5])
      >>> print(gdpo_advantages(rewards, jnp.array([0, 0]), weights).round(2))
      [ 0.5 -0.5]
    """

    def normalised(
        reward: Float[Array, " B"], applies: Bool[Array, " B"]
    ) -> Float[Array, " B"]:
        return group_advantages(
            reward, group_id, scale=scale, ddof=ddof, epsilon=epsilon, row_mask=applies
        )

    rewards = groups.widened(rewards)
    each = jax.vmap(normalised, in_axes=1, out_axes=1)(
        rewards, _applying(rewards, applies)
    )
    return summed_rewards(each, weights)


def _applying(
    rewards: Float[Array, "B R"], applies: Bool[Array, "B R"] | None
) -> Bool[Array, "B R"]:
    return jnp.ones(rewards.shape, bool) if applies is None else applies
