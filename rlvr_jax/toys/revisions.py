"""Revising one answer again and again, starting afresh, or both.

A chain begins with an approach, which is the right kind with some chance; what follows
revises within it. Under the right kind, each revision that sees more failed attempts is
likelier to succeed, up to a limit; under a wrong one none ever does: the chain is
anchored. A budget of N answers is split into chains of equal length.
"""

import dataclasses

import numpy as np
from jaxtyping import Float, Int


@dataclasses.dataclass(frozen=True)
class Problem:
    """How hard it is to begin, and to finish."""

    approach: float
    """Chance that a fresh start is of the right kind."""
    first: float = 0.1
    """Chance that the first answer of such a chain is right."""
    gain: float = 0.08
    """What each failed attempt in view adds to it."""
    limit: float = 0.9


EASY = Problem(approach=1.0)
HARD = Problem(approach=0.25)


def chain_rate(problem: Problem, length: int) -> float:
    r"""Chance that a chain finds the answer: a (1 - prod_{t < length} (1 - s_t)).

    Example:
      >>> print(round(chain_rate(Problem(approach=0.5, first=0.2, gain=0.1), 2), 3))
      0.22
    """
    steps = np.minimum(problem.first + problem.gain * np.arange(length), problem.limit)
    return float(problem.approach * (1 - np.prod(1 - steps)))


def split_rate(problem: Problem, budget: int, length: int) -> float:
    """Chance that one of budget / length chains finds it; `length` divides the budget.

    A verifier that knows picks it out: coverage, not the choice, is what is compared.
    """
    return 1 - (1 - chain_rate(problem, length)) ** (budget // length)


def sweep(
    problem: Problem, budget: int
) -> tuple[Int[np.ndarray, " L"], Float[np.ndarray, " L"]]:
    """All splits of a budget: lengths of a chain, and the chance of each.

    Length 1 is all parallel, length `budget` all sequential.
    """
    lengths = np.array([n for n in range(1, budget + 1) if budget % n == 0])
    return lengths, np.array([split_rate(problem, budget, int(n)) for n in lengths])
