"""Effort as a price of thinking: the higher the level, the longer, where it pays.

A problem of difficulty d is solved after L tokens with chance sigmoid(s (log2 L - d)):
over problems of many difficulties accuracy grows with the logarithm of tokens. A policy
picks L per problem. Told an effort, it is paid for right answers less that effort's
price of a token, and ends at the KL-regularised optimum. Levels then order lengths, as
d E[L] / d price = -Var(L) / beta; and within one level it spends by difficulty.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core.regularised import regularised_optimum

LENGTHS = 2.0 ** jnp.arange(6, 17)
"""64 to 65,536 tokens."""
DIFFICULTIES = jnp.linspace(4.0, 18.0, 57)
"""log2 of the tokens after which half of the tries are right."""
LEVELS = ("low", "medium", "high", "max")
PRICES = jnp.array([3e-4, 3e-5, 3e-6, 0.0])
"""Right answers that a token costs, by level."""
SLOPE = 1.5
"""s: how sharply a problem is solved once its tokens are there."""


class Spent(NamedTuple):
    """Of each difficulty."""

    tokens: Float[Array, "*levels D"]
    accuracy: Float[Array, "*levels D"]


def solved(
    lengths: Float[Array, " K"], difficulties: Float[Array, " D"]
) -> Float[Array, "D K"]:
    """Chance that a problem is solved after so many tokens."""
    return jax.nn.sigmoid(SLOPE * (jnp.log2(lengths) - difficulties[:, None]))


def at_price(price: Float[Array, ""], *, beta: float = 0.02) -> Spent:
    """What a policy spends that was trained at this price of a token.

    Args:
      price: right answers that a token costs.
      beta: of the KL to a policy that picks each length equally often.
    """
    accuracy = solved(LENGTHS, DIFFICULTIES)
    even = jnp.full(accuracy.shape, -jnp.log(len(LENGTHS)))
    chosen = jnp.exp(regularised_optimum(even, accuracy - price * LENGTHS, beta=beta))
    return Spent(chosen @ LENGTHS, (chosen * accuracy).sum(-1))


def at_length(tokens: Float[Array, ""]) -> Float[Array, ""]:
    """Accuracy over all difficulties where every problem gets so many tokens."""
    return solved(tokens[None], DIFFICULTIES).mean()
