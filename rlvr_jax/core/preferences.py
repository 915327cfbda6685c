"""Learning from comparisons: reward models, which RLVR replaces by a check, and DPO."""

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


def dpo_loss(
    chosen_log_ratio: Float[Array, " N"],
    rejected_log_ratio: Float[Array, " N"],
    *,
    beta: float = 0.1,
) -> Float[Array, " N"]:
    r"""Direct preference optimisation: a comparison without a reward model.

        l = -log sigmoid(beta (log pi/pi_ref (y+) - log pi/pi_ref (y-)))

    It is Bradley and Terry's loss on the reward beta log pi / pi_ref that makes pi the
    best policy at a KL penalty of beta. At pi = pi_ref it is log 2.

    Args:
      chosen_log_ratio: log(pi / pi_ref) of each preferred answer, summed over tokens.
      rejected_log_ratio: that of the other.
      beta: strength of the pull to the reference, in reward per nat.

    Returns:
      one loss per pair, in nats.

    References:
      DPO, eq. 7. https://arxiv.org/abs/2305.18290

    Example:
      >>> import jax.numpy as jnp
      >>> print(dpo_loss(jnp.zeros(1), jnp.zeros(1)))
      [0.6931...]
    """
    return bradley_terry_loss(beta * chosen_log_ratio, beta * rejected_log_ratio)
