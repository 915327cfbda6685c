"""Which tokens get special treatment: by covariance or by entropy.

All masks are constants. Means, ranks and quantiles are those of the batch passed in:
for a result that does not depend on micro-batches, pass the whole minibatch.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rlvr_jax.core.ranking import kth_largest, top_tokens
from rlvr_jax.core.ratios import LOG_RATIO_CLAMP, bounded_ratio, symmetric_abs
from rlvr_jax.core.shapes import Advantages, TokenMask, per_token


def token_covariance(
    policy_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: TokenMask,
) -> Float[Array, "B T"]:
    r"""Each token's share of the covariance of log-prob and advantage.

        c_t = (log pi_t - mean log pi) (A_t - mean A)

    Means are over the tokens of the loss, so the mean of c_t over them is the (biased)
    covariance. High values push entropy down.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      advantages: per row or per token.
      token_mask: 1 on tokens of the loss.

    Returns:
      c_t, [B, T], without gradient; 0 at masked tokens.

    References:
      Entropy mechanism. https://arxiv.org/abs/2505.22617

    Example:
      >>> logprobs, advantages = jnp.array([[-1.0, -3.0]]), jnp.array([[1.0, -1.0]])
      >>> print(token_covariance(logprobs, advantages, jnp.ones((1, 2))))
      [[1. 1.]]
    """
    mask = token_mask.astype(bool)
    lengths = mask.astype(float).sum(-1, keepdims=True)
    count = jnp.maximum(lengths.sum(), 1)
    advantages = per_token(advantages)
    if advantages.shape[1] == 1:
        # One number per row: its mean needs the lengths, not an array of [B, T].
        mean_advantage = jnp.where(lengths > 0, lengths * advantages, 0.0).sum() / count
    else:
        mean_advantage = jnp.where(mask, advantages, 0.0).sum() / count
    mean_logprob = jnp.where(mask, policy_logprobs, 0.0).sum() / count
    product = (policy_logprobs - mean_logprob) * (advantages - mean_advantage)
    return jax.lax.stop_gradient(jnp.where(mask, product, 0.0))


def token_count(token_mask: TokenMask, fraction: float) -> Int[Array, ""]:
    """How many tokens a fraction of the batch is: max(1, floor(fraction * tokens)).

    Args:
      token_mask: 1 on tokens of the loss.
      fraction: share of them, 0..1.

    Returns:
      the count, at least 1.

    Example:
      >>> print(token_count(jnp.ones((2, 7)), 0.25))
      3
    """
    # Exact, and on CPUs several times as fast as a sum of integers over the batch.
    tokens = token_mask.astype(bool).astype(float).sum(-1).astype(int).sum()
    return jnp.maximum(jnp.floor(fraction * tokens).astype(tokens.dtype), 1)


def clip_cov_mask(
    covariance: Float[Array, "B T"],
    candidates: TokenMask,
    count: Int[Array, ""],
    *,
    covariance_min: float = 1.0,
    covariance_max: float = 5.0,
    key: PRNGKeyArray | None = None,
) -> Bool[Array, "B T"]:
    r"""Clip-Cov: `count` tokens of high covariance lose their loss and gradient.

    They are drawn uniformly from the candidates with
    covariance_min < c_t < covariance_max; the rest of the batch keeps the clipped loss.

    Args:
      covariance: c_t, of `token_covariance`.
      candidates: 1 on tokens of the loss that the ratio clip has not removed already
        (`clip_masks`).
      count: how many to drop, of `token_count` (2e-4 of all tokens in the paper).
      covariance_min: lower end of the band.
      covariance_max: upper end.
      key: consumed; None takes the first ones in row order.

    Returns:
      True on tokens that KEEP their loss.

    References:
      Entropy mechanism. https://arxiv.org/abs/2505.22617

    Example:
      >>> covariance = jnp.array([[0.5, 2.0, 3.0, 9.0]])
      >>> print(clip_cov_mask(covariance, jnp.ones((1, 4)), jnp.array(1)))
      [[ True False  True  True]]
    """
    band = (covariance > covariance_min) & (covariance < covariance_max)
    if key is None:
        lottery = jnp.zeros_like(covariance)
    else:
        lottery = jax.random.uniform(key, covariance.shape, covariance.dtype)
    return ~top_tokens(lottery, band & candidates.astype(bool), count)


def kl_cov_loss(
    log_ratio: Float[Array, "B T"],
    advantages: Advantages,
    selected: Bool[Array, "B T"],
    *,
    kl_coefficient: float = 1.0,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    r"""KL-Cov: no clip, and a KL penalty on the tokens of highest covariance.

        l = -r A + kl_coefficient |log r|   on selected tokens
        l = -r A                            on the others

    Args:
      log_ratio: log(pi / pi_old) per token.
      advantages: per row or per token; no gradient flows into them.
      selected: the tokens to hold back: `ranking.top_tokens` of `token_covariance` (a
        fraction of 2e-4 to 2e-3 in the paper).
      kl_coefficient: strength of the penalty (1 in the paper).
      log_ratio_clamp: bound on |log_ratio| in the ratio, in nats; `math.inf` for none.

    Returns:
      the loss per token, [B, T].

    References:
      Entropy mechanism. https://arxiv.org/abs/2505.22617

    Example:
      >>> ratio, selected = jnp.array([[1.0, jnp.e]]), jnp.array([[True, True]])
      >>> print(kl_cov_loss(jnp.log(ratio), jnp.array([0.0]), selected).round(3))
      [[0. 1.]]
    """
    surrogate = -per_token(advantages) * bounded_ratio(log_ratio, log_ratio_clamp)
    penalty = kl_coefficient * symmetric_abs(log_ratio)
    return surrogate + jnp.where(selected, penalty, 0.0)


def top_entropy_mask(
    entropy: Float[Array, "B T"], token_mask: TokenMask, *, keep_fraction: float
) -> Bool[Array, "B T"]:
    r"""Tokens whose entropy is in the top share of the batch (80/20 rule).

    Kept: entropy >= quantile(1 - keep_fraction) over the tokens of the loss, with
    linear interpolation between order statistics.

    Args:
      entropy: of the policy at each token, in nats.
      token_mask: 1 on tokens of the loss.
      keep_fraction: share of tokens that keep their gradient (0.2 in the paper).

    Returns:
      True on kept tokens; False at masked ones.

    References:
      Beyond the 80/20 rule. https://arxiv.org/abs/2506.01939

    Example:
      >>> entropy = jnp.array([[0.1, 0.9, 0.5, 9.0]])
      >>> print(top_entropy_mask(entropy, jnp.array([[1, 1, 1, 0]]), keep_fraction=0.5))
      [[False  True  True False]]
    """
    mask = token_mask.astype(bool)
    entropy = jax.lax.stop_gradient(entropy)
    tokens = mask.sum()
    last = jnp.maximum(tokens - 1, 0)
    position = (1.0 - keep_fraction) * last
    # A position that rounding put beside an order statistic is that order statistic.
    nearest = jnp.round(position)
    position = jnp.where(jnp.abs(position - nearest) < 1e-6 * last, nearest, position)
    below = jnp.floor(position).astype(tokens.dtype)
    low = kth_largest(entropy, mask, tokens - below)
    high = kth_largest(entropy, mask, tokens - jnp.minimum(below + 1, last))
    threshold = jnp.where(
        position == below, low, low + (position - below) * (high - low)
    )
    return mask & (entropy >= threshold)


def clip_masks(
    log_ratio: Float[Array, "B _"],
    advantages: Advantages,
    *,
    epsilon_low: float,
    epsilon_high: float,
) -> tuple[Bool[Array, "B _"], Bool[Array, "B _"]]:
    r"""Where the clip takes the gradient away, below and above.

        low:  A < 0 and r < 1 - epsilon_low
        high: A > 0 and r > 1 + epsilon_high

    1 - (low | high) is the mask M of CISPO's unified objective: with M the weight of
    CISPO gives the gradient of PPO.

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token.
      epsilon_low: as in `losses.clipped_loss`.
      epsilon_high: as in `losses.clipped_loss`.

    Returns:
      (low, high), True where clipped.

    References:
      MiniMax-M1, sec. 3.1. https://arxiv.org/abs/2506.13585

    Example:
      >>> log_ratio = jnp.log(jnp.array([[0.5, 1.0, 1.5]]))
      >>> low, high = clip_masks(
      ...     log_ratio, jnp.array([1.0]), epsilon_low=0.2, epsilon_high=0.2
      ... )
      >>> print(low, high)
      [[False False False]] [[False False  True]]
    """
    advantages = per_token(advantages)
    ratio = jnp.exp(log_ratio)
    low = (advantages < 0) & (ratio < 1.0 - epsilon_low)
    high = (advantages > 0) & (ratio > 1.0 + epsilon_high)
    return low, high
