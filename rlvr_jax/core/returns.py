"""Rewards per token and their sums over what follows, skipping tokens not ours.

Masked tokens (padding, observations of a tool) take no time: a sum passes over them
without a discount, so a completion interrupted by a hundred observation tokens has the
returns of the same completion without them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.groups import widened
from rlvr_jax.core.shapes import TokenMask


# Jitted here, so that a call from a notebook compiles one program, not each round.
@jax.jit
def suffix_scan(
    increments: Float[Array, "B T"], decays: Float[Array, "B T"]
) -> Float[Array, "B T"]:
    r"""x_t = increments_t + decays_t * x_{t+1}, from the last position (x_{T+1} = 0).

    In log2(T) parallel rounds rather than T steps.

    Args:
      increments: what each position adds.
      decays: what is left of the later sum; 0 starts afresh, 1 passes it on.

    Returns:
      x, [B, T].

    Example:
      >>> print(suffix_scan(jnp.array([[1.0, 1.0, 4.0]]), jnp.array([[0.5, 0.5, 0.5]])))
      [[2.5 3.  4. ]]
    """

    def join(later, earlier):
        later_decay, later_sum = later
        decay, increment = earlier
        return decay * later_decay, increment + decay * later_sum

    _, sums = jax.lax.associative_scan(join, (decays, increments), reverse=True, axis=1)
    return sums


def token_rewards(
    rewards: Float[Array, " B"], token_mask: TokenMask
) -> Float[Array, "B T"]:
    r"""One reward per completion, paid at its last kept token.

        r_t = r  where t is the last kept token, else 0

    Add `kl.kl_rewards` for the KL penalty "in the reward" of PPO-RLHF, RLOO and
    REINFORCE++.

    Args:
      rewards: one per completion. A row without kept tokens has nowhere to put it.
      token_mask: 1 on tokens of the policy.

    Returns:
      rewards per token, [B, T], 0 at masked tokens. No gradient flows back.

    Example:
      >>> mask = jnp.array([[1, 1, 0], [1, 1, 1]])
      >>> print(token_rewards(jnp.array([1.0, 2.0]), mask))
      [[0. 1. 0.]
       [0. 0. 2.]]
    """
    kept = token_mask.astype(bool)
    rewards = widened(jax.lax.stop_gradient(rewards))
    followers = jnp.cumsum(kept[:, ::-1], axis=1)[:, ::-1]
    return jnp.where(kept & (followers == 1), rewards[:, None], 0)


def rewards_to_go(
    token_rewards: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    gamma: float = 1.0,
) -> Float[Array, "B T"]:
    r"""What each token and its successors earn: R_t = r_t + gamma * R_{next kept}.

    Args:
      token_rewards: per token; what stands at masked tokens is not read.
      token_mask: 1 on tokens of the policy.
      gamma: discount per kept token.

    Returns:
      returns, [B, T], in the unit of the rewards, 0 at masked tokens. No gradient
      flows back.

    Example:
      >>> rewards = jnp.array([[0.0, 7.0, 0.0, 1.0]])
      >>> print(rewards_to_go(rewards, jnp.array([[1, 0, 1, 1]]), gamma=0.5))
      [[0.25 0.   0.5  1.  ]]
    """
    kept = token_mask.astype(bool)
    rewards = widened(jax.lax.stop_gradient(token_rewards))
    sums = suffix_scan(
        jnp.where(kept, rewards, 0), jnp.where(kept, gamma, 1.0).astype(rewards.dtype)
    )
    return jnp.where(kept, sums, 0)
