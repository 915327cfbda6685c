"""Many prompts of different difficulty: where the signal is, and where it runs out.

Each prompt has a softmax over a few answers of its own, of which the first is right. A
batch is some prompts times G samples; a group whose samples are all right or all wrong
has advantage 0 and teaches nothing. Dynamic sampling draws more prompts until the batch
is full of groups that do.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.logprobs import entropy_from_logits
from rlvr_jax.core.losses import reinforce_loss


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How the policy is trained."""

    prompts: int = 64
    answers: int = 4
    batch: int = 16
    """Groups per update."""
    num_generations: int = 8
    refill: int = 0
    """Times more groups that are drawn, in order, to fill the batch with those that
    have a signal (dynamic sampling); 0 takes what comes."""
    learning_rate: float = 4.0
    updates: int = 200


class Trace(NamedTuple):
    """Before or at each update; arrays [seeds, updates]."""

    accuracy: Float[Array, "seeds K"]
    entropy: Float[Array, "seeds K"]
    """Mean over prompts, in nats."""
    silent: Float[Array, "seeds K"]
    """Share of the groups that were drawn whose advantages are all 0."""
    expected_silent: Float[Array, "seeds K"]
    """Mean over prompts of p^G + (1 - p)^G."""
    informative: Float[Array, "seeds K"]
    """Groups of the update that have a signal."""
    samples: Float[Array, "seeds K"]
    """Samples drawn so far."""


@functools.partial(jax.jit, static_argnames="recipe")
def train(keys: Key[Array, " seeds"], recipe: Recipe) -> Trace:
    """One run per key (consumed)."""
    return jax.vmap(lambda key: _run(key, recipe))(keys)


def start(recipe: Recipe) -> Float[Array, "prompts answers"]:
    """Logits: the right answer's rises over the prompts, from 1% to 97% of the mass."""
    right = jnp.linspace(-3.5, 4.5, recipe.prompts)
    return jnp.zeros((recipe.prompts, recipe.answers)).at[:, 0].set(right)


def _run(key, recipe):
    groups, size = recipe.batch * (1 + recipe.refill), recipe.num_generations
    group_id = jnp.repeat(jnp.arange(groups), size)

    def update(state, key):
        logits, drawn = state
        choose, draw = jax.random.split(key)
        prompt = jax.random.randint(choose, (groups,), 0, recipe.prompts)
        answers = jax.random.categorical(
            draw, logits[prompt][:, None], shape=(groups, size)
        )
        right = (answers == 0).sum(1)
        useful = (right > 0) & (right < size)
        used, taken = _fill(useful, recipe)
        advantages = group_advantages((answers == 0).reshape(-1), group_id)

        def loss(logits):
            logprobs = jax.nn.log_softmax(logits[prompt])
            chosen = jnp.take_along_axis(logprobs, answers, 1)
            rows = reinforce_loss(chosen.reshape(-1, 1), advantages).reshape(-1, size)
            return (rows.mean(1) * used).sum() / recipe.batch

        chance = jax.nn.softmax(logits)[:, 0]
        drawn = drawn + taken.sum() * size
        seen = Trace(
            accuracy=chance.mean(),
            entropy=entropy_from_logits(logits).mean(),
            silent=(~useful & taken).sum() / taken.sum(),
            expected_silent=(chance**size + (1 - chance) ** size).mean(),
            informative=(useful & used).sum() * 1.0,
            samples=drawn * 1.0,
        )
        return (logits - recipe.learning_rate * jax.grad(loss)(logits), drawn), seen

    state = (start(recipe), jnp.array(0))
    return jax.lax.scan(update, state, jax.random.split(key, recipe.updates))[1]


def _fill(useful: Bool[Array, " N"], recipe: Recipe):
    """Which groups enter the update, and which had to be drawn for it."""
    if not recipe.refill:
        every = jnp.ones(useful.shape, bool)
        return every, every
    before = jnp.cumsum(useful) - useful
    taken = before < recipe.batch
    return useful & taken, taken
