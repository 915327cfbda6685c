"""Importance ratios between the policy and the one that sampled, as logarithms.

A `log_ratio` is 0 where nothing was sampled, with zero gradient there, so that what
stands at padding (also NaN or inf) never reaches a loss.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.shapes import TokenMask


def token_log_ratio(
    policy_logprobs: Float[Array, "B T"],
    old_logprobs: Float[Array, "B T"],
    token_mask: TokenMask,
) -> Float[Array, "B T"]:
    r"""log(pi / pi_old) of each sampled token (PPO, GRPO).

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      old_logprobs: the same tokens under the policy of the start of the step, or under
        the sampler (`rollout_logprobs`); a constant, no gradient flows into it.
      token_mask: 1 (or True) on tokens of the loss.

    Returns:
      log-ratios in nats, [B, T]; exactly 0 with zero gradient at masked tokens,
      whatever stands there.

    Example:
      >>> policy = jnp.array([[-1.0, -2.0, jnp.nan]])
      >>> old = jnp.array([[-1.5, -2.0, jnp.inf]])
      >>> print(token_log_ratio(policy, old, jnp.array([[1, 1, 0]])))
      [[0.5 0.  0. ]]
    """
    difference = policy_logprobs - jax.lax.stop_gradient(old_logprobs)
    return jnp.where(token_mask.astype(bool), difference, 0.0)


def sequence_log_ratio(
    log_ratio: Float[Array, "B T"], token_mask: TokenMask
) -> Float[Array, "B 1"]:
    r"""Mean of a row's token log-ratios: log s_i of GSPO.

        log s_i = (1 / |o_i|) sum_t log(pi / pi_old)_it

    s_i is the geometric mean of the row's token ratios; its variance falls with length
    where that of the product of ratios grows.

    Args:
      log_ratio: token log-ratios in nats.
      token_mask: 1 on tokens of the loss.

    Returns:
      one log-ratio per row, [B, 1], to broadcast over tokens; 0 for empty rows.

    References:
      GSPO, eq. 7. https://arxiv.org/abs/2507.18071

    Example:
      >>> log_ratio = jnp.array([[0.2, 0.4, 9.0], [9.0, 9.0, 9.0]])
      >>> print(sequence_log_ratio(log_ratio, jnp.array([[1, 1, 0], [0, 0, 0]])))
      [[0.3]
       [0. ]]
    """
    mask = token_mask.astype(bool)
    total = jnp.where(mask, log_ratio, 0.0).sum(-1, keepdims=True)
    return total / jnp.maximum(mask.sum(-1, keepdims=True), 1)
