r"""Supervised tuning as a policy gradient, and what its implicit reward does.

The gradient on a demonstrated answer y* is that of a policy which samples y and is paid

    grad log pi(y*) = E_{y ~ pi} [ 1{y = y*} / pi(y) grad log pi(y) ]

1 / pi(y*) for hitting it: the less likely it was, the more. There is no answer that is
pushed down for being wrong; all others only make room.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def implicit_rewards(policy_logprobs: Float[Array, "B T"]) -> Float[Array, "B T"]:
    """What supervised tuning pays a policy for each demonstrated token: 1 / pi.

    A token of probability .001 weighs a thousand times one of probability 1.

    Args:
      policy_logprobs: of the demonstrated tokens, in nats.

    Returns:
      the reward per token; unbounded as the probability falls.

    References:
      On the Generalization of SFT, sec. 3. https://arxiv.org/abs/2508.05629

    Example:
      >>> print(implicit_rewards(jnp.log(jnp.array([[1.0, 0.5, 0.001]]))).round(2))
      [[   1.    2. 1000.]]
    """
    return jnp.exp(-policy_logprobs)


def imitation_loss(policy_logprobs: Float[Array, "B T"]) -> Float[Array, "B T"]:
    """Plain likelihood: -log pi of each demonstrated token.

    Args:
      policy_logprobs: of the demonstrated tokens, in nats.

    Returns:
      the loss per token, in nats.
    """
    return -policy_logprobs


def rectified_imitation_loss(
    policy_logprobs: Float[Array, "B T"],
) -> Float[Array, "B T"]:
    r"""DFT: the likelihood weighted by the probability itself, as a constant.

        l = -sg(pi) log pi,     grad l = -grad pi

    The implicit reward 1 / pi becomes 1 for every demonstrated token, so that those the
    policy finds absurd no longer dominate.

    Args:
      policy_logprobs: of the demonstrated tokens, in nats.

    Returns:
      the loss per token.

    References:
      On the Generalization of SFT, eq. 9. https://arxiv.org/abs/2508.05629

    Example:
      >>> loss = rectified_imitation_loss(jnp.log(jnp.array([[0.5, 0.25]])))
      >>> print(loss.round(3))
      [[0.347 0.347]]
    """
    return -jax.lax.stop_gradient(jnp.exp(policy_logprobs)) * policy_logprobs


def gradient_shares(
    logits: Float[Array, "N V"], tokens: Int[Array, " N"], *, bins: int = 10
) -> Float[Array, " bins"]:
    r"""Where an imitation update comes from: its size by the tokens' probability.

    The gradient of -log pi(y) with respect to the logits is pi - onehot(y); its norm is
    summed over the tokens of each bin of pi(y) and divided by the sum over all.

    Args:
      logits: one row per demonstrated token.
      tokens: the demonstrated ones.
      bins: equal parts of [0, 1]; 10 for deciles of probability.

    Returns:
      shares, lowest probability first; they sum to 1, or are 0 where nothing is left to
      learn.

    Raises:
      ValueError: `bins` is below 1.

    Example:
      >>> logits = jnp.log(jnp.array([[0.05, 0.95], [0.95, 0.05]]))
      >>> print(gradient_shares(logits, jnp.array([0, 0]), bins=2).round(2))
      [0.95 0.05]
    """
    if bins < 1:
        raise ValueError(f"gradient_shares: bins must be at least 1, got {bins!r}.")
    policy = jax.nn.softmax(logits, axis=-1)
    norms = jnp.linalg.norm(policy - jax.nn.one_hot(tokens, logits.shape[-1]), axis=-1)
    chosen = jnp.take_along_axis(policy, tokens[:, None], axis=-1)[:, 0]
    places = jnp.clip((chosen * bins).astype(jnp.int32), 0, bins - 1)
    sums = jnp.zeros(bins, norms.dtype).at[places].add(norms)
    total = sums.sum()
    return sums / jnp.where(total == 0, 1.0, total)
