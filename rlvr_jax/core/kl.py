"""KL(pi || pi_ref) from sampled tokens: estimators, in the loss or in the reward."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.ratios import LOG_RATIO_CLAMP, bounded_ratio, symmetric_abs
from rlvr_jax.core.shapes import TokenMask, TokenOrRow

ESTIMATORS = ("k1", "k2", "k3", "abs")


def kl_estimate(
    policy_logprobs: Float[Array, "B T"],
    reference_logprobs: Float[Array, "B T"],
    *,
    estimator: str = "k3",
    token_mask: TokenMask | None = None,
    input_clamp: float | None = None,
    output_clamp: float | None = None,
    straight_through: bool = False,
) -> Float[Array, "B T"]:
    r"""KL of policy and reference, estimated at each sampled token.

    With d = log pi - log pi_ref at the sampled token:

        "k1"   d                      unbiased, any sign
        "k2"   d^2 / 2                biased, never negative
        "k3"   exp(-d) - 1 + d        unbiased, never negative
        "abs"  |d|                    biased, never negative

    As a loss, differentiated per token on the policy's own samples, the expected
    gradients are: k1 zero (it belongs in the reward), k2 that of KL(pi || ref), k3
    that of KL(ref || pi), whose weight 1 - ref/pi has no bound where pi << ref.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      reference_logprobs: under the reference; a constant, no gradient flows into it.
      estimator: see above.
      token_mask: 1 on tokens of the loss; others give 0 with zero gradient, whatever
        stands there. None takes every position.
      input_clamp: bound on |d| in nats (verl, NeMo-RL 20; open-instruct 40); beyond it
        the gradient is zero. None for none, as published.
      output_clamp: bound on |estimate| in nats (verl, NeMo-RL 10), likewise.
      straight_through: the value of `estimator` with the gradient of k2 (verl's "k3+").

    Returns:
      the estimate per token in nats, [B, T].

    Raises:
      ValueError: `estimator` is unknown.

    References:
      Schulman, 2020. http://joschu.net/blog/kl-approx.html
      Tang and Munos, 2025. https://arxiv.org/abs/2506.09477

    Example:
      >>> policy, reference = jnp.array([[-1.0]]), jnp.array([[-1.5]])
      >>> print(kl_estimate(policy, reference, estimator="k2"))
      [[0.125]]
    """
    difference = policy_logprobs - jax.lax.stop_gradient(reference_logprobs)
    if token_mask is not None:
        difference = jnp.where(token_mask.astype(bool), difference, 0.0)
    clamped = _clamp(difference, input_clamp)
    if estimator == "k1":
        estimate = clamped
    elif estimator == "k2":
        estimate = clamped**2 / 2
    elif estimator == "k3":
        estimate = jnp.expm1(-clamped) + clamped
    elif estimator == "abs":
        estimate = symmetric_abs(clamped)
    else:
        raise ValueError(
            f"kl_estimate: estimator must be one of {ESTIMATORS}, got {estimator!r}. "
            "Set objective.kl_estimator."
        )
    estimate = _clamp(estimate, output_clamp)
    if straight_through:
        k2 = difference**2 / 2
        return jax.lax.stop_gradient(estimate) + (k2 - jax.lax.stop_gradient(k2))
    return estimate


def importance_corrected_kl(
    kl: Float[Array, "B T"],
    log_ratio: TokenOrRow,
    *,
    log_ratio_clamp: float = LOG_RATIO_CLAMP,
) -> Float[Array, "B T"]:
    r"""The estimate weighted by the ratio, which is NOT detached (DeepSeek-V3.2).

        D = (pi / pi_old) k3

    On samples of pi_old its expectation is KL(pi || ref) for any pi_old, and its
    expected gradient that of KL(pi || ref); with a detached ratio it would be that of
    KL(ref || pi).

    Args:
      kl: estimates per token, of `kl_estimate`; k3 in the paper.
      log_ratio: log(pi / pi_old), with its gradient.
      log_ratio_clamp: bound on |log_ratio|, in nats; `math.inf` for none.

    Returns:
      the corrected estimate per token in nats, [B, T].

    References:
      DeepSeek-V3.2. https://arxiv.org/abs/2512.02556

    Example:
      >>> kl, ratio = jnp.array([[0.5]]), jnp.array([[2.0]])
      >>> print(importance_corrected_kl(kl, jnp.log(ratio)))
      [[1.]]
    """
    return kl * bounded_ratio(log_ratio, log_ratio_clamp)


def kl_rewards(
    policy_logprobs: Float[Array, "B T"],
    reference_logprobs: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    beta: float,
) -> Float[Array, "B T"]:
    r"""The KL penalty as a reward per token: -beta k1, a constant.

        r_t = -beta (log pi - log pi_ref)

    With the return (the sum of later rewards) as advantage, REINFORCE then follows the
    full gradient of beta KL(pi || ref) of the sequence; a KL loss per token leaves out
    what a token does to later ones.

    Args:
      policy_logprobs: log-probs in nats of the policy that sampled.
      reference_logprobs: under the reference.
      token_mask: 1 on tokens of the loss; others get 0.
      beta: coefficient of the penalty.

    Returns:
      rewards per token, [B, T], without gradient.

    References:
      Ziegler et al., 2019. https://arxiv.org/abs/1909.08593

    Example:
      >>> mask = jnp.array([[1, 0]])
      >>> policy, reference = jnp.array([[-1.0, 0.0]]), jnp.array([[-1.5, jnp.nan]])
      >>> print(kl_rewards(policy, reference, mask, beta=0.1)[0, 0])
      -0.05
    """
    k1 = kl_estimate(
        policy_logprobs, reference_logprobs, estimator="k1", token_mask=token_mask
    )
    return jax.lax.stop_gradient(-beta * k1)


def _clamp(values: Array, bound: float | None) -> Array:
    return values if bound is None else jnp.clip(values, -bound, bound)
