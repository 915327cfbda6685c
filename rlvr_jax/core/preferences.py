"""Reward models from comparisons: what RLVR replaces by a check."""

import jax
from jaxtyping import Array, Float


def bradley_terry_loss(
    chosen_scores: Float[Array, " N"], rejected_scores: Float[Array, " N"]
) -> Float[Array, " N"]:
    r"""Negative log-likelihood of a comparison under Bradley and Terry's model.

        l = -log sigmoid(r(x, y+) - r(x, y-))

    The gradient with respect to the difference d is -sigmoid(-d). Only differences are
    learned: scores are defined up to a constant per prompt.

    Args:
      chosen_scores: the reward model's score of the preferred answer of each pair.
      rejected_scores: that of the other.

    Returns:
      one loss per pair, in nats.

    References:
      Bradley and Terry, 1952. https://doi.org/10.2307/2334029
      InstructGPT, eq. 1. https://arxiv.org/abs/2203.02155

    Example:
      >>> import jax.numpy as jnp
      >>> print(bradley_terry_loss(jnp.array([1.0]), jnp.array([1.0])))
      [0.6931...]
    """
    return -jax.nn.log_sigmoid(chosen_scores - rejected_scores)
