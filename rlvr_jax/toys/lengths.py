"""Right or wrong, and how long: what an aggregation teaches about length.

The policy has three numbers: the chance to be right, and the chance to go on after each
token, once for right and once for wrong answers. Length earns nothing, so an unbiased
loss leaves it alone; dividing each answer by its own length does not.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.aggregation import aggregate, token_weights
from rlvr_jax.core.losses import reinforce_loss

LONGEST = 32
"""Tokens at most."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How the policy is trained."""

    loss_aggregation: str = "sequence_mean"
    scale_rewards: str = "group"
    num_generations: int = 16
    prompts: int = 8
    learning_rate: float = 0.3
    updates: int = 150


class Trace(NamedTuple):
    """Before each update, exactly: arrays [seeds, updates]."""

    accuracy: Float[Array, "seeds K"]
    right: Float[Array, "seeds K"]
    """Mean length of right answers, in tokens."""
    wrong: Float[Array, "seeds K"]


@functools.partial(jax.jit, static_argnames="recipe")
def train(keys: Key[Array, " seeds"], recipe: Recipe) -> Trace:
    """One run per key (consumed), from 38% right and both lengths near 8."""
    return jax.vmap(lambda key: _run(key, recipe))(keys)


def _run(key, recipe):
    rows = recipe.prompts * recipe.num_generations
    group_id = jnp.repeat(jnp.arange(recipe.prompts), recipe.num_generations)

    def update(theta, key):
        draw, stop = jax.random.split(key)
        right = jax.random.bernoulli(draw, jax.nn.sigmoid(theta[0]), (rows,))
        knob = jnp.where(right, theta[1], theta[2])
        goes = jax.random.bernoulli(
            stop, jax.nn.sigmoid(knob)[:, None], (rows, LONGEST - 1)
        )
        length = 1 + jnp.cumprod(goes, 1).sum(1)
        advantages = group_advantages(right, group_id, scale=recipe.scale_rewards)
        mask = (jnp.arange(LONGEST) < length[:, None]) * 1.0
        weights, denominator = token_weights(
            mask,
            group_id,
            loss_aggregation=recipe.loss_aggregation,
            constant_length=LONGEST,
        )

        def loss(theta):
            per_token = reinforce_loss(_logprobs(theta, right, length), advantages)
            return aggregate(per_token, weights, denominator).value()

        return theta - recipe.learning_rate * jax.grad(loss)(theta), _describe(theta)

    theta = jnp.array([-0.5, 2.0, 2.0])
    keys = jax.random.split(key, recipe.updates)
    return Trace(*jax.lax.scan(update, theta, keys)[1])


def _logprobs(theta, right, length):
    """log pi of each token; the first also decides right or wrong."""
    knob = jnp.where(right, theta[1], theta[2])[:, None]
    place, last = jnp.arange(1, LONGEST + 1), length[:, None]
    going = jnp.where(place < last, jax.nn.log_sigmoid(knob), 0.0)
    stops = (place == last) & (place < LONGEST)
    stopping = jnp.where(stops, jax.nn.log_sigmoid(-knob), 0.0)
    first = jax.nn.log_sigmoid(jnp.where(right, 1.0, -1.0) * theta[0])
    return (going + stopping).at[:, 0].add(first)


def _describe(theta):
    # Mean of a geometric length that ends at the longest.
    go_on = jax.nn.sigmoid(theta[1:])
    length = (go_on[:, None] ** jnp.arange(LONGEST)).sum(1)
    return jax.nn.sigmoid(theta[0]), length[0], length[1]
