"""What a step says about itself: shares and means for any loss, as `Ratio`s.

Each returns sums and counts apart, so that micro-batches and devices can be added
before the one division.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.core.selection import clip_masks
from rlvr_jax.core.shapes import Advantages, TokenMask, TokenOrRow
from rlvr_jax.types import Ratio


def masked_mean(values: TokenOrRow, token_mask: TokenMask) -> Ratio:
    r"""Mean over the tokens of the loss: sum(m * x) / sum(m).

    Args:
      values: one value per token, or per row, [B, 1].
      token_mask: 1 on tokens of the loss.

    Returns:
      the Ratio, in the unit of `values`; what stands at masked tokens is not read.

    Example:
      >>> values = jnp.array([[1.0, 2.0, jnp.nan]])
      >>> print(masked_mean(values, jnp.array([[1, 1, 0]])).value())
      1.5
    """
    mask = token_mask.astype(bool)
    kept = jnp.where(mask, values, 0.0)
    return Ratio(kept.sum(), mask.sum().astype(kept.dtype))


def clip_fractions(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    token_mask: TokenMask,
    *,
    epsilon_low: float,
    epsilon_high: float,
) -> tuple[Ratio, Ratio]:
    r"""Shares of tokens whose gradient the clip takes away, below and above.

        low:  A < 0 and r < 1 - epsilon_low
        high: A > 0 and r > 1 + epsilon_high

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token.
      token_mask: 1 on tokens of the loss.
      epsilon_low: as in `losses.clipped_loss`.
      epsilon_high: as in `losses.clipped_loss`.

    Returns:
      (low, high), each a share of all tokens of the loss.

    Example:
      >>> log_ratio = jnp.log(jnp.array([[0.5, 1.5, 1.0, 1.5]]))
      >>> advantages = jnp.array([[-1.0, 1.0, 1.0, -1.0]])
      >>> low, high = clip_fractions(
      ...     log_ratio,
      ...     advantages,
      ...     jnp.ones((1, 4)),
      ...     epsilon_low=0.2,
      ...     epsilon_high=0.2,
      ... )
      >>> print(low.value(), high.value())
      0.25 0.25
    """
    low, high = clip_masks(
        log_ratio, advantages, epsilon_low=epsilon_low, epsilon_high=epsilon_high
    )
    return (
        masked_mean(low.astype(log_ratio.dtype), token_mask),
        masked_mean(high.astype(log_ratio.dtype), token_mask),
    )


def zero_advantage_share(
    advantages: Float[Array, " B"], group_id: Int[Array, " B"]
) -> Ratio:
    r"""Share of groups that teach nothing: every advantage in them is exactly 0.

    Args:
      advantages: one per row.
      group_id: the group (prompt) of each row, values in 0..B-1.

    Returns:
      groups without signal / groups present.

    Example:
      >>> advantages = jnp.array([0.0, 0.0, 1.0, -1.0])
      >>> print(zero_advantage_share(advantages, jnp.array([0, 0, 1, 1])).value())
      0.5
    """
    rows = advantages.shape[0]
    ones = jnp.ones_like(advantages)
    members = jax.ops.segment_sum(ones, group_id, num_segments=rows)
    moving = jax.ops.segment_sum(
        (advantages != 0).astype(advantages.dtype), group_id, num_segments=rows
    )
    present = members > 0
    silent = (present & (moving == 0)).sum().astype(advantages.dtype)
    return Ratio(silent, present.sum().astype(advantages.dtype))
