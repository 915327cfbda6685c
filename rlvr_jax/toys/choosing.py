"""Spending samples at test time: a vote, a verifier's favourite, or a weighted vote.

A problem has one right answer, one tempting wrong one, and a tail of wrong answers. A
verifier scores each sample by its label plus noise, and a few wrong samples happen to
please it more than any right one: the more samples, the surer one of those is found.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

RIGHT, TEMPTING = 0, 1


@dataclasses.dataclass(frozen=True)
class World:
    """What the samples of a problem look like."""

    right: float = 0.2
    """Share of samples with the right answer."""
    tempting: float = 0.35
    """Share with the same wrong answer: a misconception that samples have in common."""
    tail: int = 20
    """Other wrong answers, equally likely."""
    noise: float = 0.5
    """Standard deviation of the verifier's score about the label, 0 or 1."""
    exploit: float = 0.002
    """Chance that a wrong sample fools the verifier."""
    exploit_score: float = 4.0
    """Score of those, before the noise."""


EASY = World(right=0.6, tempting=0.15)
HARD = World()


class Samples(NamedTuple):
    """What was sampled for each problem."""

    answers: Int[Array, "problems n"]
    """0 is right, 1 the tempting one."""
    scores: Float[Array, "problems n"]


class Accuracy(NamedTuple):
    """Share of right choices from the first 1, 2, ..., n samples; a tie counts part."""

    vote: Float[Array, "problems n"]
    best: Float[Array, "problems n"]
    weighted: Float[Array, "problems n"]


@functools.partial(jax.jit, static_argnames=("world", "n"))
def sample(keys: Key[Array, " problems"], world: World, n: int) -> Samples:
    """n samples of each problem, one key per problem (consumed)."""
    rest = (1 - world.right - world.tempting) / world.tail
    chances = jnp.array([world.right, world.tempting] + [rest] * world.tail)

    def one(key):
        answer, noise, fool = jax.random.split(key, 3)
        answers = jax.random.categorical(answer, jnp.log(chances), shape=(n,))
        fooled = jax.random.bernoulli(fool, world.exploit, (n,)) & (answers != RIGHT)
        level = jnp.where(fooled, world.exploit_score, (answers == RIGHT) * 1.0)
        return Samples(answers, level + world.noise * jax.random.normal(noise, (n,)))

    return jax.vmap(one)(keys)


@functools.partial(jax.jit, static_argnames="num_answers")
def accuracy(samples: Samples, *, num_answers: int) -> Accuracy:
    """Three ways of choosing, at every number of samples.

    Args:
      samples: of `sample`.
      num_answers: distinct answers of the world, `tail + 2`.

    Returns:
      vote: the most frequent answer; best: the answer of the highest score (best-of-n);
      weighted: the answer with the highest sum of scores.
    """

    def one(answers, scores):
        given = jax.nn.one_hot(answers, num_answers)
        best = jax.lax.cummax(scores)
        place = jnp.where(scores == best, jnp.arange(len(scores)), 0)
        favourite = answers[jax.lax.cummax(place)]
        votes = jnp.cumsum(given, 0)
        sums = jnp.cumsum(given * scores[:, None], 0)
        return Accuracy(
            _right_share(votes),
            (favourite == RIGHT) * 1.0,
            _right_share(jnp.where(votes > 0, sums, -jnp.inf)),
        )

    return jax.vmap(one)(*samples)


def _right_share(totals: Float[Array, "n A"]) -> Float[Array, " n"]:
    top = totals >= totals.max(1, keepdims=True)
    return top[:, RIGHT] / top.sum(1)


def simulate(
    world: World, *, problems: int = 300, n: int = 1024, seed: int = 0
) -> Accuracy:
    """`Accuracy` of a world, averaged over problems: three curves over 1..n.

    Args:
      world: rates and verifier.
      problems: how many.
      n: samples of each.
      seed: of everything.

    Returns:
      an `Accuracy` of arrays [n].
    """
    keys = jax.random.split(jax.random.key(seed), problems)
    found = accuracy(sample(keys, world, n), num_answers=world.tail + 2)
    return Accuracy(*(np.asarray(curve).mean(0) for curve in found))


def best_of_n_policy(
    policy: Float[np.ndarray, " N"], scores: Float[np.ndarray, " N"], n: int
) -> Float[np.ndarray, " N"]:
    """Chance of each answer to be the best of n draws; scores must differ.

    With F the mass of answers that score no higher, it is F^n less that of the next
    lower answer. For a fine policy its KL from `policy` is log n - (n - 1) / n.

    Example:
      >>> print(best_of_n_policy(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 2))
      [0.25 0.75]
    """
    order = np.argsort(scores)
    reached = np.cumsum(policy[order]) ** n
    chosen = np.empty_like(reached)
    chosen[order] = np.diff(reached, prepend=0.0)
    return chosen


def tilted_policy(
    policy: Float[np.ndarray, " N"], rewards: Float[np.ndarray, " N"], kl: float
) -> Float[np.ndarray, " N"]:
    """The policy of highest mean reward among those within `kl` nats of `policy`.

    It is policy * exp(reward / beta), what RL with a KL penalty tends to; beta is found
    by bisection.
    """

    def at(strength):
        weights = policy * np.exp(strength * (rewards - rewards.max()))
        return weights / weights.sum()

    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if divergence(at(middle), policy) < kl else (low, middle)
        )
    return at(low)


def divergence(p: Float[np.ndarray, " N"], q: Float[np.ndarray, " N"]) -> float:
    """KL(p || q) in nats; terms without mass under p are 0."""
    held = p > 0
    return float((p[held] * np.log(p[held] / q[held])).sum())
