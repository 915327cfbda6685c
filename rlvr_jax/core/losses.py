"""Surrogate losses, one value per token; `aggregation` turns them into a scalar.

All are minimised. `log_ratio` is [B, T] (token level) or [B, 1] (sequence level);
advantages are one per row, [B], or one per token, [B, T], and constants.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.shapes import Advantages, TokenOrRow, per_token

# Departs from the papers, as verl does: a ratio beyond e^20 = 4.9e8 carries no
# information in float32 and would overflow; it is held there, with zero gradient.
LOG_RATIO_CLAMP = 20.0


def clipped_loss(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    epsilon_low: float,
    epsilon_high: float,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B _"]:
    r"""The clipped surrogate of PPO, GRPO and DAPO; of GSPO on sequence log-ratios.

        r = exp(log_ratio)
        l = -min(r A, clip(r, 1 - epsilon_low, 1 + epsilon_high) A)

    The gradient is zero where the ratio has already moved far enough in the direction
    of the advantage: A > 0 and r > 1 + epsilon_high, or A < 0 and r < 1 - epsilon_low.

    Args:
      log_ratio: log(pi / pi_old), from `ratios`.
      advantages: per row or per token; no gradient flows into them.
      epsilon_low: how far below 1 the ratio still counts (PPO, DAPO 0.2; GSPO 3e-4).
      epsilon_high: how far above 1 (PPO 0.2; DAPO clip-higher 0.28; GSPO 4e-4).
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, unaggregated; [B, 1] if both arguments are per row.

    References:
      PPO, eq. 7. https://arxiv.org/abs/1707.06347
      DAPO, sec. 3.1. https://arxiv.org/abs/2503.14476

    Example:
      >>> log_ratio = jnp.log(jnp.array([[0.5, 1.25, 2.0]]))
      >>> advantages = jnp.array([1.0])
      >>> print(clipped_loss(log_ratio, advantages, epsilon_low=0.2, epsilon_high=0.28))
      [[-0.5  -1.25 -1.28]]
    """
    advantages = per_token(advantages)
    ratio = jnp.exp(jnp.clip(log_ratio, -log_ratio_clamp, log_ratio_clamp))
    # The min of the formula, by the sign of A: only one of the bounds can be active.
    bounded = jnp.where(
        advantages > 0,
        jnp.minimum(ratio, 1.0 + epsilon_high),
        jnp.maximum(ratio, 1.0 - epsilon_low),
    )
    return -advantages * bounded


def reinforce_loss(
    policy_logprobs: Float[Array, "B T"],
    advantages: Advantages,
) -> Float[Array, "B T"]:
    r"""REINFORCE: l = -A log pi; no ratio, no clip (also GPG, RGRA, RLOO).

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      advantages: per row or per token; no gradient flows into them.

    Returns:
      the loss per token, [B, T]. Its value says nothing; its gradient is that of the
      policy objective when the samples are the policy's own.

    References:
      Williams, 1992. https://doi.org/10.1007/BF00992696

    Example:
      >>> print(reinforce_loss(jnp.array([[-1.0, -3.0]]), jnp.array([2.0])))
      [[2. 6.]]
    """
    return -per_token(advantages) * policy_logprobs
