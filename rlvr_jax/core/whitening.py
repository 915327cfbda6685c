"""Advantages normalised over all tokens of the batch: whitening, REINFORCE++."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Real

from rlvr_jax.core.advantages import centred_rewards
from rlvr_jax.core.groups import widened
from rlvr_jax.core.returns import rewards_to_go
from rlvr_jax.core.shapes import TokenMask


def whiten(
    values: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    ddof: int = 0,
    epsilon: float = 1e-8,
) -> Float[Array, "B T"]:
    r"""Mean 0 and variance 1 over the kept tokens of the whole batch.

        (x - mean) / sqrt(var + epsilon)

    A long completion has more say in both than a short one, since tokens are counted.
    Equal values give exactly 0, not their rounding error times 1 / sqrt(epsilon).

    Args:
      values: per token; what stands at masked tokens is not read.
      token_mask: 1 on tokens that count.
      ddof: 0 is the variance of the batch itself (OpenRLHF); 1 divides the squares by
        one token less (verl).
      epsilon: added to the variance, in the squared unit of `values`.

    Returns:
      whitened values, [B, T], unitless, 0 at masked tokens. No gradient flows back.

    Raises:
      ValueError: `ddof` is not 0 or 1.

    Example:
      >>> values = jnp.array([[1.0, 3.0], [1.0, 9.0]])
      >>> print(whiten(values, jnp.array([[1, 1], [1, 0]])).round(3))
      [[-0.707  1.414]
       [-0.707  0.   ]]
    """
    if ddof not in (0, 1):
        raise ValueError(f"whiten: ddof must be 0 or 1, got {ddof!r}.")
    kept = token_mask.astype(bool)
    values = widened(jax.lax.stop_gradient(values))
    count = jnp.sum(kept, dtype=values.dtype)
    mean = jnp.sum(values, where=kept) / jnp.maximum(count, 1)
    centred = jnp.where(kept, values - mean, 0)
    variance = jnp.sum(centred**2) / jnp.maximum(count - ddof, 1)
    largest = jnp.max(values, where=kept, initial=-jnp.inf)
    smallest = jnp.min(values, where=kept, initial=jnp.inf)
    return jnp.where(largest > smallest, centred * jax.lax.rsqrt(variance + epsilon), 0)


def reinforce_pp_advantages(
    token_rewards: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    gamma: float = 1.0,
    ddof: int = 0,
) -> Float[Array, "B T"]:
    r"""REINFORCE++: returns per token, whitened over the global batch; no groups.

        A_t = whiten( r_t + gamma * R_{t+1} )

    Args:
      token_rewards: per token, from `returns.token_rewards` and `kl.kl_rewards`.
      token_mask: 1 on tokens of the policy.
      gamma: discount per kept token.
      ddof: of the variance, 0 or 1.

    Returns:
      advantages, [B, T], 0 at masked tokens. No gradient flows back.

    References:
      REINFORCE++. https://arxiv.org/abs/2501.03262

    Example:
      >>> rewards = jnp.array([[0.0, 1.0], [0.0, 0.0]])
      >>> print(reinforce_pp_advantages(rewards, jnp.ones((2, 2), int)))
      [[ 1.  1.]
       [-1. -1.]]
    """
    returns = rewards_to_go(token_rewards, token_mask, gamma=gamma)
    return whiten(returns, token_mask, ddof=ddof)


def reinforce_pp_baseline_advantages(
    rewards: Real[Array, " B"] | Bool[Array, " B"],
    group_id: Int[Array, " B"],
    token_mask: TokenMask,
    *,
    ddof: int = 0,
) -> Float[Array, "B T"]:
    r"""REINFORCE++-baseline: less the group mean, then whitened over the global batch.

        A_{i,t} = whiten( r_i - mean_group(i) )

    One scale for the whole batch: unlike GRPO it keeps how much more a hard prompt's
    rare success stands out than an easy prompt's.

    Args:
      rewards: one per completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      token_mask: 1 on tokens of the policy.
      ddof: of the variance, 0 or 1.

    Returns:
      advantages, [B, T], 0 at masked tokens. No gradient flows back.

    References:
      REINFORCE++. https://arxiv.org/abs/2501.03262

    Example:
      >>> rewards, prompt = jnp.array([1.0, 0.0]), jnp.array([0, 0])
      >>> print(reinforce_pp_baseline_advantages(rewards, prompt, jnp.ones((2, 1))))
      [[ 1.]
       [-1.]]
    """
    centred = centred_rewards(rewards, group_id)
    return whiten(
        jnp.broadcast_to(centred[:, None], token_mask.shape), token_mask, ddof=ddof
    )
