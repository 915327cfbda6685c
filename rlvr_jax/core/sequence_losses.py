"""Losses on whole completions that are not a clipped surrogate."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.core import groups
from rlvr_jax.core.shapes import TokenMask
from rlvr_jax.types import Ratio


def mirror_descent_loss(
    policy_logprobs: Float[Array, "B T"],
    old_logprobs: Float[Array, "B T"],
    advantages: Float[Array, " B"],
    token_mask: TokenMask,
    *,
    tau: float,
) -> Float[Array, " B"]:
    r"""Kimi k1.5: regress the log-ratio of a completion on its advantage.

        l = sum_t log(pi / pi_old)              over the completion, not its mean
        L_i = -A_i l_i + (tau / 2) l_i^2  =  (A_i - tau l_i)^2 / (2 tau) - const

    The minimiser of E[r] - tau KL(pi || pi_old) is pi_old exp(r / tau) / Z, at which
    A - tau l = 0 for A = r - tau log Z: use `log_partition` as the baseline for that,
    or the group mean (`centred_rewards`), which it tends to for large tau. At pi =
    pi_old the gradient is that of REINFORCE with the same baseline.

    Args:
      policy_logprobs: of the policy being trained, in nats.
      old_logprobs: of the policy that is improved on (Kimi: refreshed every iteration).
      advantages: reward less baseline, one per completion; constants.
      token_mask: 1 on tokens of the policy.
      tau: strength of the pull to the old policy, in reward per nat. Unpublished.

    Returns:
      one loss per completion, [B]; take its mean over rows.

    References:
      Kimi k1.5, sec. 2.3.2. https://arxiv.org/abs/2501.12599

    Example:
      >>> new, old = jnp.array([[-1.0, -1.0]]), jnp.array([[-1.5, -1.0]])
      >>> ones = jnp.ones((1, 2), int)
      >>> print(mirror_descent_loss(new, old, jnp.array([2.0]), ones, tau=0.8))
      [-0.9]
    """
    kept = token_mask.astype(bool)
    log_ratio = jnp.sum(policy_logprobs - old_logprobs, axis=1, where=kept)
    advantages = jax.lax.stop_gradient(advantages)
    return -advantages * log_ratio + 0.5 * tau * log_ratio**2


def log_partition(
    rewards: Float[Array, " B"],
    group_id: Int[Array, " B"],
    *,
    tau: float,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""tau log mean_j exp(r_j / tau) over each group: the baseline tau log Z.

    Args:
      rewards: one per completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      tau: as in `mirror_descent_loss`. To infinity the group mean, to 0 the maximum.
      row_mask: rows that count; others get 0.

    Returns:
      the baseline of each row, [B], in the unit of `rewards`.

    References:
      Kimi k1.5, sec. 2.3.2. https://arxiv.org/abs/2501.12599

    Example:
      >>> rewards, prompt = jnp.array([1.0, 0.0]), jnp.array([0, 0])
      >>> print(log_partition(rewards, prompt, tau=1000.0).round(3))
      [0.5 0.5]
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    kept = groups.kept_rows(row_mask, rewards)
    largest = jnp.where(kept, groups.group_max(rewards, group_id, kept), 0)
    # Relative to the largest: exp never overflows, and the mean is at least 1/G. expm1
    # and log1p keep the digits when tau is large.
    excess = jnp.expm1((jnp.where(kept, rewards, 0) - largest) / tau)
    mean = groups.group_mean(excess, group_id, kept)
    return jnp.where(kept, largest + tau * jnp.log1p(mean), 0)


def positive_example_loss(
    policy_logprobs: Float[Array, "B T"],
    correct: Bool[Array, " B"],
    token_mask: TokenMask,
) -> Ratio:
    r"""VAPO: plain likelihood of the correct completions, added to the PPO loss.

        L = - sum_{correct i} sum_t log pi(o_{i,t}) / sum_{correct i} |o_i|

    Args:
      policy_logprobs: of the policy being trained, in nats.
      correct: the verdict on each completion.
      token_mask: 1 on tokens of the policy.

    Returns:
      the Ratio of the batch, in nats per token; 0 if nothing is correct. VAPO adds 0.1
      times its value.

    References:
      VAPO. https://arxiv.org/abs/2504.05118

    Example:
      >>> logprobs, mask = jnp.array([[-1.0, -2.0], [-9.0, -9.0]]), jnp.ones((2, 2))
      >>> print(positive_example_loss(logprobs, jnp.array([True, False]), mask).value())
      1.5
    """
    kept = token_mask.astype(bool) & correct[:, None]
    total = jnp.sum(policy_logprobs, where=kept)
    return Ratio(-total, jnp.sum(kept, dtype=total.dtype))
