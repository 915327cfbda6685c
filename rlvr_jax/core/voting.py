"""Choosing one of k completions: by vote, by a score, or both. NumPy, float64."""

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


def weighted_vote(answers: Scores, scores: Scores, correct: Scores) -> float:
    r"""Verifier-weighted voting of all n samples of one problem.

        the answer a with the largest sum of scores over its samples

    Evidence for an answer adds up, so that one sample that fools the verifier does not
    decide, as it does in best-of-n.

    Args:
      answers: which answer each sample gives, as a number of 0 and more; -1 for none,
        which never wins.
      scores: of a verifier; in 0..1, say, since what is negative counts against.
      correct: 1 or 0 per sample; an answer's own value is the mean over its samples.

    Returns:
      the value of the chosen answer; tied ones share it. 0 where no sample has one.

    Raises:
      ValueError: lengths that differ.

    References:
      Li et al. 2022. https://arxiv.org/abs/2206.02336

    Example:
      >>> weighted_vote([0, 0, 1], [0.4, 0.4, 0.7], [1, 1, 0])
      1.0
    """
    labels, weights = np.asarray(answers), np.asarray(scores, np.float64)
    values = np.asarray(correct, np.float64)
    if not labels.shape == weights.shape == values.shape:
        raise ValueError(
            "weighted_vote: needs an answer, a score and a verdict per sample, got "
            f"{labels.shape}, {weights.shape} and {values.shape}."
        )
    names = [name for name in np.unique(labels) if name >= 0]
    if not names:
        return 0.0
    sums = np.array([weights[labels == name].sum() for name in names])
    right = np.array([values[labels == name].mean() for name in names])
    return float(right[sums == sums.max()].mean())


def auc(scores: Scores, correct: Scores) -> float:
    r"""How well scores tell right from wrong: the area under the ROC curve.

        P(score of a right one > score of a wrong one) + P(equal) / 2

    Args:
      scores: higher is better.
      correct: 1 or 0 per sample.

    Returns:
      the area: 1 for a perfect order, 0.5 for none; 0.5 where all are right or wrong.

    Raises:
      ValueError: lengths that differ.

    Example:
      >>> auc([0.1, 0.4, 0.4, 0.9], [0, 1, 0, 1])
      0.875
    """
    ranked, labels = np.asarray(scores, np.float64), np.asarray(correct) > 0
    if ranked.shape != labels.shape:
        raise ValueError(
            "auc: needs a score and a verdict per sample, got "
            f"{ranked.shape} and {labels.shape}."
        )
    right, wrong = ranked[labels], np.sort(ranked[~labels])
    if not len(right) or not len(wrong):
        return 0.5
    below = np.searchsorted(wrong, right, side="left")
    up_to = np.searchsorted(wrong, right, side="right")
    return float((below + up_to).mean() / (2 * len(wrong)))
