"""Corrections for samples of another policy: weights to multiply, masks to apply.

Samples come from mu (the sampler, or an older policy), the loss is about pi. Here
`log_ratio` = log pi - log mu at the sampled tokens, from `ratios.token_log_ratio` with
mu in the place of the old policy. Weights and masks are constants; the loss per token
is multiplied by them, before the KL term is added. After a mask, either keep the
original denominator (AReaL) or count what is left (verl): `token_weights` gets the
mask of your choice.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.core.ratios import LOG_RATIO_CLAMP, bounded_ratio, sequence_log_ratio
from rlvr_jax.core.shapes import Advantages, TokenMask, TokenOrRow, per_token

WEIGHT_LEVELS = ("token", "sequence", "sequence_mean")
REJECTION_LEVELS = ("token", "sequence_sum", "sequence_mean", "sequence_max")
REJECTION_STATISTICS = ("ratio", "k2", "k3")


def importance_weights(
    log_ratio: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    level: str = "token",
    lower: float = 0.0,
    upper: float = math.inf,
    outside: str = "clamp",
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B _"]:
    r"""Importance weights pi / mu, bounded.

        "token"          w_it = r_it
        "sequence"       w_i  = prod_t r_it            unbiased, variance grows with T
        "sequence_mean"  w_i  = (prod_t r_it)^(1/|o_i|)

    then, outside [lower, upper]: "clamp" to the nearer bound (TIS; Olmo 3: token level,
    upper 2), or "zero" (masked importance sampling; IcePop with both bounds).

    Args:
      log_ratio: log(pi / mu) per token.
      token_mask: 1 on tokens of the loss.
      level: see above.
      lower: smallest weight; 0 for none.
      upper: largest weight; `math.inf` for none.
      outside: "clamp" or "zero".
      log_ratio_clamp: bound on the |log| of a weight, in nats; `math.inf` for none.

    Returns:
      weights without gradient: [B, T] with 0 at masked tokens, or [B, 1].

    Raises:
      ValueError: `level` or `outside` is unknown.

    References:
      TIS. https://fengyao.notion.site/off-policy-rl
      Olmo 3: rho_clamp in https://github.com/allenai/open-instruct
      IcePop. https://ringtech.notion.site/icepop

    Example:
      >>> log_ratio = jnp.log(jnp.array([[0.5, 3.0, 9.0]]))
      >>> mask = jnp.array([[1, 1, 0]])
      >>> print(importance_weights(log_ratio, mask, upper=2.0))
      [[0.5 2.  0. ]]
      >>> print(importance_weights(log_ratio, mask, upper=2.0, outside="zero"))
      [[0.5 0.  0. ]]
    """
    mask = token_mask.astype(bool)
    log_ratio = jnp.where(mask, jax.lax.stop_gradient(log_ratio), 0.0)
    if level == "token":
        weights = bounded_ratio(log_ratio, log_ratio_clamp)
    elif level == "sequence":
        weights = bounded_ratio(log_ratio.sum(-1, keepdims=True), log_ratio_clamp)
    elif level == "sequence_mean":
        weights = bounded_ratio(sequence_log_ratio(log_ratio, mask), log_ratio_clamp)
    else:
        raise ValueError(
            f"importance_weights: level must be one of {WEIGHT_LEVELS}, got {level!r}."
        )
    if outside == "clamp":
        weights = jnp.clip(weights, lower, upper)
    elif outside == "zero":
        weights = jnp.where((weights >= lower) & (weights <= upper), weights, 0.0)
    else:
        raise ValueError(
            f"importance_weights: outside must be 'clamp' or 'zero', got {outside!r}."
        )
    return jnp.where(mask, weights, 0.0) if level == "token" else weights


def rejection_mask(
    log_ratio: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    statistic: str = "ratio",
    level: str = "sequence_mean",
    lower: float | None = None,
    upper: float | None = None,
) -> Bool[Array, "B T"]:
    r"""Drops tokens or whole rows whose distance from the sampler is out of bounds.

    With d = log(pi / mu) at a token, the statistic is

        "ratio"  e^d           (of rows: e^sum d, e^mean d, e^max d)
        "k2"     d^2 / 2
        "k3"     e^d - 1 - d

    "ratio" at "sequence_mean" is the geometric mean of the row's ratios.

    Args:
      log_ratio: d per token.
      token_mask: 1 on tokens of the loss.
      statistic: see above.
      level: "token", or a row's "sequence_sum", "sequence_mean" or "sequence_max".
      lower: smallest value kept; None for none.
      upper: largest value kept; None for none.

    Returns:
      True on tokens of `token_mask` that are kept.

    Raises:
      ValueError: `statistic` or `level` is unknown.

    References:
      verl, rollout correction. https://verl.readthedocs.io/en/latest/algo/rollout_corr.html

    Example:
      >>> log_ratio = jnp.log(jnp.array([[1.0, 1.0], [4.0, 1.0]]))
      >>> print(rejection_mask(log_ratio, jnp.ones((2, 2)), upper=1.5))
      [[ True  True]
       [False False]]
    """
    mask = token_mask.astype(bool)
    log_ratio = jnp.where(mask, jax.lax.stop_gradient(log_ratio), 0.0)
    log_ratio = jnp.clip(log_ratio, -LOG_RATIO_CLAMP, LOG_RATIO_CLAMP)
    if statistic == "ratio":
        values = log_ratio
    elif statistic == "k2":
        values = log_ratio**2 / 2
    elif statistic == "k3":
        values = jnp.expm1(log_ratio) - log_ratio
    else:
        raise ValueError(
            f"rejection_mask: statistic must be one of {REJECTION_STATISTICS}, got "
            f"{statistic!r}."
        )
    if level == "sequence_sum":
        values = values.sum(-1, keepdims=True)
    elif level == "sequence_mean":
        values = sequence_log_ratio(values, mask)
    elif level == "sequence_max":
        highest = jnp.where(mask, values, -jnp.inf).max(-1, keepdims=True)
        values = jnp.where(mask.any(-1, keepdims=True), highest, 0.0)
    elif level != "token":
        raise ValueError(
            f"rejection_mask: level must be one of {REJECTION_LEVELS}, got {level!r}."
        )
    # Ratios are compared as logarithms: a product of many need not fit a float.
    to_scale = math.log if statistic == "ratio" else float
    kept = mask
    if lower is not None and not (statistic == "ratio" and lower <= 0.0):
        kept = kept & (values >= to_scale(lower))
    if upper is not None:
        kept = kept & (values <= to_scale(upper))
    return kept


def mispo_mask(
    log_ratio: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    token_band: tuple[float, float] = (0.5, 2.0),
    sequence_band: tuple[float, float] = (0.996, 1.001),
) -> Bool[Array, "B T"]:
    r"""MIS-PO: filters instead of weights; what is kept has weight exactly 1.

    A token is kept if its ratio x_t is in `token_band` and the geometric mean of its
    row's ratios is in `sequence_band`. The loss of the kept tokens is REINFORCE.

    Args:
      log_ratio: log x = log(pi_old / mu): the training engine against the sampler.
      token_mask: 1 on tokens of the loss.
      token_band: lowest and highest token ratio.
      sequence_band: lowest and highest geometric mean.

    Returns:
      True on kept tokens.

    References:
      Step 3.5 Flash. https://arxiv.org/abs/2602.10604

    Example:
      >>> log_ratio = jnp.full((1, 4), 0.002)
      >>> print(mispo_mask(log_ratio, jnp.ones((1, 4))).any())
      False
    """
    kept = rejection_mask(
        log_ratio, token_mask, level="token", lower=token_band[0], upper=token_band[1]
    )
    whole_row = rejection_mask(
        log_ratio, token_mask, lower=sequence_band[0], upper=sequence_band[1]
    )
    return kept & whole_row


def negative_sequence_mask(
    policy_logprobs: Float[Array, "B T"],
    rollout_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: TokenMask,
    *,
    threshold: float,
) -> Bool[Array, "B _"]:
    r"""DeepSeek-V3.2's off-policy mask: stale rows are not pushed down.

        dropped: A < 0 and (1 / |o_i|) sum_t log(mu / pi) > threshold

    It multiplies the surrogate, not the KL term; rows with A >= 0 always stay.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      rollout_logprobs: under the sampler, so that the mismatch of engines counts too.
        A token without one (NaN) gives no evidence.
      advantages: per row or per token.
      token_mask: 1 on tokens of the loss.
      threshold: delta, in nats per token; not published (TRL suggests 0.5).

    Returns:
      True where kept: [B, 1], or [B, T] for advantages per token.

    References:
      DeepSeek-V3.2. https://arxiv.org/abs/2512.02556

    Example:
      >>> policy, rollout = jnp.array([[-2.0], [-2.0]]), jnp.array([[-1.0], [-1.0]])
      >>> advantages, mask = jnp.array([-1.0, 1.0]), jnp.ones((2, 1))
      >>> print(
      ...     negative_sequence_mask(policy, rollout, advantages, mask, threshold=0.5)
      ... )
      [[False]
       [ True]]
    """
    stale = jax.lax.stop_gradient(rollout_logprobs - policy_logprobs)
    stale = jnp.where(jnp.isnan(stale), 0.0, stale)
    distance = sequence_log_ratio(stale, token_mask)
    return (per_token(advantages) >= 0) | (distance <= threshold)


def normalize_weights(weights: TokenOrRow, token_mask: TokenMask) -> TokenOrRow:
    """Weights divided by their mean, so that a correction does not change the step.

    Args:
      weights: of `importance_weights`, per token or per row.
      token_mask: 1 on tokens of the loss. Weights per token are averaged over its
        tokens, weights per row over the rows that have any.

    Returns:
      weights of mean 1, in the same shape; unchanged if the mean is 0.

    Example:
      >>> print(normalize_weights(jnp.array([[0.5, 1.5, 7.0]]), jnp.array([[1, 1, 0]])))
      [[0.5 1.5 7. ]]
    """
    mask = token_mask.astype(bool)
    if weights.shape[-1] == 1:
        mask = mask.any(-1, keepdims=True)
    total = jnp.where(mask, weights, 0.0).sum()
    mean = total / jnp.maximum(mask.sum(), 1)
    return weights / jnp.where(mean > 0, mean, 1.0)
