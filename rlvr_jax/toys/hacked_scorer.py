"""A process reward model inside the training loop is found out; a verifier is not.

A policy writes solutions of four steps, each in one of three manners: careful (mostly
right), sloppy (as often wrong), or pleasing (always wrong, and full of the words that
careful steps use). The process reward model is a line through those words, fitted to
labelled steps of the policy at the start, where pleasing ones are rare: on such steps
it ranks well. As the policy is trained on its scores, it first learns to be careful,
and then what the line says of words that no careful step has.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.core.advantages import centred_rewards

STEPS = 4
"""Of a solution."""
SHARES = jnp.log(jnp.array([0.34, 0.64, 0.02]))
"""Of careful, sloppy and pleasing steps at the start."""
RIGHT = jnp.array([0.95, 0.5, 0.0])
WORDS = jnp.array([1.0, 0.0, 2.5])


class Curves(NamedTuple):
    """Of one run, before each update."""

    proxy: Float[Array, " updates"]
    """Expected score of a step, by the model that pays for it."""
    gold: Float[Array, " updates"]
    """Chance that a step is right."""
    pleasing: Float[Array, " updates"]
    """Share of pleasing steps."""


@functools.partial(
    jax.jit, static_argnames=("paid_by", "refit_every", "updates", "group", "labels")
)
def train(
    key: Key[Array, ""],
    *,
    paid_by: str = "scorer",
    refit_every: int = 0,
    updates: int = 800,
    group: int = 64,
    labels: int = 2000,
    learning_rate: float = 0.5,
) -> Curves:
    """Policy gradient on solutions of one group per update, against its mean.

    Args:
      key: consumed.
      paid_by: "scorer", the mean score of a solution's steps; or "verifier", 1 if every
        step is right.
      refit_every: label steps of the policy of the day anew every so many updates, and
        fit the line to them; 0 never.
      updates: of the policy.
      group: solutions of an update.
      labels: steps that are labelled for a fit.
      learning_rate: of the policy's logits.
    """

    def update(state, inputs):
        logits, line = state
        number, key = inputs
        draw, again = jax.random.split(key)
        if refit_every:
            due = number % refit_every == 0
            anew = lambda: fitted(again, logits, labels)
            line = jax.lax.cond(due, anew, lambda: line)
        manners, right = solutions(draw, logits, (group, STEPS))
        rewards = {
            "scorer": scores(line)[manners].mean(1),
            "verifier": right.all(1) * 1.0,
        }[paid_by]
        advantages = centred_rewards(rewards, jnp.zeros(group, jnp.int32))

        def surrogate(logits):
            return (advantages @ jax.nn.log_softmax(logits)[manners].sum(1)) / group

        policy = jax.nn.softmax(logits)
        seen = Curves(policy @ scores(line), policy @ RIGHT, policy[2])
        return (logits + learning_rate * jax.grad(surrogate)(logits), line), seen

    first, rest = jax.random.split(key)
    start = (SHARES, fitted(first, SHARES, labels))
    inputs = (jnp.arange(updates), jax.random.split(rest, updates))
    return jax.lax.scan(update, start, inputs)[1]


def solutions(
    key: Key[Array, ""], logits: Float[Array, " 3"], shape: tuple[int, ...]
) -> tuple[Int[Array, "..."], Bool[Array, "..."]]:
    """The manner of each step, and whether it is right."""
    manner, luck = jax.random.split(key)
    manners = jax.random.categorical(manner, logits, shape=shape)
    return manners, jax.random.bernoulli(luck, RIGHT[manners])


def fitted(
    key: Key[Array, ""], logits: Float[Array, " 3"], labels: int
) -> Float[Array, " 2"]:
    """Intercept and slope of the least squares line through labelled steps."""
    manners, right = solutions(key, logits, (labels,))
    inputs = jnp.stack([jnp.ones(labels), WORDS[manners]], axis=1)
    # Where all steps have the same words the slope is 0, not undefined.
    ridge = 1e-3 * labels * jnp.diag(jnp.array([0.0, 1.0]))
    return jnp.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ right)


def scores(line: Float[Array, " 2"]) -> Float[Array, " 3"]:
    """What the process reward model says of each manner."""
    return line[0] + line[1] * WORDS
