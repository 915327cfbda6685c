"""Generalised advantage estimation for text: masks, decoupled and adaptive lambda."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Real

from rlvr_jax.core.groups import widened
from rlvr_jax.core.returns import suffix_scan
from rlvr_jax.core.shapes import TokenMask


def gae(
    token_rewards: Float[Array, "B T"],
    values: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    gamma: float = 1.0,
    lam: float | Float[Array, " B"] = 0.95,
    final_values: Float[Array, " B"] | None = None,
    episode_ends: Bool[Array, "B T"] | None = None,
) -> Float[Array, "B T"]:
    r"""Advantages of tokens under a critic.

        delta_t = r_t + gamma * V_{t'} - V_t
        A_t     = delta_t + gamma * lam * A_{t'}

    with t' the next kept token: observation tokens between two actions are skipped, and
    the step over them counts one gamma and one lambda, as in SAO. With gamma = lam = 1
    and one reward R at the end, A_t = R - V_t. VC-PPO and VAPO decouple the two uses of
    lambda: the policy's `gae(lam=0.95)` beside `value_targets(lam=1.0)`.

    Args:
      token_rewards: per token, from `returns.token_rewards`, with `kl.kl_rewards` added
        for a KL penalty in the reward.
      values: the critic's V_t, in the unit of the rewards: what it expects from token t
        on, t included.
      token_mask: 1 on tokens of the policy. Elsewhere nothing is read.
      gamma: discount per kept token.
      lam: 0 trusts the critic after one step, 1 the rewards alone; one number, or one
        per row from `length_adaptive_lambda`.
      final_values: V after the last kept token, for completions cut at the limit; 0,
        the default, says that the completion ended.
      episode_ends: True on the last token of an episode where a row holds several
        (packed); nothing flows back over it.

    Returns:
      advantages, [B, T], 0 at masked tokens. No gradient flows back.

    References:
      Schulman et al. 2016. https://arxiv.org/abs/1506.02438
      VC-PPO. https://arxiv.org/abs/2503.01491
      VAPO. https://arxiv.org/abs/2504.05118
      SAO. https://arxiv.org/abs/2607.07508

    Example:
      >>> rewards, values = jnp.array([[0.0, 0.0, 1.0]]), jnp.array([[0.5, 0.0, 0.25]])
      >>> mask = jnp.array([[1, 0, 1]])
      >>> print(gae(rewards, values, mask, lam=0.5))
      [[0.125 0.    0.75 ]]
    """
    kept = token_mask.astype(bool)
    rewards = widened(jax.lax.stop_gradient(token_rewards))
    values = widened(jax.lax.stop_gradient(values))
    goes_on = jnp.ones_like(kept) if episode_ends is None else ~episode_ends
    next_values = _next_values(values, kept, goes_on, final_values)
    delta = jnp.where(kept, rewards + gamma * next_values - values, 0)
    lam = jnp.asarray(lam, values.dtype).reshape(-1, 1)
    decays = jnp.where(goes_on, jnp.where(kept, gamma * lam, 1.0), 0.0)
    advantages = suffix_scan(delta, decays.astype(values.dtype))
    return jnp.where(kept, advantages, 0)


def value_targets(
    token_rewards: Float[Array, "B T"],
    values: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    gamma: float = 1.0,
    lam: float | Float[Array, " B"] = 1.0,
    final_values: Float[Array, " B"] | None = None,
    episode_ends: Bool[Array, "B T"] | None = None,
) -> Float[Array, "B T"]:
    """What the critic is regressed on: `gae` with the critic's own lambda, plus V.

    At lam = 1, the default, this is the Monte-Carlo return, free of the critic's bias:
    VC-PPO's choice, also for value pretraining with a frozen policy. PPO before it used
    one lambda, 0.95, for both.

    Args:
      token_rewards: per token, from `returns.token_rewards`.
      values: the critic's V_t when the completions were sampled.
      token_mask: 1 on tokens of the policy.
      gamma: discount per kept token.
      lam: of the critic.
      final_values: V after the last kept token, for cut completions.
      episode_ends: True on the last token of each episode of a packed row.

    Returns:
      targets, [B, T], 0 at masked tokens. No gradient flows back.

    References:
      VC-PPO. https://arxiv.org/abs/2503.01491

    Example:
      >>> rewards, values = jnp.array([[0.0, 1.0]]), jnp.array([[0.5, 0.25]])
      >>> print(value_targets(rewards, values, jnp.array([[1, 1]])))
      [[1. 1.]]
    """
    advantages = gae(
        token_rewards,
        values,
        token_mask,
        gamma=gamma,
        lam=lam,
        final_values=final_values,
        episode_ends=episode_ends,
    )
    kept = token_mask.astype(bool)
    return jnp.where(kept, advantages + jax.lax.stop_gradient(values), 0)


def length_adaptive_lambda(
    lengths: Real[Array, " B"], *, alpha: float
) -> Float[Array, " B"]:
    r"""A lambda that lets the reward reach the first token of a long completion.

        lam(l) = max(1 - 1 / (alpha * l), 0)

    so that sum_t lam^t = alpha * l: the share of a completion over which a TD error is
    felt does not depend on its length. At lam = 0.95 the reward of a completion of 100
    tokens reaches the first as 0.95^100 = 0.006.

    Args:
      lengths: kept tokens per completion.
      alpha: VAPO 0.05, SAO 1.5. Below a length of 1/alpha lambda would be negative and
        is 0.

    Returns:
      one lambda per row, [B].

    References:
      VAPO. https://arxiv.org/abs/2504.05118

    Example:
      >>> lengths = jnp.array([10, 40, 100, 1000, 10000])
      >>> print(length_adaptive_lambda(lengths, alpha=0.05))
      [0.    0.5   0.8   0.98  0.998]
    """
    scaled = alpha * widened(lengths)
    return 1 - 1 / jnp.maximum(scaled, 1)


def _next_values(
    values: Float[Array, "B T"],
    kept: Bool[Array, "B T"],
    goes_on: Bool[Array, "B T"],
    final_values: Float[Array, " B"] | None,
) -> Float[Array, "B T"]:
    """V at the next kept token of the same episode, else the final value."""
    rows = values.shape[0]
    final = jnp.zeros(rows, values.dtype) if final_values is None else final_values
    final = widened(jax.lax.stop_gradient(final))[:, None]
    # At each position the first kept value from there on, as a scan that starts afresh
    # at kept tokens and passes on at others.
    here = jnp.concatenate([jnp.where(kept, values, 0), final], axis=1)
    passes = jnp.concatenate([~kept & goes_on, jnp.zeros((rows, 1), bool)], axis=1)
    first_kept = suffix_scan(here, passes.astype(values.dtype))
    return jnp.where(goes_on, first_kept[:, 1:], 0)
