"""Does training go beyond the base? Four arms of one experiment, on made-up tasks.

Every task is a word of T letters that must be right in each. The base knows most
letters and all but misses some: on the tasks kept, none of its many samples is right.
Arms start from the base, or spend as many samples on it:

    base           more samples from the base itself, in several formats
    power          the base's own distribution sharpened, p^alpha / Z
    RL             rewards on all tasks, easy ones too; letters are shared by tasks
    distillation   imitation of a teacher that knows every letter

Rates are exact, so that the protocol's estimates can be held against them.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.logprobs import entropy_from_logits

LETTERS, TOKENS = 24, 8
"""Skills, and the answers that each has to choose from."""
EASY, HARD = 2, 8
"""Letters of an easy and of a hard task."""
TASKS = 32
"""Of each kind."""
GENERATIONS, RATE = 16, 2.0
"""Words per task and step; step size of gradient descent."""


class Base(NamedTuple):
    """One draw of the base and its tasks; the right token is number 0."""

    logits: Float[Array, "L V"]
    easy: Int[Array, "N E"]
    """Letters of each easy task."""
    hard: Int[Array, "N H"]


def draw(key: Key[Array, ""]) -> Base:
    """A base whose right tokens have probabilities of about 0.05 to 0.6.

    Args:
      key: consumed.
    """
    skill, easy, hard = jax.random.split(key, 3)
    logits = jnp.zeros((LETTERS, TOKENS))
    right = jax.random.uniform(skill, (LETTERS,), minval=-1.0, maxval=2.3)
    pick = lambda key, size: jax.vmap(
        lambda k: jax.random.choice(k, LETTERS, (size,), replace=False)
    )(jax.random.split(key, TASKS))
    return Base(logits.at[:, 0].set(right), pick(easy, EASY), pick(hard, HARD))


def rates(
    logits: Float[Array, "L V"], tasks: Int[Array, "N T"], temperature: float = 1.0
) -> Float[Array, " N"]:
    """Chance that all letters of a task are right; the format is a temperature."""
    right = jax.nn.log_softmax(logits / temperature)[:, 0]
    return jnp.exp(right[tasks].sum(axis=1))


def power(logits: Float[Array, "... V"], alpha: float) -> Float[Array, "... V"]:
    """p^alpha / Z. Letters are independent here, so it is one temperature for each."""
    return alpha * logits


def distilled(
    base: Base, steps: int, rate: float | Float[Array, ""] = 0.5
) -> Float[Array, "L V"]:
    """After imitating a teacher that is right in 95% of the letters.

    Args:
      base: where it starts.
      steps: of gradient descent on the cross-entropy.
      rate: of descent.
    """
    right = jnp.arange(TOKENS) == 0
    teacher = jnp.where(right, 0.95, 0.05 / (TOKENS - 1))

    def step(logits, _):
        return logits + rate * (teacher - jax.nn.softmax(logits)), None

    return jax.lax.scan(step, base.logits, length=steps)[0]


@functools.partial(jax.jit, static_argnames=("steps", "diverse"))
def reinforced(
    keys: Key[Array, " seeds"],
    bases: Base,
    *,
    steps: int,
    diverse: bool,
    bonus: float | Float[Array, ""] = 0.0,
) -> Float[Array, "seeds K L V"]:
    """RL by the group's mean on sampled words: the logits after every step.

    Args:
      keys: consumed, one per base.
      bases: of `draw`, stacked.
      steps: of one batch of all tasks each.
      diverse: easy tasks are in the batch too; else the hard ones alone.
      bonus: of the letters' mean entropy.
    """

    def loss(logits, key, base):
        logprobs, total = jax.nn.log_softmax(logits), 0.0
        for number, tasks in enumerate([base.hard, base.easy][: 1 + diverse]):
            where = jnp.repeat(tasks, GENERATIONS, axis=0)
            words = jax.random.categorical(
                jax.random.fold_in(key, number), jax.lax.stop_gradient(logits)[where]
            )
            groups = jnp.repeat(jnp.arange(TASKS), GENERATIONS)
            paid = group_advantages((words == 0).all(axis=1), groups)
            total -= (paid * logprobs[where, words].sum(axis=1)).mean()
        return total - bonus * entropy_from_logits(logits).mean()

    def run(key, base):
        def step(logits, key):
            new = logits - RATE * jax.grad(loss)(logits, key, base)
            return new, new

        return jax.lax.scan(step, base.logits, jax.random.split(key, steps))[1]

    return jax.vmap(run)(keys, bases)
