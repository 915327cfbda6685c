"""Does the reasoning depend on the question? RAGEN-2's retrieval view of a policy."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class InputDependence(NamedTuple):
    """Scalars over all reasonings."""

    mutual_information: Float[Array, ""]
    """I(reasoning; question) per token, in nats; 0 for a template, at most log P."""
    retrieval_accuracy: Float[Array, ""]
    """Share of reasonings whose own question explains them best; chance is 1/P."""
    z_score: Float[Array, ""]
    """Mean of (matched - marginal) / (std of the marginals + 1e-3)."""


def input_dependence(
    scores: Float[Array, "P K P"], lengths: Int[Array, "P K"]
) -> InputDependence:
    r"""How much a sampled reasoning says about the question it was sampled for.

    With L[i, k, j] = log p(Z_ik | X_j), the k-th reasoning of question i scored under
    question j, and |Z_ik| its tokens:

        matched_ik  = L[i, k, i] / |Z_ik|
        marginal_ik = log((1/P) sum_j exp L[i, k, j]) / |Z_ik|
        MI          = mean(matched - marginal)

    Entropy cannot tell a template from thought: both may be high. This can.

    Args:
      scores: log-probs of whole reasonings, [questions, samples, questions].
      lengths: tokens of each reasoning.

    Returns:
      `InputDependence`.

    References:
      RAGEN-2. https://github.com/RAGEN-AI/RAGEN

    Example:
      >>> scores = jnp.zeros((4, 2, 4))
      >>> print(input_dependence(scores, jnp.ones((4, 2), int)).mutual_information)
      0.0
    """
    questions = scores.shape[0]
    tokens = jnp.maximum(lengths, 1)
    own = jnp.arange(questions)[:, None]
    matched = jnp.take_along_axis(scores, own[..., None], axis=2)[..., 0] / tokens
    total = jax.nn.logsumexp(scores, axis=2) - jnp.log(questions)
    marginal = total / tokens
    gap = matched - marginal
    return InputDependence(
        gap.mean(),
        (scores.argmax(2) == own).mean(),
        (gap / (marginal.std() + 1e-3)).mean(),
    )
