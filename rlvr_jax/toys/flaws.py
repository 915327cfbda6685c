"""Why best-of-N flatters a process reward model that judges answers.

A policy writes solutions of S steps. Some are right throughout; some have a wrong step,
and part of those come to the right answer all the same (two errors that cancel). A
judge is a mix: `answers` of it looks at the answer and speaks at the last step, the
rest looks at the steps. The more it looks at answers, the better it chooses among N by
their answers, and the worse it says where an error is.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.core.process import first_error_f1, first_errors, solution_scores

STEPS = 6


@dataclasses.dataclass(frozen=True)
class Policy:
    """What its solutions look like."""

    sound: float = 0.15
    """Share that is right in every step."""
    lucky: float = 0.4
    """Share of the others that has the right answer."""
    noise: float = 0.15
    """Standard deviation of a score."""


class Judged(NamedTuple):
    """Of one judge."""

    best_of_n: Float[Array, ""]
    """Share of problems whose chosen solution has the right answer."""
    sound_best: Float[Array, ""]
    """Share whose chosen solution is right in every step."""
    f1: Float[Array, ""]
    """Of the first error, over all solutions."""


@functools.partial(jax.jit, static_argnames=("policy", "n", "problems"))
def judged(
    key: Key[Array, ""],
    policy: Policy,
    answers: float | Float[Array, ""],
    *,
    n: int = 8,
    problems: int = 2000,
) -> Judged:
    """Chooses one of n solutions of each problem by the lowest step score.

    Args:
      key: consumed.
      policy: what is judged.
      answers: how much of a judge's opinion is about the answer, 0..1.
      n: solutions per problem.
      problems: how many.
    """
    draw, noise = jax.random.split(key)
    error, right = _solutions(draw, policy, problems * n)
    scores = _scores(noise, policy, answers, error, right)
    every = jnp.ones(scores.shape, bool)
    weakest = solution_scores(scores, every, aggregation="min").reshape(problems, n)
    best = jnp.argmax(weakest, axis=1)[:, None]
    chosen = lambda of: jnp.take_along_axis(of.reshape(problems, n), best, 1).mean()
    return Judged(
        chosen(right * 1.0),
        chosen((error < 0) * 1.0),
        first_error_f1(first_errors(scores, every), error),
    )


def _solutions(
    key: Key[Array, ""], policy: Policy, count: int
) -> tuple[Int[Array, " N"], Bool[Array, " N"]]:
    """Place of the first wrong step (-1: none), and whether the answer is right."""
    sound, place, lucky = jax.random.split(key, 3)
    is_sound = jax.random.bernoulli(sound, policy.sound, (count,))
    error = jnp.where(is_sound, -1, jax.random.randint(place, (count,), 0, STEPS - 1))
    return error, is_sound | jax.random.bernoulli(lucky, policy.lucky, (count,))


def _scores(
    key: Key[Array, ""],
    policy: Policy,
    answers: float | Float[Array, ""],
    error: Int[Array, " N"],
    right: Bool[Array, " N"],
) -> Float[Array, "N S"]:
    place = jnp.arange(STEPS)
    by_steps = jnp.where((error[:, None] < 0) | (place < error[:, None]), 0.85, 0.15)
    at_end = (place == STEPS - 1) & ~right[:, None]
    by_answer = jnp.where(at_end, 0.15, 0.85)
    level = answers * by_answer + (1 - answers) * by_steps
    return level + policy.noise * jax.random.normal(key, level.shape)
