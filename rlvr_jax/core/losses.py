"""Surrogates: one loss per token, to be minimised.

`log_ratio` comes from `ratios`: [B, T] per token or [B, 1] per row; advantages are one
per row, [B], or one per token, [B, T], and constants. `aggregation` turns the loss per
token into a scalar.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.ratios import LOG_RATIO_CLAMP, bounded_ratio, sequence_log_ratio
from rlvr_jax.core.shapes import (
    Advantages,
    TokenMask,
    TokenOrRow,
    Weights,
    per_token,
)


def clipped_loss(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    epsilon_low: float,
    epsilon_high: float,
    dual_clip: float | None = None,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B _"]:
    r"""The clipped surrogate of PPO, GRPO and DAPO; of GSPO on sequence log-ratios.

        r = exp(log_ratio)
        l = -min(r A, clip(r, 1 - epsilon_low, 1 + epsilon_high) A)
        l = min(l, -dual_clip A)  where A < 0, if dual_clip is given

    The gradient is zero where the ratio has already moved far enough in the direction
    of the advantage: A > 0 and r > 1 + epsilon_high, or A < 0 and r < 1 - epsilon_low;
    with a dual clip also where A < 0 and r > dual_clip.

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token; no gradient flows into them.
      epsilon_low: how far below 1 the ratio still counts (PPO, DAPO 0.2; GSPO 3e-4).
      epsilon_high: how far above 1 (PPO 0.2; DAPO clip-higher 0.28; GSPO 4e-4).
      dual_clip: largest ratio that still counts against a negative advantage: c of
        dual-clip PPO (3), delta of INTELLECT-2's two-sided clip (4); above
        1 + epsilon_high the two are the same formula. None for none.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, unaggregated; [B, 1] if both arguments are per row.

    Raises:
      ValueError: `dual_clip` does not exceed 1.

    References:
      PPO, eq. 7. https://arxiv.org/abs/1707.06347
      DAPO, sec. 3.1. https://arxiv.org/abs/2503.14476
      Dual clip. https://arxiv.org/abs/1912.09729
      INTELLECT-2. https://arxiv.org/abs/2505.07291

    Example:
      >>> log_ratio = jnp.log(jnp.array([[0.5, 1.25, 2.0]]))
      >>> advantages = jnp.array([1.0])
      >>> print(clipped_loss(log_ratio, advantages, epsilon_low=0.2, epsilon_high=0.28))
      [[-0.5  -1.25 -1.28]]
    """
    advantages = per_token(advantages)
    ratio = bounded_ratio(log_ratio, log_ratio_clamp)
    # The min of the formula, by the sign of A: only one of the bounds can be active.
    if_positive = jnp.minimum(ratio, 1.0 + epsilon_high)
    if_negative = jnp.maximum(ratio, 1.0 - epsilon_low)
    if dual_clip is not None:
        if dual_clip <= 1.0:
            raise ValueError(
                "clipped_loss: dual_clip is the largest ratio that counts against a "
                f"negative advantage and must exceed 1, got {dual_clip}. Set "
                "objective.dual_clip, or leave it out."
            )
        if_negative = jnp.minimum(if_negative, dual_clip)
    return -advantages * jnp.where(advantages > 0, if_positive, if_negative)


def ratio_loss(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B _"]:
    r"""The surrogate without a clip: l = -r A, importance-weighted REINFORCE.

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token; no gradient flows into them.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, unaggregated.

    References:
      CPI surrogate, eq. 6 of PPO. https://arxiv.org/abs/1707.06347

    Example:
      >>> print(ratio_loss(jnp.log(jnp.array([[2.0]])), jnp.array([3.0])))
      [[-6.]]
    """
    return -per_token(advantages) * bounded_ratio(log_ratio, log_ratio_clamp)


def reinforce_loss(
    policy_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    weights: Weights | None = None,
) -> Float[Array, "B T"]:
    r"""REINFORCE: l = -w A log pi; no ratio, no clip (GPG, RGRA, RLOO; MIS-PO).

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      advantages: per row or per token; no gradient flows into them.
      weights: importance weights or a mask of kept tokens, per token or per row; no
        gradient flows into them. None: 1 everywhere.

    Returns:
      the loss per token, [B, T].

    References:
      Williams, 1992. https://doi.org/10.1007/BF00992696
      RGRA (group-relative advantages, KL kept). https://arxiv.org/abs/2603.18756

    Example:
      >>> print(reinforce_loss(jnp.array([[-1.0, -3.0]]), jnp.array([2.0])))
      [[2. 6.]]
    """
    scale = per_token(advantages)
    if weights is not None:
        scale = scale * jax.lax.stop_gradient(weights)
    return -scale * policy_logprobs


def dro_loss(
    policy_logprobs: Float[Array, "B T"],
    log_ratio: Float[Array, "B T"],
    advantages: Advantages,
    *,
    beta: float,
) -> Float[Array, "B T"]:
    r"""DRO: REINFORCE with a quadratic pull towards the old policy.

        l = -(A log pi - (beta / 2) d^2)

    with d the token log-ratio; the gradient is -(A - beta d) grad log pi.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      log_ratio: d = log(pi / pi_old) per token.
      advantages: per row or per token; no gradient flows into them.
      beta: strength of the pull.

    Returns:
      the loss per token, [B, T].

    References:
      DRO. https://arxiv.org/abs/2405.19107
    """
    return reinforce_loss(policy_logprobs, advantages) + beta / 2 * log_ratio**2


def sapo_loss(
    log_ratio: TokenOrRow,
    advantages: Advantages,
    *,
    tau_positive: float = 1.0,
    tau_negative: float = 1.05,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B _"]:
    r"""SAPO: a smooth gate in place of the clip.

        l = -A (4 / tau) sigmoid(tau (r - 1)),   tau = tau_positive if A > 0
                                                       tau_negative otherwise

    The gradient weight is A r sech^2(tau (r - 1) / 2): A on policy, falling to both
    sides, never exactly zero. Published with the sequence mean as aggregation.

    Args:
      log_ratio: log(pi / pi_old), per token or per row.
      advantages: per row or per token; no gradient flows into them.
      tau_positive: sharpness of the gate for A > 0.
      tau_negative: for A <= 0; larger, so that pushes down fade sooner.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the loss per token, unaggregated.

    References:
      SAPO. https://arxiv.org/abs/2511.20347

    Example:
      >>> print(sapo_loss(jnp.zeros((1, 1)), jnp.array([1.0])))
      [[-2.]]
    """
    advantages = per_token(advantages)
    tau = jnp.where(advantages > 0, tau_positive, tau_negative)
    gate = jax.nn.sigmoid(tau * (bounded_ratio(log_ratio, log_ratio_clamp) - 1.0))
    return -advantages * gate * 4.0 / tau


def gmpo_loss(
    log_ratio: Float[Array, "B T"],
    advantages: Float[Array, " B"],
    token_mask: TokenMask,
    *,
    epsilon_low: float = 0.4,
    epsilon_high: float = 0.4,
    clip_level: str = "token",
) -> Float[Array, "B 1"]:
    r"""GMPO: the geometric mean of a row's ratios, each clipped in log space first.

        d~_it = min(d_it, epsilon_high) if A_i > 0, max(d_it, -epsilon_low) otherwise
        l_i = -A_i exp((1 / |o_i|) sum_t d~_it)

    with d the token log-ratios: ratios live in (e^-epsilon_low, e^epsilon_high).

    Args:
      log_ratio: log(pi / pi_old) per token.
      advantages: one per row; no gradient flows into them.
      token_mask: 1 on tokens of the loss.
      epsilon_low: bound of the log-ratio below, in nats (0.4 in the paper).
      epsilon_high: bound above.
      clip_level: "token", or "sequence": the clip acts on sum_t d_it (the paper's
        ablation).

    Returns:
      one loss per row, [B, 1], to be averaged over rows ("sequence_mean"); empty rows
      have ratio 1.

    Raises:
      ValueError: `clip_level` is unknown.

    References:
      GMPO. https://arxiv.org/abs/2507.20673

    Example:
      >>> log_ratio = jnp.array([[2.0, 0.0, 0.0, 0.0]])
      >>> print(gmpo_loss(log_ratio, jnp.array([1.0]), jnp.ones((1, 4))))
      [[-1.105171]]
    """
    advantages = per_token(advantages)
    mask = token_mask.astype(bool)

    def clip(values):
        return jnp.where(
            advantages > 0,
            jnp.minimum(values, epsilon_high),
            jnp.maximum(values, -epsilon_low),
        )

    if clip_level == "token":
        mean = sequence_log_ratio(clip(log_ratio), mask)
    elif clip_level == "sequence":
        total = jnp.where(mask, log_ratio, 0.0).sum(-1, keepdims=True)
        mean = clip(total) / jnp.maximum(mask.sum(-1, keepdims=True), 1)
    else:
        raise ValueError(
            f"gmpo_loss: clip_level must be 'token' or 'sequence', got {clip_level!r}."
        )
    return -advantages * bounded_ratio(mean)
