"""Two phases of training: what is left of the first one's tasks after the second?

The policy is that of `features`: tasks share weights, so that each phase disturbs what
it does not train. The first phase has the prompts of one half (checked answers), the
second those of the other (general signals), alone or mixed with some of the first.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.losses import reinforce_loss
from rlvr_jax.toys import features
from rlvr_jax.toys.features import POSITIONS, PROMPTS

HALF = PROMPTS // 2
GROUPS, GENERATIONS, RATE = 8, 8, 12.0
"""Per step; and of gradient descent."""


class Trace(NamedTuple):
    """Mean probability of the right token after every step, [seeds, steps]."""

    first: Float[Array, "seeds K"]
    """On the prompts of the first phase."""
    second: Float[Array, "seeds K"]


@jax.jit
def train(keys: Key[Array, " seeds"], shares: Float[Array, " K"]) -> Trace:
    """One run per key.

    Args:
      keys: consumed.
      shares: of every step, the chance that a group is of the second phase's prompts:
        0 and then 1 for two phases, less than 1 to go on with the first beside it.
    """
    return jax.vmap(lambda key: _run(key, shares))(keys)


def _run(key, shares):
    draw, run = jax.random.split(key)
    world = features.world(draw)

    def step(weights, inputs):
        key, share = inputs
        coin, pick, sample = jax.random.split(key, 3)
        later = jax.random.uniform(coin, (GROUPS,)) < share
        prompts = HALF * later + jax.random.randint(pick, (GROUPS,), 0, HALF)
        prompts = jnp.repeat(prompts, GENERATIONS)
        groups = jnp.repeat(jnp.arange(GROUPS), GENERATIONS)
        policy = features.log_policy(weights, world.features)[prompts]
        tokens = jax.random.categorical(sample, policy)
        right = (tokens == world.right[prompts]).sum(1) >= POSITIONS - 1
        advantages = group_advantages(right, groups)

        def loss(weights):
            policy = features.log_policy(weights, world.features)[prompts]
            return reinforce_loss(features.of_tokens(policy, tokens), advantages).mean()

        weights = weights - RATE * jax.grad(loss)(weights)
        logprobs = features.log_policy(weights, world.features)
        known = jnp.exp(features.of_tokens(logprobs, world.right)).mean(axis=1)
        return weights, (known[:HALF].mean(), known[HALF:].mean())

    keys = jax.random.split(run, shares.shape[0])
    return Trace(*jax.lax.scan(step, world.start, (keys, shares))[1])
