"""Importance ratios between the policy and the one that sampled, as logarithms.

A `log_ratio` is 0 where nothing was sampled, with zero gradient there, so that what
stands at padding (also NaN or inf) never reaches a loss.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.shapes import TokenMask, TokenOrRow

# Departs from the papers, as verl does: a ratio beyond e^20 = 4.9e8 carries no
# information in float32 and would overflow soon after.
LOG_RATIO_CLAMP = 20.0

ROUNDING = 1e-5
"""Nats that float32 log-probs of one policy may lie apart."""


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
      GSPO. https://arxiv.org/abs/2507.18071

    Example:
      >>> log_ratio = jnp.array([[0.2, 0.4, 9.0], [9.0, 9.0, 9.0]])
      >>> print(sequence_log_ratio(log_ratio, jnp.array([[1, 1, 0], [0, 0, 0]])))
      [[0.3]
       [0. ]]
    """
    mask = token_mask.astype(bool)
    total = jnp.where(mask, log_ratio, 0.0).sum(-1, keepdims=True)
    # Counted in floats: on CPUs a sum of integers takes several times as long.
    count = mask.astype(float).sum(-1, keepdims=True)
    return total / jnp.maximum(count, 1).astype(total.dtype)


def sequence_token_log_ratio(
    log_ratio: Float[Array, "B T"], token_mask: TokenMask
) -> Float[Array, "B T"]:
    r"""GSPO-token: the value of the row's ratio, the gradient of each token's own.

        log s_it = sg[log s_i] + log pi_it - sg[log pi_it]

    With equal advantages in a row, loss and gradient are those of GSPO; advantages may
    also differ from token to token.

    Args:
      log_ratio: token log-ratios in nats, from `token_log_ratio`.
      token_mask: 1 on tokens of the loss.

    Returns:
      log-ratios in nats, [B, T]; 0 with zero gradient at masked tokens.

    References:
      GSPO, sec. 4.3. https://arxiv.org/abs/2507.18071

    Example:
      >>> log_ratio = jnp.array([[0.2, 0.4, 9.0]])
      >>> print(sequence_token_log_ratio(log_ratio, jnp.array([[1, 1, 0]])))
      [[0.3 0.3 0. ]]
    """
    stop = jax.lax.stop_gradient
    row = stop(sequence_log_ratio(log_ratio, token_mask))
    return jnp.where(token_mask.astype(bool), row + (log_ratio - stop(log_ratio)), 0.0)


def bounded_ratio(
    log_ratio: TokenOrRow, log_ratio_clamp: float = LOG_RATIO_CLAMP
) -> TokenOrRow:
    """exp(log_ratio) that cannot overflow.

    Args:
      log_ratio: log-ratios in nats.
      log_ratio_clamp: bound on |log_ratio|; beyond it the ratio stays at the bound,
        with zero gradient. `math.inf` for none.

    Returns:
      ratios, in the shape of `log_ratio`.

    Example:
      >>> print(bounded_ratio(jnp.array([[0.0, 1e9]]), log_ratio_clamp=2.0))
      [[1.       7.389056]]
    """
    return jnp.exp(jnp.clip(log_ratio, -log_ratio_clamp, log_ratio_clamp))


@jax.custom_jvp
def symmetric_abs(values: TokenOrRow) -> TokenOrRow:
    """|x| whose gradient goes through 0 at 0, from -1 to 1 within ROUNDING.

    On policy every log-ratio is 0, but for rounding: log-probs of two programs, or of
    two sizes of micro-batches, differ by some 1e-7. The sign of that would be a
    gradient of full size in a direction of no meaning.

    Args:
      values: log-ratios, in nats.

    Returns:
      |values|.

    Example:
      >>> slope = jax.grad(lambda x: symmetric_abs(x).sum())
      >>> print(slope(jnp.array([[-2.0, 0.0, 1e-7]])))
      [[-1.    0.    0.01]]
    """
    return jnp.abs(values)


@symmetric_abs.defjvp
def _symmetric_abs_jvp(primals, tangents):
    (values,), (tangent,) = primals, tangents
    return jnp.abs(values), jnp.clip(values / ROUNDING, -1.0, 1.0) * tangent
