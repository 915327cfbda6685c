"""Lucky solutions: right answers by wrong steps that cancel, paid or not.

A solution is S signs, and the answer is their product: it is right if an even number of
them is wrong. Paid by the answer, two wrong signs are as good as none, and training
settles on whichever pattern it starts nearest to; paid by the step it learns each sign.

    outcome   E R = (1 + prod_s (1 - 2 e_s)) / 2        e_s: chance that sign s is wrong
    process   E R = mean_s (1 - e_s)
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key


class Errors(NamedTuple):
    """Of solutions that the policies write, means over problems."""

    answer: Float[Array, " T"]
    """Chance of a wrong answer."""
    trace: Float[Array, " T"]
    """Chance that a right answer has a wrong step: lucky ones among the right."""
    lucky: Float[Array, " T"]
    """Share of all solutions that are right and have a wrong step."""
    solutions: Float[Array, " T"]
    """Looked at so far, per problem."""
    labels: Float[Array, " T"]
    """Bought so far, per problem: one per solution, or one per step."""


def starts(
    key: Key[Array, ""], *, problems: int, steps: int, ability: float = 0.6
) -> Float[Array, "Q S"]:
    """Logits of a right sign, of each step of each problem.

    Args:
      key: consumed.
      problems: Q.
      steps: S.
      ability: mean of the logits, of standard deviation 1; 0 is no idea.
    """
    return ability + jax.random.normal(key, (problems, steps))


def answer_rate(logits: Float[Array, "*Q S"]) -> Float[Array, "*Q"]:
    """Chance of a right answer: (1 + prod tanh(z / 2)) / 2, as 1 - 2 e = tanh(z / 2).

    Example:
      >>> print(answer_rate(jnp.array([-30.0, -30.0, 30.0])))
      1.0
    """
    return (1 + jnp.prod(jnp.tanh(logits / 2), axis=-1)) / 2


def sound_rate(logits: Float[Array, "*Q S"]) -> Float[Array, "*Q"]:
    """Chance that every sign is right."""
    return jnp.prod(jax.nn.sigmoid(logits), axis=-1)


@functools.partial(jax.jit, static_argnames=("paid", "updates", "group"))
def trained(
    key: Key[Array, ""],
    logits: Float[Array, "Q S"],
    *,
    paid: str,
    updates: int = 500,
    group: int = 16,
    step: float = 1.0,
) -> tuple[Float[Array, "Q S"], Errors]:
    """Policy gradient on sampled solutions, each problem by itself.

    Args:
      key: consumed.
      logits: of `starts`.
      paid: "outcome": every sign gets the answer's reward less the group's mean;
        "process": each gets its own less that of its place.
      updates: how many.
      group: solutions per problem and update.
      step: of gradient ascent.

    Returns:
      the last logits, and the errors before every update and after the last.
    """
    per_solution = 1 if paid == "outcome" else logits.shape[-1]

    def update(logits, key):
        chance = jax.nn.sigmoid(logits)[:, None]
        shape = (logits.shape[0], group, logits.shape[1])
        right = jax.random.bernoulli(key, chance, shape) * 1.0
        if paid == "outcome":
            rewards = ((1 - right).sum(-1, keepdims=True) % 2 == 0) * 1.0
        else:
            rewards = right
        advantages = rewards - rewards.mean(axis=1, keepdims=True)
        gradient = (advantages * (right - chance)).mean(axis=1)
        return logits + step * gradient, _errors(logits)

    last, curves = jax.lax.scan(update, logits, jax.random.split(key, updates))
    answer, trace, lucky = (
        jnp.append(curve, end) for curve, end in zip(curves, _errors(last), strict=True)
    )
    seen = jnp.arange(updates + 1.0) * group
    return last, Errors(answer, trace, lucky, seen, seen * per_solution)


class Account(NamedTuple):
    """What it took to reach an error of the answers, and what the traces are then."""

    answer: float
    trace: float
    solutions: int
    labels: int


def account(errors: Errors, target: float) -> Account:
    """The first point at which the answers' error is at most `target`.

    Raises:
      ValueError: it never is.
    """
    reached = np.flatnonzero(np.asarray(errors.answer) <= target)
    if not len(reached):
        raise ValueError(
            f"account: the error of answers stays above {target}, the least is "
            f"{float(errors.answer.min()):.3f}; give trained() more updates."
        )
    at = reached[0]
    return Account(
        float(errors.answer[at]),
        float(errors.trace[at]),
        int(errors.solutions[at]),
        int(errors.labels[at]),
    )


def nearest_pattern(logits: Float[Array, "Q S"]) -> Float[Array, "Q S"]:
    """Where the exact outcome gradient ends: signs of 1 (right) and -1.

    The own signs where an even number is wrong: each then moves away from 0. Where it
    is odd all move towards 0, and the first to cross it, the smallest, turns over.

    Example:
      >>> print(nearest_pattern(jnp.array([[2.0, -1.0, -0.5], [2.0, -1.0, 0.5]])))
      [[ 1. -1. -1.]
       [ 1. -1. -1.]]
    """
    signs = jnp.sign(logits)
    odd = jnp.prod(signs, axis=-1, keepdims=True) < 0
    places = jnp.arange(logits.shape[-1])
    smallest = jnp.argmin(jnp.abs(logits), axis=-1, keepdims=True) == places
    return jnp.where(odd & smallest, -signs, signs)


def _errors(logits: Float[Array, "Q S"]) -> tuple[Float[Array, ""], ...]:
    right, sound = answer_rate(logits), sound_rate(logits)
    lucky = (right - sound).mean()
    return (1 - right).mean(), lucky / right.mean(), lucky
