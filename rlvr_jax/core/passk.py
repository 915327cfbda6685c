"""pass@k from n samples per problem, and an interval over problems. NumPy, float64."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Counts = int | Sequence[int] | np.integer | np.ndarray
Scores = Sequence[float] | Sequence[int] | np.ndarray

BLOCK_VALUES = 1 << 22
"""Random weights held at once by `mean_interval`: 32 MB."""


def pass_at_k(
    num_samples: Counts, num_correct: Counts, k: Counts
) -> NDArray[np.float64]:
    r"""The unbiased estimate that one of k samples is correct, from n samples.

        1 - C(n - c, k) / C(n, k) = 1 - prod_{j<k} (n - c - j) / (n - j)

    the chance that k of the n samples, drawn without replacement, hold a correct one.
    The product has no large numbers in it, so it stays exact for any n.

    Args:
      num_samples: n per problem, integers.
      num_correct: c per problem, integers in 0..n.
      k: integers in 1..n. The three broadcast against one another.

    Returns:
      Estimates in 0..1, float64, in the broadcast shape.

    Raises:
      ValueError: k > n, k < 1, c outside 0..n, or values that are not whole numbers.

    References:
      Chen et al. 2021, sec. 2.1. https://arxiv.org/abs/2107.03374

    Example:
      >>> print(pass_at_k(10, [0, 1, 2, 10], 5).round(4))
      [0.     0.5    0.7778 1.    ]
    """
    n, c, k = np.broadcast_arrays(
        _whole("num_samples", num_samples),
        _whole("num_correct", num_correct),
        _whole("k", k),
    )
    if np.any((k < 1) | (k > n)):
        raise ValueError(
            f"pass_at_k: k must be in 1..num_samples, got k={k.tolist()} with "
            f"num_samples={n.tolist()}. Draw more samples per problem "
            "(evaluation.num_generations in a config) or ask for a smaller k."
        )
    if np.any((c < 0) | (c > n)):
        raise ValueError(
            f"pass_at_k: num_correct must be in 0..num_samples, got {c.tolist()} with "
            f"num_samples={n.tolist()}."
        )
    all_wrong = np.ones(n.shape)
    for j in range(int(k.max(initial=0))):
        # Once n - c - j is 0 the product stays 0; n - j is 0 only beyond an entry's k.
        factor = (n - c - j) / np.maximum(n - j, 1)
        all_wrong *= np.where(j < k, factor, 1.0)
    return np.asarray(1.0 - all_wrong)


def mean_interval(
    values: Scores,
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
) -> tuple[float, float, float]:
    r"""The mean of per-problem scores and an interval for it over problems.

    Problems are the unit that is drawn at random, so they carry the uncertainty; the
    samples within a problem enter through its score. The interval is a Bayesian
    bootstrap with one virtual problem, half of it at 0 and half at 1:

        mean_b = sum_i w_i v_i + w_{n+2},
        (w_1..w_n, w_{n+1}, w_{n+2}) ~ Dirichlet(1, ..., 1, 1/2, 1/2)

    and its quantiles at (1 - level)/2 and (1 + level)/2, widened to hold the mean. For
    scores of 0 and 1 this is the Jeffreys interval, Beta(c + 1/2, n - c + 1/2). Unlike
    the percentile or BCa bootstrap it does not collapse to a point when all scores are
    0 or 1, which is what a small evaluation of a weak or strong model gives.

    Args:
      values: one score per problem in 0..1, as its mean reward or its `pass_at_k`.
      level: how much of the distribution of the mean lies inside.
      seed: of the random weights; the same seed gives the same interval.
      resamples: number of weight vectors.

    Returns:
      (mean, low, high), in 0..1.

    Raises:
      ValueError: no values, values outside 0..1 or NaN, or a level outside 0..1.

    References:
      Rubin 1981, The Bayesian Bootstrap. https://doi.org/10.1214/aos/1176345338
      Brown, Cai, DasGupta 2001. https://doi.org/10.1214/ss/1009213286

    Example:
      >>> mean, low, high = mean_interval([0.0] * 50)
      >>> print(f"{mean:.2f} [{low:.2f}, {high:.2f}]")
      0.00 [0.00, 0.05]
    """
    scores = np.asarray(values, np.float64).ravel()
    if scores.size == 0 or not np.all((scores >= 0) & (scores <= 1)):
        raise ValueError(
            "mean_interval: needs at least one value, all in 0..1, got "
            f"{scores.size} values"
            + (f" from {scores.min()} to {scores.max()}." if scores.size else ".")
        )
    if not 0 < level < 1:
        raise ValueError(f"mean_interval: level must be in 0..1, got {level}.")
    mean = float(scores.mean())
    means = _weighted_means(scores, np.random.default_rng(seed), resamples)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return mean, min(float(low), mean), max(float(high), mean)


def _weighted_means(
    scores: NDArray[np.float64], rng: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """Means of `scores` under Dirichlet weights that also fall on a 0 and a 1."""
    block = max(BLOCK_VALUES // scores.size, 1)
    means = []
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        weights = rng.standard_exponential((rows, scores.size))
        at_zero, at_one = rng.standard_gamma(0.5, (2, rows))
        total = weights.sum(axis=1) + at_zero + at_one
        means.append((weights @ scores + at_one) / total)
    return np.concatenate(means)


def _whole(name: str, values: Counts) -> NDArray[np.int64]:
    """The values as integers, or ValueError where they are not whole numbers."""
    array = np.asarray(values)
    whole = array.astype(np.int64)
    if not np.array_equal(array, whole):
        raise ValueError(f"pass_at_k: {name} must be whole numbers, got {values}.")
    return whole
