"""Search by guess and check: what a base must already do for RL to teach it to search.

A problem is a target whose way cannot be read off it, as in Countdown: a fresh guess is
right once in a while, whatever the policy knows. A trace is a row of moves, each chosen
by what is on the table:

    answer    ends the trace; right if the guess on the table is
    check     finds out whether the guess is right (verification)
    again     drops it and guesses anew (backtracking)
    filler    words that change nothing

The policy is a softmax over the four for each of three states: a guess not checked yet,
one found wrong, one found right. Bases differ in how often they check and go back. RL
and imitation are the same for all; who writes the traces that are imitated, and which
of them are kept, is the experiment.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.imitation import imitation_loss
from rlvr_jax.core.losses import reinforce_loss

ANSWER, CHECK, AGAIN, FILLER = range(4)
UNKNOWN, WRONG, RIGHT = range(3)
HIT = 0.15
"""Chance that a guess is right."""
LENGTH = 16
"""Moves; a trace without an answer by then is wrong."""
PROMPTS, GENERATIONS, RATE = 8, 8, 1.0
"""Per step of RL; and of gradient descent, for imitation too."""


class Traces(NamedTuple):
    """Sampled rows of moves; B traces."""

    states: Int[Array, "B T"]
    """What was on the table before each move."""
    moves: Int[Array, "B T"]
    written: Bool[Array, "B T"]
    """The trace had not ended yet."""
    correct: Bool[Array, " B"]


def policy(check: float, again: float, filler: float = 0.1) -> Float[Array, "3 4"]:
    """Logits of a policy with these habits; what is left over answers.

    Args:
      check: chance to check a guess that is not checked yet.
      again: chance to go back from a wrong one; twice checked is not twice as sure, so
        that neither move is made elsewhere more than once in a hundred times.
      filler: chance of words that change nothing, in every state.
    """
    rare = 0.01 * min(check, again)
    unknown = [1 - check - rare - filler, check, rare, filler]
    wrong = [1 - rare - again - filler, rare, again, filler]
    right = [1 - 2 * rare - filler, rare, rare, filler]
    return jnp.log(jnp.array([unknown, wrong, right]))


def sample(key: Key[Array, ""], logits: Float[Array, "3 4"], count: int) -> Traces:
    """Traces of as many problems.

    Args:
      key: consumed.
      logits: of the policy.
      count: B.
    """

    def move(table, key):
        state, hit, going = table
        choose, guess = jax.random.split(key)
        moves = jax.random.categorical(choose, logits[state])
        fresh = jax.random.bernoulli(guess, HIT, (count,))
        new_hit = jnp.where(moves == AGAIN, fresh, hit)
        found = jnp.where(hit, RIGHT, WRONG)
        after = jnp.where(moves == CHECK, found, state)
        after = jnp.where(moves == AGAIN, UNKNOWN, after)
        answered = going & (moves == ANSWER)
        left = (after, new_hit, going & ~answered)
        return left, (state, moves, going, answered & hit)

    first, rest = jax.random.split(key)
    hit = jax.random.bernoulli(first, HIT, (count,))
    table = (jnp.full(count, UNKNOWN), hit, jnp.ones(count, bool))
    steps = jax.lax.scan(move, table, jax.random.split(rest, LENGTH))[1]
    states, moves, written, right = (array.T for array in steps)
    return Traces(states, moves, written, right.any(axis=1))


def accuracy(logits: Float[Array, "3 4"]) -> Float[Array, ""]:
    """Chance of a right answer, exact."""
    p = jax.nn.softmax(logits)

    def move(mass, _):
        unknown, wrong, right, won = mass
        back = wrong * p[WRONG, AGAIN] + right * p[RIGHT, AGAIN]
        stays = lambda state: p[state, FILLER] + (state != UNKNOWN) * p[state, CHECK]
        fresh = unknown * (p[UNKNOWN, FILLER] + p[UNKNOWN, AGAIN]) + back
        checked = unknown * p[UNKNOWN, CHECK]
        won += HIT * unknown * p[UNKNOWN, ANSWER] + right * p[RIGHT, ANSWER]
        wrong = wrong * stays(WRONG) + (1 - HIT) * checked
        right = right * stays(RIGHT) + HIT * checked
        return (fresh, wrong, right, won), None

    zero = jnp.zeros(())
    return jax.lax.scan(move, (zero + 1, zero, zero, zero), length=LENGTH)[0][3]


def behaviours(traces: Traces) -> Float[Array, ""]:
    """Checks and returns per trace."""
    shown = (traces.moves == CHECK) | (traces.moves == AGAIN)
    return (shown & traces.written).sum(axis=1).mean()


@functools.partial(jax.jit, static_argnames=("keep", "count", "steps"))
def primed(
    keys: Key[Array, " seeds"],
    base: Float[Array, "3 4"],
    writer: Float[Array, "3 4"],
    *,
    keep: str = "all",
    count: int = 64,
    steps: int = 10,
) -> Float[Array, "seeds 3 4"]:
    """The base after imitating some of another policy's traces.

    Args:
      keys: consumed; one run each.
      base: where it starts.
      writer: who wrote the traces.
      keep: "right" or "wrong" ones alone, or "all".
      count: traces written, before some are kept.
      steps: of gradient descent on the mean over tokens, all traces in each.

    Raises:
      ValueError: an unknown `keep`.
    """
    if keep not in ("right", "wrong", "all"):
        raise ValueError(f"primed: keep is 'right', 'wrong' or 'all', got {keep!r}")

    def run(key):
        traces = sample(key, writer, count)
        kept = {
            "right": traces.correct,
            "wrong": ~traces.correct,
            "all": jnp.ones_like(traces.correct),
        }[keep]
        tokens = traces.written & kept[:, None]

        def loss(logits):
            each = imitation_loss(logprobs(logits, traces))
            return jnp.where(tokens, each, 0.0).sum() / jnp.maximum(tokens.sum(), 1)

        return descend(loss, base, steps)

    return jax.vmap(run)(keys)


@functools.partial(jax.jit, static_argnames="steps")
def reinforced(
    keys: Key[Array, " seeds"], starts: Float[Array, "seeds 3 4"], *, steps: int
) -> Float[Array, "seeds K 3 4"]:
    """RL by the group's mean on right answers: the logits after every step.

    Args:
      keys: consumed, one per start.
      starts: policies to go on from.
      steps: of one batch of `PROMPTS` x `GENERATIONS` traces each.
    """
    groups = jnp.repeat(jnp.arange(PROMPTS), GENERATIONS)

    def step(logits, key):
        traces = sample(key, logits, PROMPTS * GENERATIONS)
        advantages = group_advantages(traces.correct, groups)

        def loss(logits):
            each = reinforce_loss(logprobs(logits, traces), advantages)
            return jnp.where(traces.written, each, 0.0).sum(axis=1).mean()

        new = descend(loss, logits, 1)
        return new, new

    def run(key, start):
        return jax.lax.scan(step, start, jax.random.split(key, steps))[1]

    return jax.vmap(run)(keys, starts)


def logprobs(logits: Float[Array, "3 4"], traces: Traces) -> Float[Array, "B T"]:
    """Of every move; those behind the end mean nothing."""
    return jax.nn.log_softmax(logits)[traces.states, traces.moves]


def descend(loss, logits: Float[Array, "3 4"], steps: int) -> Float[Array, "3 4"]:
    """The logits after as many steps of plain gradient descent."""

    def step(logits, _):
        return logits - RATE * jax.grad(loss)(logits), None

    return jax.lax.scan(step, logits, length=steps)[0]
