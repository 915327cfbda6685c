"""Searching step by step with a process reward model, against whole samples.

A solution has several steps and is right if all of them are. The process reward model
scores each step: 1 while all is right, 0 after a mistake, plus noise; now and then a
wrong step pleases it, and goes on to. Beam search keeps what scores best at every step,
so that it finds rare right paths early, and, for the same reason, rare pleasing ones.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

WRONG_ANSWERS = 20
"""Mistakes end at one of these, at random; steps that please at one of their own."""


@dataclasses.dataclass(frozen=True)
class World:
    """A problem and its process reward model."""

    step: float = 0.7
    """Chance that the next step is right, if all before were."""
    steps: int = 8
    noise: float = 0.5
    """Standard deviation of a score."""
    pleasing: float = 0.0
    """Chance per step of a wrong step that pleases."""
    pleasing_score: float = 3.0


HARD = World()
EASY = World(step=0.97, pleasing=0.002)


@functools.partial(jax.jit, static_argnames=("world", "paths", "width"))
def search(
    keys: Key[Array, " problems"], world: World, *, paths: int, width: int = 1
) -> Bool[Array, " problems"]:
    """Whether the chosen answer is right; both ways cost paths * steps steps.

    Args:
      keys: one problem each, consumed.
      world: the problem.
      paths: N, solutions in flight; a multiple of `width`.
      width: M of beam search: after each step the best N/M go on, M times each. 1
        samples N whole solutions (best-of-N).

    Returns:
      whether the answer with the highest sum of last scores is the right one.
    """
    kept = paths // width

    def one(key):
        def step(state, key):
            right, pleases = state
            go, please, noise = jax.random.split(key, 3)
            pleased = jax.random.bernoulli(please, world.pleasing, (paths,))
            pleases = pleases | (pleased & right)
            right = right & jax.random.bernoulli(go, world.step, (paths,)) & ~pleases
            level = jnp.where(pleases, world.pleasing_score, right * 1.0)
            scores = level + world.noise * jax.random.normal(noise, (paths,))
            best = jnp.repeat(jax.lax.top_k(scores, kept)[1], width)
            return (right[best], pleases[best]), (right, pleases, scores)

        walk, name = jax.random.split(key)
        start = (jnp.ones(paths, bool), jnp.zeros(paths, bool))
        _, seen = jax.lax.scan(step, start, jax.random.split(walk, world.steps))
        # The last step's solutions, before the best of them would be copied.
        return _chosen(name, *(x[-1] for x in seen))

    return jax.vmap(one)(keys)


def _chosen(
    key: Key[Array, ""],
    right: Bool[Array, " N"],
    pleases: Bool[Array, " N"],
    scores: Float[Array, " N"],
) -> Bool[Array, ""]:
    """Weighted vote: answers 0 right, 1 pleasing, 2 and up mistakes."""
    mistake = 2 + jax.random.randint(key, right.shape, 0, WRONG_ANSWERS)
    answer = jnp.where(right, 0, jnp.where(pleases, 1, mistake))
    given = jax.nn.one_hot(answer, 2 + WRONG_ANSWERS)
    sums = jnp.where(given.any(0), scores @ given, -jnp.inf)
    return sums.argmax() == 0
