"""Long2short: what a model that thinks long is taught from, to think shorter.

Kimi k1.5 (sec. 2.4, https://arxiv.org/abs/2501.12599) compares four ways: weights of a
long and a short model averaged (`models.averaging`), the shortest correct of several
samples to imitate, pairs for DPO, and RL with a length penalty and a lower limit
(`objective.length_reward_weight`, `rollout.max_completion_tokens`).
"""

from collections.abc import Sequence
from typing import NamedTuple


class Sampled(NamedTuple):
    """One sampled solution of a problem."""

    text: str
    tokens: int
    correct: bool


class Pair(NamedTuple):
    """A comparison for `core.preferences.dpo_loss`."""

    chosen: Sampled
    rejected: Sampled


def shortest_correct(samples: Sequence[Sampled]) -> Sampled | None:
    """Shortest rejection sampling: of n (Kimi: 8), the shortest that is right.

    Args:
      samples: of one problem; the first of equally short ones wins.

    Returns:
      the sample to imitate, or None where none is right.

    Example:
      >>> rows = ("a", 90, True), ("b", 40, True), ("c", 5, False)
      >>> shortest_correct([Sampled(*row) for row in rows]).text
      'b'
    """
    right = [sample for sample in samples if sample.correct]
    return min(right, key=lambda sample: sample.tokens, default=None)


def length_pairs(samples: Sequence[Sampled], *, ratio: float = 1.5) -> list[Pair]:
    """Pairs that prefer the shortest correct sample to longer ones.

    Rejected are wrong samples that are longer, and correct ones of more than `ratio`
    times the chosen one's length.

    Args:
      samples: of one problem.
      ratio: how much longer a correct one must be.

    Returns:
      the pairs, in the order of the rejected; none where nothing is right.

    Raises:
      ValueError: `ratio` is below 1: a sample would lose to a longer one.

    Example:
      >>> rows = ("a", 40, True), ("b", 61, True), ("c", 50, False)
      >>> pairs = length_pairs([Sampled(*row) for row in rows])
      >>> [pair.rejected.text for pair in pairs]
      ['b', 'c']
    """
    if ratio < 1:
        raise ValueError(f"length_pairs: ratio must be at least 1, got {ratio}")
    chosen = shortest_correct(samples)
    if chosen is None:
        return []
    longest = ratio * chosen.tokens
    return [
        Pair(chosen, sample)
        for sample in samples
        if sample.tokens > (longest if sample.correct else chosen.tokens)
    ]
