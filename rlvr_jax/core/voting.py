"""Choosing one of k completions: by vote, or by a score. NumPy, float64."""

import math

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from rlvr_jax.core.passk import Scores

MAX_SAMPLES = 1000
"""More, and binomial coefficients leave float64."""


def majority_at_k(answers: Scores, correct: Scores) -> Float[np.ndarray, " n"]:
    r"""maj@k (cons@k) of one problem for every k from 1 to n, exactly.

    The chance that the most frequent answer of k of the n samples, drawn without
    replacement, is right; tied answers share it equally. With m_a samples of answer a,

        maj@k = sum_t sum_{ties at t votes} mean(correct of the tied)
                * prod_a C(m_a, votes_a) / C(n, k)

    summed by a recursion over answers, so that no draw is simulated. k = 1 gives the
    mean, k = n the vote of all; for k to infinity it is 1 where the right answer is
    the most likely one, else 0.

    Args:
      answers: which answer each sample gives, as a number of 0 and more; -1 for none,
        which never wins a vote.
      correct: 1 or 0 per sample; an answer's own value is the mean over its samples.

    Returns:
      maj@k, column k - 1.

    Raises:
      ValueError: no samples, more than `MAX_SAMPLES`, or lengths that differ.

    References:
      Self-consistency. https://arxiv.org/abs/2203.11171

    Example:
      >>> print(majority_at_k([0, 0, 1], [1, 1, 0]).round(3))
      [0.667 0.667 1.   ]
    """
    labels, values = np.asarray(answers), np.asarray(correct, np.float64)
    n = len(labels)
    if labels.shape != values.shape or not 1 <= n <= MAX_SAMPLES:
        raise ValueError(
            f"majority_at_k: needs 1 to {MAX_SAMPLES} samples with an answer and a "
            f"verdict each, got {labels.shape} and {values.shape}."
        )
    names = [name for name in np.unique(labels) if name >= 0]
    sizes = np.array([(labels == name).sum() for name in names], int)
    right = np.array([values[labels == name].mean() for name in names])
    won = np.zeros(n + 1)
    for votes in range(1, int(sizes.max(initial=0)) + 1):
        won += _won_with(votes, n, sizes, right)
    # Sums of many rounded terms may pass 1 by a few units in the last place.
    return np.clip(won[1:] / _binomials(n, n)[1:], 0.0, 1.0)


def _won_with(
    votes: int, n: int, sizes: NDArray[np.int64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Correct winning subsets of each size, the winner having exactly `votes`."""
    big = sizes >= votes
    # Answers that cannot reach so many votes, and samples without one, come as they do.
    free = int(n - sizes[big].sum())
    ways = np.zeros((n + 1, 1))
    ways[:, 0] = _binomials(free, n)
    earned = np.zeros_like(ways)
    for size, value in zip(sizes[big], right[big], strict=True):
        choices = _binomials(int(size), n)
        fewer = np.where(np.arange(n + 1) < votes, choices, 0.0)
        mix = _toeplitz(fewer)
        tied_ways = _shifted(ways, votes) * choices[votes]
        tied_earned = _shifted(earned + value * ways, votes) * choices[votes]
        ways, earned = (
            np.pad(mix @ kept, ((0, 0), (0, 1))) + np.pad(tied, ((0, 0), (1, 0)))
            for kept, tied in ((ways, tied_ways), (earned, tied_earned))
        )
    ties = np.arange(1, ways.shape[1])
    return (earned[:, 1:] / ties).sum(axis=1)


def _binomials(size: int, n: int) -> NDArray[np.float64]:
    return np.array([float(math.comb(size, k)) for k in range(n + 1)])


def _toeplitz(column: NDArray[np.float64]) -> NDArray[np.float64]:
    lag = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(lag >= 0, column[np.maximum(lag, 0)], 0.0)


def _shifted(rows: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    moved = np.zeros_like(rows)
    moved[by:] = rows[: len(rows) - by]
    return moved


def best_of_k(scores: Scores, correct: Scores) -> Float[np.ndarray, " n"]:
    r"""Best-of-k of one problem for every k from 1 to n, exactly.

    The chance that the sample with the highest score among k of n, drawn without
    replacement, is right. Sorted by rising score, i = 1..n:

        BoN@k = sum_i C(i - 1, k - 1) / C(n, k) y_i

    Equal scores share their labels, as if their order were drawn. With the label as
    the score this is pass@k.

    Args:
      scores: what chooses; higher is better.
      correct: 1 or 0 per sample.

    Returns:
      BoN@k, column k - 1.

    Raises:
      ValueError: no samples, or lengths that differ.

    Example:
      >>> print(best_of_k([0.1, 0.5, 0.9], [1, 0, 1]).round(3))
      [0.667 0.667 1.   ]
    """
    ranks, labels = np.asarray(scores, np.float64), np.asarray(correct, np.float64)
    n = len(ranks)
    if ranks.shape != labels.shape or n == 0:
        raise ValueError(
            "best_of_k: needs a score and a verdict per sample, got "
            f"{ranks.shape} and {labels.shape}."
        )
    order = np.argsort(ranks, kind="stable")
    ranks, labels = ranks[order], labels[order].copy()
    for value in np.unique(ranks):
        labels[ranks == value] = labels[ranks == value].mean()
    found = np.empty(n)
    place = np.arange(1, n + 1)
    # C(i-1, k-1) / C(n, k) for k = 1, then for each next k by the ratio of the two.
    weight = np.full(n, 1 / n)
    for k in range(1, n + 1):
        found[k - 1] = min(weight @ labels, 1.0)
        weight = weight * np.maximum(place - k, 0) * (k + 1) / k / max(n - k, 1)
    return found
