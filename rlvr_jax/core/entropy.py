"""Entropy: as a bonus, and what an update will do to it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.selection import token_covariance
from rlvr_jax.core.shapes import Advantages, TokenMask


def entropy_bonus_loss(
    entropy: Float[Array, "B T"], *, coefficient: float | Float[Array, ""]
) -> Float[Array, "B T"]:
    r"""The bonus as a loss per token: l = -coefficient * H.

    Its gradient on softmax logits is coefficient * pi (log pi + H).

    Args:
      entropy: of the policy at each token, in nats, with its gradient.
      coefficient: strength of the bonus.

    Returns:
      the loss per token, [B, T], to be aggregated and added.

    References:
      A3C. https://arxiv.org/abs/1602.01783

    Example:
      >>> print(entropy_bonus_loss(jnp.array([[0.5]]), coefficient=0.01))
      [[-0.005]]
    """
    return -coefficient * entropy


def adapt_entropy_coefficient(
    coefficient: Float[Array, ""],
    entropy: Float[Array, ""],
    *,
    target: float,
    step: float = 0.005,
    minimum: float = 0.0,
    maximum: float = 1.0,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Adaptive bonus: the coefficient climbs while entropy is at or below the target.

        c' = clip(c + step, ...) if H <= target, clip(c - step, ...) otherwise
        applied = c' if H <= target else 0

    Args:
      coefficient: c before this step.
      entropy: mean entropy of the step's tokens, in nats.
      target: entropy to stay above, in nats.
      step: change per step.
      minimum: lower bound of c.
      maximum: upper bound of c.

    Returns:
      (c', the coefficient to use in the next step).

    References:
      Skywork-OR1. https://arxiv.org/abs/2505.22312

    Example:
      >>> coefficient, entropy = jnp.array(0.01), jnp.array(0.1)
      >>> print(*adapt_entropy_coefficient(coefficient, entropy, target=0.2))
      0.015 0.015
    """
    low = entropy <= target
    changed = jnp.where(low, coefficient + step, coefficient - step)
    changed = jnp.clip(changed, minimum, maximum)
    return changed, jnp.where(low, changed, 0.0)


def adapt_band_shift(
    shift: Float[Array, ""],
    entropy: Float[Array, ""],
    *,
    target: float,
    step: float,
    bound: float = 1.0,
) -> Float[Array, ""]:
    r"""Bands that follow the entropy: lower, and what is good may move further.

        s' = clip(s + step, -bound, bound) if H <= target, clip(s - step, ...) otherwise

    `shifted_bands` makes bands of s. MiMo-V2.6 widens the positive band and tightens
    the negative one as entropy falls; its rule is not published, this one is ours.

    Args:
      shift: s before this step; 0 at the start.
      entropy: mean entropy of the step's tokens, in nats.
      target: entropy to stay above, in nats.
      step: change per step.
      bound: of |s|; at 1 a band is at most e times as wide, or as narrow.

    Returns:
      s'.

    Example:
      >>> print(adapt_band_shift(jnp.array(0.0), jnp.array(0.1), target=0.2, step=0.25))
      0.25
    """
    moved = jnp.where(entropy <= target, shift + step, shift - step)
    return jnp.clip(moved, -bound, bound)


def shifted_bands(
    band_positive: tuple[float, float],
    band_negative: tuple[float, float],
    shift: Float[Array, ""],
) -> tuple[tuple[Float[Array, ""], ...], tuple[Float[Array, ""], ...]]:
    r"""Both bands of `sign_banded_loss`, one as much wider as the other is narrower.

        log bound' = e^s log bound  for A > 0,   e^(-s) log bound  for A < 0

    A band that is symmetric in the log stays so. A bound of 0 or infinity stays.

    Args:
      band_positive: (low, high) of the ratio for A > 0.
      band_negative: the same for A <= 0.
      shift: s; 0 leaves both as they are.

    Returns:
      the two bands, as scalars.

    Example:
      >>> up, down = shifted_bands((0.5, 2.0), (0.5, 2.0), jnp.log(2.0))
      >>> print(*(f"{float(bound):.3f}" for bound in (*up, *down)))
      0.250 4.000 0.707 1.414
    """

    def scaled(band, factor):
        low, high = (jnp.float32(bound) ** factor for bound in band)
        return low, high

    return (
        scaled(band_positive, jnp.exp(shift)),
        scaled(band_negative, jnp.exp(-shift)),
    )


def covariance(
    policy_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: TokenMask,
) -> Float[Array, ""]:
    r"""Cov(log pi, A) over the sampled tokens of the loss (divided by their number).

    Times -eta it predicts the change of entropy under a natural policy-gradient step
    of size eta: positive covariance spends entropy.

    Args:
      policy_logprobs: log-probs in nats under the policy being trained.
      advantages: per row or per token.
      token_mask: 1 on tokens of the loss.

    Returns:
      the covariance, in nats times the unit of the advantages; 0 if no token is kept.

    References:
      Entropy mechanism. https://arxiv.org/abs/2505.22617

    Example:
      >>> logprobs, advantages = jnp.array([[-1.0, -3.0]]), jnp.array([[1.0, -1.0]])
      >>> print(covariance(logprobs, advantages, jnp.ones((1, 2))))
      1.0
    """
    tokens = token_mask.astype(bool).sum()
    total = token_covariance(policy_logprobs, advantages, token_mask).sum()
    return total / jnp.maximum(tokens, 1)


def predicted_entropy_change(
    logprobs: Float[Array, "*rows V"], logit_change: Float[Array, "*rows V"]
) -> Float[Array, " *rows"]:
    r"""First-order change of a softmax policy's entropy when its logits move by dz.

        dH = -Cov_pi(log pi, dz) = -E_pi[(log pi - E log pi) (dz - E dz)]

    With dz = eta A this is the natural policy gradient, with dz = eta pi A (A of mean 0
    under pi) the vanilla one: confident and right lowers entropy, unlikely and right
    raises it.

    Args:
      logprobs: log pi over the whole vocabulary, in nats.
      logit_change: dz.

    Returns:
      dH in nats, one per distribution.

    References:
      Entropy mechanism. https://arxiv.org/abs/2505.22617

    Example:
      >>> logprobs = jnp.log(jnp.array([0.75, 0.25]))
      >>> print(f"{predicted_entropy_change(logprobs, jnp.array([1.0, 0.0])):.3f}")
      -0.206
    """
    probabilities = jnp.exp(logprobs)

    def centred(values):
        return values - (probabilities * values).sum(-1, keepdims=True)

    return -(probabilities * centred(logprobs) * centred(logit_change)).sum(-1)
