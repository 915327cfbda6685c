"""Estimators of KL(pi || pi_ref) from sampled tokens."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.shapes import TokenMask


def kl_estimate(
    policy_logprobs: Float[Array, "B T"],
    reference_logprobs: Float[Array, "B T"],
    *,
    estimator: str = "k3",
    token_mask: TokenMask | None = None,
) -> Float[Array, "B T"]:
    r"""KL of policy and reference, estimated at each sampled token.

    With d = log pi - log pi_ref at the sampled token:

        k1 = d                      unbiased, any sign
        k2 = d^2 / 2                biased, never negative
        k3 = exp(-d) - 1 + d        unbiased, never negative

    As a loss, differentiated per token on the policy's own samples, the expected
    gradients are: k1 zero, k2 that of KL(pi || ref), k3 that of KL(ref || pi).

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      reference_logprobs: under the reference; a constant, no gradient flows into it.
      estimator: "k1", "k2" or "k3".
      token_mask: 1 on tokens of the loss; others give 0 with zero gradient, whatever
        stands there. None takes every position.

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
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference**2 / 2
    if estimator == "k3":
        return jnp.expm1(-difference) + difference
    raise ValueError(
        f"kl_estimate: estimator must be 'k1', 'k2' or 'k3', got {estimator!r}. "
        "Set objective.kl_estimator."
    )
