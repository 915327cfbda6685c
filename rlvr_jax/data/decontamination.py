"""Training questions that come close to an evaluation question are found by n-grams.

Two questions are compared word by word; case, spaces and signs do not count. They are
too close where their words are equal, or where a large share of the runs of n words of
the evaluation question stands in the training question.
"""

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

from rlvr_jax.data.rows import Problem

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
"""Where no blanks are set (Chinese, Japanese) each sign is a word."""


@dataclasses.dataclass(frozen=True)
class Overlap:
    """A training problem that gives an evaluation problem away."""

    training: Problem
    evaluation: Problem
    share: float
    """Of the evaluation question's runs of words that it holds."""
    equal: bool
    """All words are equal, in the same order."""


def words(question: str) -> tuple[str, ...]:
    r"""What is compared: letters and digits, in any script.

    Example:
      >>> words("What is $2+3\\cdot x$?")
      ('what', 'is', '2', '3', 'cdot', 'x')
    """
    return tuple(_WORD.findall(question.casefold()))


def overlaps(
    training: Sequence[Problem],
    evaluation: Iterable[Problem],
    *,
    run_words: int = 13,
    share: float = 0.8,
) -> list[Overlap]:
    """Pairs of problems that are too close.

    Args:
      training: problems to train on.
      evaluation: problems to evaluate on.
      run_words: n; 13 as for GPT-3 (https://arxiv.org/abs/2005.14165, appendix C).
        Questions with fewer words are compared as a whole.
      share: of the runs of an evaluation question, from which on one training question
        is too close. 0 asks for a single common run.

    Returns:
      The pairs, in the order of `evaluation`, closest training problem first.
    """
    evaluation = list(evaluation)
    wanted = {run for p in evaluation for run in _runs(words(p.question), run_words)}
    holders: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)
    equals: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)
    for place, problem in enumerate(training):
        found = words(problem.question)
        equals[found].append(place)
        for run in _runs(found, run_words) & wanted:
            holders[run].append(place)
    pairs = []
    for problem in evaluation:
        own = words(problem.question)
        runs = _runs(own, run_words)
        counts = collections.Counter(
            place for run in runs for place in holders.get(run, ())
        )
        shares = {place: count / len(runs) for place, count in counts.items()}
        same = set(equals.get(own, ())) if own else set()
        close = {p for p, found in shares.items() if found >= share} | same
        ranked = sorted(close, key=lambda p: (p not in same, -shares.get(p, 0), p))
        pairs += [
            Overlap(training[p], problem, 1.0 if p in same else shares[p], p in same)
            for p in ranked
        ]
    return pairs


def without_overlaps(
    training: Sequence[Problem], found: Iterable[Overlap]
) -> list[Problem]:
    """The training problems that no overlap names."""
    close = {id(overlap.training) for overlap in found}
    return [problem for problem in training if id(problem) not in close]


def _runs(found: tuple[str, ...], length: int) -> set[tuple[str, ...]]:
    return {found[i : i + length] for i in range(len(found) - length + 1)}
