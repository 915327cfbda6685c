"""What a step says about itself, for any loss: means, clipping, silent groups.

Means and shares are `Ratio`s and histograms are counts, so that micro-batches and
devices can be added before the one division.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

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


class ClipRates(NamedTuple):
    """Tokens of the loss and those that were clipped, per bin of probability."""

    tokens: Int[Array, " K"]
    low: Int[Array, " K"]
    high: Int[Array, " K"]


def clips_by_probability(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    old_logprobs: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    epsilon_low: float,
    epsilon_high: float,
    bins: int = 10,
) -> ClipRates:
    r"""Clipped tokens by the probability that the old policy gave them.

    Bin k holds probabilities in [k / bins, (k + 1) / bins). A token above
    1 / (1 + epsilon_high) can never reach the upper bound: pi <= 1.

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token.
      old_logprobs: in nats; its exponential is the probability.
      token_mask: 1 on tokens of the loss.
      epsilon_low: as in `losses.clipped_loss`.
      epsilon_high: as in `losses.clipped_loss`.
      bins: number of equal bins.

    Returns:
      counts per bin: all tokens, clipped below, clipped above.

    References:
      DAPO, sec. 3.1. https://arxiv.org/abs/2503.14476

    Example:
      >>> log_ratio = jnp.log(jnp.array([[1.5, 1.0]]))
      >>> old = jnp.log(jnp.array([[0.1, 0.9]]))
      >>> rates = clips_by_probability(
      ...     log_ratio,
      ...     jnp.array([1.0]),
      ...     old,
      ...     jnp.ones((1, 2)),
      ...     epsilon_low=0.2,
      ...     epsilon_high=0.2,
      ...     bins=2,
      ... )
      >>> print(rates.tokens, rates.high)
      [1 1] [1 0]
    """
    low, high = clip_masks(
        log_ratio, advantages, epsilon_low=epsilon_low, epsilon_high=epsilon_high
    )
    mask = token_mask.astype(bool)
    probability = jnp.where(mask, jnp.exp(old_logprobs), 0.0)
    bin_of = jnp.clip((probability * bins).astype(int), 0, bins - 1)

    def count(hits):
        return jnp.zeros(bins, int).at[bin_of].add((mask & hits).astype(int))

    return ClipRates(count(True), count(low), count(high))


def clips_of_tokens(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    tokens: Int[Array, "B T"],
    token_mask: TokenMask,
    token_ids: Int[Array, " K"],
    *,
    epsilon_low: float,
    epsilon_high: float,
) -> ClipRates:
    r"""How often each of some tokens occurred, and was clipped below or above.

    CISPO's observation: "However", "Recheck", "Wait", "Aha" are unlikely under the base
    policy, so their ratio leaves the bounds at the first off-policy update and PPO
    drops them from every later one.

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token.
      tokens: the sampled ids.
      token_mask: 1 on tokens of the loss.
      token_ids: the K ids to watch.
      epsilon_low: as in `losses.clipped_loss`.
      epsilon_high: as in `losses.clipped_loss`.

    Returns:
      counts per watched id, in the order of `token_ids`.

    References:
      MiniMax-M1, sec. 3.1. https://arxiv.org/abs/2506.13585

    Example:
      >>> log_ratio = jnp.log(jnp.array([[1.5, 1.0, 1.5]]))
      >>> rates = clips_of_tokens(
      ...     log_ratio,
      ...     jnp.array([1.0]),
      ...     jnp.array([[7, 7, 4]]),
      ...     jnp.ones((1, 3)),
      ...     jnp.array([4, 7]),
      ...     epsilon_low=0.2,
      ...     epsilon_high=0.2,
      ... )
      >>> print(rates.tokens, rates.high)
      [1 2] [1 1]
    """
    low, high = clip_masks(
        log_ratio, advantages, epsilon_low=epsilon_low, epsilon_high=epsilon_high
    )
    mask = token_mask.astype(bool)

    def count(token: Int[Array, ""]) -> ClipRates:
        found = mask & (tokens == token)
        return ClipRates(found.sum(), (found & low).sum(), (found & high).sum())

    # One id at a time: never an array of [B, T, K].
    return jax.lax.map(count, token_ids)


def up_clipped_probability(
    policy_logprobs: Float[Array, "B T"],
    log_ratio: TokenOrRow,
    advantages: Advantages,
    token_mask: TokenMask,
    *,
    epsilon_high: float,
) -> Ratio:
    r"""Mean probability of the tokens that the upper bound stopped.

    DAPO saw it stay below 0.2: the bound holds back unlikely tokens, hence
    clip-higher.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token.
      token_mask: 1 on tokens of the loss.
      epsilon_high: as in `losses.clipped_loss`.

    Returns:
      the Ratio: sum of probabilities / number of such tokens.

    References:
      DAPO, sec. 3.1. https://arxiv.org/abs/2503.14476

    Example:
      >>> logprobs = jnp.log(jnp.array([[0.15, 0.9]]))
      >>> log_ratio = jnp.log(jnp.array([[1.5, 1.0]]))
      >>> mean = up_clipped_probability(
      ...     logprobs, log_ratio, jnp.array([1.0]), jnp.ones((1, 2)), epsilon_high=0.2
      ... )
      >>> print(f"{mean.value():.2f}")
      0.15
    """
    _, high = clip_masks(
        log_ratio, advantages, epsilon_low=1.0, epsilon_high=epsilon_high
    )
    return masked_mean(jnp.exp(policy_logprobs), token_mask.astype(bool) & high)


def mean_by_outcome(
    values: TokenOrRow, token_mask: TokenMask, correct: Bool[Array, " B"]
) -> tuple[Ratio, Ratio]:
    r"""Token mean over the correct rows and over the wrong ones.

    Args:
      values: as entropy or a length, per token or per row.
      token_mask: 1 on tokens of the loss.
      correct: the verifier's verdict on each row.

    Returns:
      (correct, wrong).

    Example:
      >>> entropy = jnp.array([[1.0, 3.0], [5.0, 7.0]])
      >>> right, wrong = mean_by_outcome(
      ...     entropy, jnp.ones((2, 2)), jnp.array([True, False])
      ... )
      >>> print(right.value(), wrong.value())
      2.0 6.0
    """
    mask, right = token_mask.astype(bool), correct[:, None]
    return masked_mean(values, mask & right), masked_mean(values, mask & ~right)


def mean_by_position(
    values: Float[Array, "B T"], token_mask: TokenMask
) -> tuple[Float[Array, " T"], Float[Array, " T"]]:
    r"""Sum and count of a value at each position of the completion.

    Args:
      values: as entropy, per token.
      token_mask: 1 on tokens of the loss.

    Returns:
      (sums, counts), [T] each, to be added over micro-batches and divided at the end.

    Example:
      >>> values = jnp.array([[1.0, 5.0], [3.0, 9.0]])
      >>> mask = jnp.array([[1, 1], [1, 0]])
      >>> print(*mean_by_position(values, mask))
      [4. 5.] [2. 1.]
    """
    mask = token_mask.astype(bool)
    kept = jnp.where(mask, values, 0.0)
    return kept.sum(0), mask.sum(0).astype(kept.dtype)
