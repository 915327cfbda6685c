"""Surrogates that weigh log pi with a constant: l = -w A log pi, w without gradient.

Their gradient is w A grad log pi: the weight says how much each token counts, and w = 0
drops it. The value of such a loss says nothing; its gradient does.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.core.losses import reinforce_loss
from rlvr_jax.core.ratios import LOG_RATIO_CLAMP, bounded_ratio
from rlvr_jax.core.shapes import Advantages, TokenMask, TokenOrRow, per_token


def cispo_loss(
    policy_logprobs: Float[Array, "B T"],
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    epsilon_low: float = 1.0,
    epsilon_high: float,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    r"""CISPO by distances from 1, as published (MiniMax-M1; verl, slime, NeMo-RL).

        l = -sg[clip(r, 1 - epsilon_low, 1 + epsilon_high)] A log pi

    The weight is bounded, the token never dropped: its gradient vanishes only where
    A = 0. `cispo_capped_loss` takes the bound itself (TRL, ScaleRL).

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token; no gradient flows into them.
      epsilon_low: distance of the lower bound from 1; 1 means none, as in the paper.
      epsilon_high: distance of the upper bound from 1; not published by MiniMax.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, [B, T].

    References:
      MiniMax-M1, sec. 3.1. https://arxiv.org/abs/2506.13585

    Example:
      >>> logprobs, log_ratio = jnp.array([[-1.0]]), jnp.log(jnp.array([[1.5]]))
      >>> print(cispo_loss(logprobs, log_ratio, jnp.array([1.0]), epsilon_high=0.25))
      [[1.25]]
    """
    return cispo_capped_loss(
        policy_logprobs,
        log_ratio,
        advantages,
        ratio_min=1.0 - epsilon_low,
        ratio_max=1.0 + epsilon_high,
        log_ratio_clamp=log_ratio_clamp,
    )


def cispo_capped_loss(
    policy_logprobs: Float[Array, "B T"],
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    ratio_max: float,
    ratio_min: float = 0.0,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    r"""CISPO by the bound on the weight itself, as in TRL and ScaleRL.

        l = -sg[clip(r, ratio_min, ratio_max)] A log pi

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token; no gradient flows into them.
      ratio_max: largest weight (ScaleRL 4 to 8). TRL calls it epsilon_high.
      ratio_min: smallest weight; 0 means none.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, [B, T].

    References:
      ScaleRL. https://arxiv.org/abs/2510.13786
    """
    ratio = bounded_ratio(log_ratio, log_ratio_clamp)
    weights = jnp.clip(ratio, ratio_min, ratio_max)
    return reinforce_loss(policy_logprobs, advantages, weights)


def dis_loss(
    policy_logprobs: Float[Array, "B T"],
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    epsilon_low: float,
    epsilon_high: float,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    r"""DIS of SAO and GLM-5: tokens outside the band are dropped, whatever the sign.

        l = -sg[f(r)] A log pi,   f(r) = r if 1 - epsilon_low < r < 1 + epsilon_high
                                         0 otherwise

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      log_ratio: log(pi / mu), mu the ROLLOUT policy: pass `rollout_logprobs` to
        `ratios.token_log_ratio`.
      advantages: per row or per token; no gradient flows into them.
      epsilon_low: distance of the band's lower end from 1 (reasoning 0.3, code 0.8).
      epsilon_high: distance of its upper end (reasoning 5, code 3).
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, [B, T].

    References:
      SAO. https://arxiv.org/abs/2607.07508 (f is detached here; the paper does not say)

    Example:
      >>> logprobs, ratio = jnp.array([[-1.0, -1.0]]), jnp.array([[2.0, 7.0]])
      >>> loss = dis_loss(
      ...     logprobs, jnp.log(ratio), jnp.ones(1), epsilon_low=0.3, epsilon_high=5.0
      ... )
      >>> print(loss)
      [[2. 0.]]
    """
    ratio = bounded_ratio(log_ratio, log_ratio_clamp)
    inside = (ratio > 1.0 - epsilon_low) & (ratio < 1.0 + epsilon_high)
    return reinforce_loss(policy_logprobs, advantages, jnp.where(inside, ratio, 0.0))


def sign_banded_loss(
    policy_logprobs: Float[Array, "B T"],
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    band_positive: tuple[float | Float[Array, ""], ...],
    band_negative: tuple[float | Float[Array, ""], ...],
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    """Four bounds: tokens outside a band are dropped, the band by the advantage's sign.

        l = -sg[f(r)] A log pi,   f(r) = r if low < r < high else 0

    with (low, high) = band_positive where A > 0, band_negative elsewhere.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      log_ratio: log(pi / mu) per token or row, mu the rollout policy.
      advantages: per row or per token; no gradient flows into them.
      band_positive: bounds of the ratio where A > 0.
      band_negative: bounds where A <= 0. MiMo-V2.6 moves both bands by the entropy
        (`entropy.shifted_bands`); its values are not published.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, [B, T].

    Example:
      >>> logprobs, ratio = jnp.array([[-1.0, -1.0]]), jnp.array([[1.8, 0.9]])
      >>> advantages = jnp.array([[1.0, -1.0]])
      >>> bands = {"band_positive": (0.5, 2.0), "band_negative": (0.8, 1.25)}
      >>> print(sign_banded_loss(logprobs, jnp.log(ratio), advantages, **bands))
      [[ 1.8 -0.9]]
    """
    ratio = bounded_ratio(log_ratio, log_ratio_clamp)
    up = per_token(advantages) > 0
    low = jnp.where(up, band_positive[0], band_negative[0])
    high = jnp.where(up, band_positive[1], band_negative[1])
    weights = jnp.where((ratio > low) & (ratio < high), ratio, 0.0)
    return reinforce_loss(policy_logprobs, advantages, weights)


def dppo_loss(
    policy_logprobs: Float[Array, "B T"],
    old_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: TokenMask,
    *,
    divergence: str = "tv",
    threshold_low: float,
    threshold_high: float,
    ratio_max: float = 20.0,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    r"""DPPO: a trust region on the probability of the sampled token, not on its ratio.

        l = -v sg[min(r, ratio_max)] A log pi,   v from `dppo_mask`

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      old_logprobs: under the policy of the start of the step; a constant.
      advantages: per row or per token; no gradient flows into them.
      token_mask: 1 on tokens of the loss; others get loss 0.
      divergence: "tv" or "kl", of the two-way choice sampled token / any other.
      threshold_low: trust region for moves down (A <= 0).
      threshold_high: trust region for moves up (A > 0).
      ratio_max: largest importance weight.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, [B, T].

    Raises:
      ValueError: `divergence` is unknown.

    References:
      DPPO. https://arxiv.org/abs/2602.04879
    """
    mask = token_mask.astype(bool)
    policy = jnp.where(mask, policy_logprobs, 0.0)
    old = jax.lax.stop_gradient(jnp.where(mask, old_logprobs, 0.0))
    kept = dppo_mask(
        policy,
        old,
        advantages,
        divergence=divergence,
        threshold_low=threshold_low,
        threshold_high=threshold_high,
    )
    ratio = bounded_ratio(policy - old, log_ratio_clamp)
    weights = jnp.where(kept & mask, jnp.minimum(ratio, ratio_max), 0.0)
    return reinforce_loss(policy, advantages, weights)


def dppo_mask(
    policy_logprobs: Float[Array, "B T"],
    old_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    *,
    divergence: str = "tv",
    threshold_low: float,
    threshold_high: float,
) -> Bool[Array, "B T"]:
    r"""Which tokens are inside DPPO's trust region, or on their way back into it.

    With p = pi, q = pi_old of the sampled token:

        "tv": A > 0: p - q <= threshold_high,   else p - q >= -threshold_low
        "kl": KL((q, 1-q) || (p, 1-p)) <= threshold, or p has moved against A

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      old_logprobs: under the policy of the start of the step.
      advantages: per row or per token.
      divergence: "tv" (total variation) or "kl", see above.
      threshold_low: for A <= 0; a probability for "tv", nats for "kl".
      threshold_high: for A > 0.

    Returns:
      True where the token keeps its gradient.

    Raises:
      ValueError: `divergence` is unknown.

    References:
      DPPO. https://arxiv.org/abs/2602.04879
    """
    positive = per_token(advantages) > 0
    new, old = jnp.exp(policy_logprobs), jnp.exp(old_logprobs)
    if divergence == "tv":
        moved, up, down = new - old, threshold_high, -threshold_low
        return jnp.where(positive, moved <= up, moved >= down)
    if divergence == "kl":
        # 1e-8 as in verl: 1 - p rounds to 0 for p near 1.
        rest = jnp.log((1.0 - old + 1e-8) / (1.0 - new + 1e-8))
        distance = old * (old_logprobs - policy_logprobs) + (1.0 - old) * rest
        return jnp.where(
            positive,
            (distance <= threshold_high) | (new <= old),
            (distance <= threshold_low) | (new >= old),
        )
    raise ValueError(
        f"dppo_mask: divergence must be 'tv' or 'kl', got {divergence!r}. Set "
        "objective.divergence."
    )


def vespo_weights(
    log_ratio: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: TokenMask,
    *,
    k_positive: float = 2.0,
    lambda_positive: float = 3.0,
    k_negative: float = 3.0,
    lambda_negative: float = 2.0,
    log_importance: Float[Array, "B 1"] | None = None,
) -> Float[Array, "B _"]:
    r"""VESPO: the whole row's ratio, softly bounded by a gamma weight.

        w_i = exp(sum_t d_it),   phi(w) = w^k e^(lambda (1 - w)),   phi(1) = 1

    with d the token log-ratios and (k, lambda) chosen by the sign of A. The loss is
    `reinforce_loss` with these weights.

    Args:
      log_ratio: log(pi / pi_old) per token.
      advantages: per row or per token.
      token_mask: 1 on tokens of the loss.
      k_positive: exponent for A >= 0.
      lambda_positive: decay for A >= 0.
      k_negative: exponent for A < 0.
      lambda_negative: decay for A < 0.
      log_importance: log of the row's pi_old / mu, added to log w_i when the sampler
        mu differs from pi_old; None: 0.

    Returns:
      phi(w_i) without gradient, [B, 1], or [B, T] for advantages per token.

    References:
      VESPO (constants as in TRL 1.16). https://arxiv.org/abs/2602.10693

    Example:
      >>> log_ratio, mask = jnp.log(jnp.array([[1.0, 2.0]])), jnp.ones((1, 2))
      >>> print(vespo_weights(log_ratio, jnp.array([1.0]), mask))
      [[0.19914827]]
    """
    advantages = per_token(advantages)
    clamp = LOG_RATIO_CLAMP
    log_ratio = jax.lax.stop_gradient(jnp.clip(log_ratio, -clamp, clamp))
    log_weight = jnp.where(token_mask.astype(bool), log_ratio, 0.0)
    log_weight = log_weight.sum(-1, keepdims=True)
    if log_importance is not None:
        log_weight = log_weight + log_importance
    log_weight = jnp.clip(log_weight, math.log(1e-8), clamp)
    k = jnp.where(advantages >= 0, k_positive, k_negative)
    decay = jnp.where(advantages >= 0, lambda_positive, lambda_negative)
    return jnp.exp(decay + k * log_weight - decay * jnp.exp(log_weight))
