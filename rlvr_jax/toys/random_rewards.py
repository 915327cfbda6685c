"""Rewards that do not read the answer, and what a clip makes of them.

A softmax over a few tokens; one rollout batch is used for several minibatches, each
with fresh advantages of +1 or -1 by a fair coin. The expected gradient is 0 at every
step, unless a clip cuts it: a token of probability p cannot reach a ratio above 1/p, so
that likely tokens never meet the upper bound and the others do.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rlvr_jax.core.losses import clipped_loss


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How the batch is used."""

    epsilon_low: float = 0.2
    epsilon_high: float = 0.2
    minibatches: int = 16
    samples: int = 16
    """Per minibatch."""
    learning_rate: float = 1.0


@functools.partial(jax.jit, static_argnames="recipe")
def train(
    keys: Key[Array, " seeds"], start: Float[Array, " N"], recipe: Recipe
) -> Float[Array, "seeds N"]:
    """Log-probs, up to a constant per seed, after one batch of random rewards.

    Args:
      keys: consumed; one run each.
      start: probabilities of the tokens under the policy that sampled.
      recipe: settings.

    Returns:
      logits: log(start) plus all steps. Their mean over seeds is a martingale's, and
      stays, where nothing is clipped; probabilities are curved in them and do not.
    """
    old = jnp.log(start)

    def minibatch(logits, key):
        draw, coin = jax.random.split(key)
        tokens = jax.random.categorical(draw, old, shape=(recipe.samples,))
        advantages = jax.random.rademacher(coin, (recipe.samples,), old.dtype)

        def loss(logits):
            log_ratio = (jax.nn.log_softmax(logits) - old)[tokens]
            return clipped_loss(
                log_ratio[:, None],
                advantages,
                epsilon_low=recipe.epsilon_low,
                epsilon_high=recipe.epsilon_high,
            ).mean()

        return logits - recipe.learning_rate * jax.grad(loss)(logits), None

    def run(key):
        steps = jax.random.split(key, recipe.minibatches)
        return jax.lax.scan(minibatch, old, steps)[0]

    return jax.vmap(run)(keys)
