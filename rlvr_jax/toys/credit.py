"""One scalar for a whole solution, or a reward for each step: the noise per step.

A solution has S steps, each right with the same chance, by a choice of its own
parameter; the return is the number of right ones. What step s is paid:

    outcome   the sum over all steps         one scalar for every token
    to go     the sum from s on              process rewards, as GRPO spends them
    step      its own alone                  rewards that localise

All three have the same expectation, since steps are independent: only the noise
differs. A baseline (the mean) is subtracted from each.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Moments(NamedTuple):
    """Of the gradient estimate of each step's logit, from one solution."""

    mean: Float[Array, "kinds S"]
    """Rows: outcome, to go, step."""
    variance: Float[Array, "kinds S"]


def simulate(
    key: Key[Array, ""], *, steps: int, right: float, solutions: int = 100_000
) -> Moments:
    """The three estimates on sampled solutions.

    Args:
      key: consumed.
      steps: S.
      right: chance of each step to be right.
      solutions: how many are drawn.
    """
    correct = jax.random.bernoulli(key, right, (solutions, steps))
    centred = correct - jnp.float32(right)  # also the score: d log pi / d logit
    to_go = jnp.cumsum(centred[:, ::-1], axis=1)[:, ::-1]
    outcome = jnp.broadcast_to(to_go[:, :1], to_go.shape)
    estimates = jnp.stack([outcome, to_go, centred]) * centred
    return Moments(estimates.mean(axis=1), estimates.var(axis=1))


def exact_variances(*, steps: int, right: float) -> Float[Array, "kinds S"]:
    r"""What `simulate` tends to. With v = p(1 - p) and m its fourth central moment,

        Var = m - v^2 + (terms - 1) v^2

    where `terms` steps are summed: S, S - s + 1 and 1.

    Example:
      >>> print(exact_variances(steps=2, right=0.8).round(2))
      [[0.08 0.08]
       [0.08 0.06]
       [0.06 0.06]]
    """
    spread = right * (1 - right)
    fourth = spread * ((1 - right) ** 3 + right**3)
    ones = jnp.ones(steps)
    terms = jnp.stack([steps * ones, jnp.arange(steps, 0, -1.0), ones])
    return fourth - spread**2 + (terms - 1) * spread**2
