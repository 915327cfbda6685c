"""A policy that is linear in shared features: what it learns of one token moves others.

Q prompts, T positions each, V tokens. The logits at a position are W phi, with D < Q T
random features, so that pushing one token far disturbs the rest, as in a network and
unlike in a table.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

PROMPTS, POSITIONS, TOKENS, FEATURES = 8, 4, 8, 16


class World(NamedTuple):
    """One draw of the problems, and the policy that they start from."""

    features: Float[Array, "Q T D"]
    """Of length 1."""
    right: Int[Array, "Q T"]
    """The token that is right at each position."""
    start: Float[Array, "V D"]
    """Weights under which the right tokens have a probability of about .6."""


def world(key: Key[Array, ""]) -> World:
    """A new world; the start leans to the right tokens, as a base model does.

    Args:
      key: consumed.
    """
    draw, choose = jax.random.split(key)
    features = jax.random.normal(draw, (PROMPTS, POSITIONS, FEATURES))
    features /= jnp.linalg.norm(features, axis=-1, keepdims=True)
    right = jax.random.randint(choose, (PROMPTS, POSITIONS), 0, TOKENS)
    towards = jax.nn.one_hot(right, TOKENS) - 1 / TOKENS
    start = jnp.einsum("qtv,qtd->vd", towards, features)
    return World(features, right, 10.0 * FEATURES / (PROMPTS * POSITIONS) * start)


def log_policy(
    weights: Float[Array, "V D"], features: Float[Array, "Q T D"]
) -> Float[Array, "Q T V"]:
    """Log-probs of every token at every position."""
    return jax.nn.log_softmax(jnp.einsum("vd,qtd->qtv", weights, features))


def of_tokens(
    logprobs: Float[Array, "B T V"], tokens: Int[Array, "B T"]
) -> Float[Array, "B T"]:
    """The log-probs of the tokens that were sampled."""
    return jnp.take_along_axis(logprobs, tokens[..., None], axis=-1)[..., 0]


def accuracy(weights: Float[Array, "V D"], where: World) -> Float[Array, ""]:
    """Mean probability of the right token."""
    return jnp.exp(of_tokens(log_policy(weights, where.features), where.right)).mean()
