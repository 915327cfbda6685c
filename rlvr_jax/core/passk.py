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


def pass_curve(
    num_samples: Counts, num_correct: Counts, max_k: int | None = None
) -> NDArray[np.float64]:
    r"""`pass_at_k` of every problem for every k from 1 to max_k: the rows of a curve.

    Args:
      num_samples: n per problem, or one n for all.
      num_correct: c per problem, [N].
      max_k: the last k; by default the smallest n.

    Returns:
      Estimates, [N, max_k]; column k - 1 is pass@k.

    Raises:
      ValueError: as `pass_at_k`.

    Example:
      >>> print(pass_curve(4, [0, 1, 2]).round(3))
      [[0.    0.    0.    0.   ]
       [0.25  0.5   0.75  1.   ]
       [0.5   0.833 1.    1.   ]]
    """
    n, c = np.broadcast_arrays(
        _whole("num_samples", num_samples), _whole("num_correct", num_correct)
    )
    n, c = n.reshape(-1), c.reshape(-1)
    last = int(n.min(initial=2**31)) if max_k is None else max_k
    if c.size == 0:
        raise ValueError("pass_curve: needs at least one problem, got none.")
    # Checks all bounds; its own result is the last column.
    pass_at_k(n, c, last)
    drawn = np.arange(last)
    factors = (n - c)[:, None] - drawn
    chances = factors / (n[:, None] - drawn)
    return np.asarray(1 - np.cumprod(chances, axis=1), np.float64)


def expected_pass_at_k(rates: Scores, k: float | int) -> NDArray[np.float64]:
    """1 - (1 - p)^k of problems whose success rate p is known.

    Its limits: p itself at k = 1; for k to infinity 1 where p > 0, else 0.

    Args:
      rates: p, in 0..1.
      k: draws, 1 or more.

    Returns:
      The chance of at least one success, in the shape of `rates`.

    Raises:
      ValueError: a rate outside 0..1, or k below 1.

    Example:
      >>> print(expected_pass_at_k([0.0, 0.3, 1.0], 4).round(4))
      [0.     0.7599 1.    ]
    """
    p = np.asarray(rates, np.float64)
    if np.any((p < 0) | (p > 1)) or k < 1:
        raise ValueError(
            f"expected_pass_at_k: needs rates in 0..1 and k >= 1, got k={k}."
        )
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(k * np.log1p(-p)), np.float64)


def sampling_error(rates: Scores, num_samples: int) -> float:
    """Standard error of avg@n that comes from drawing completions, not problems.

        sqrt( mean_i p_i (1 - p_i) / n / N )

    What would change if the same N problems were sampled again; which problems were
    chosen is `mean_interval`'s uncertainty.

    Args:
      rates: success rate of each problem.
      num_samples: n completions of each.

    Returns:
      the error, in the unit of `rates`.

    Example:
      >>> round(sampling_error([0.5] * 100, 25), 4)
      0.01
    """
    p = np.asarray(rates, np.float64)
    return float(np.sqrt((p * (1 - p)).mean() / num_samples / p.size))


def detectable_rate(num_samples: int, level: float = 0.95) -> float:
    """The largest success rate that none correct of n leaves possible.

        p = 1 - (1 - level)^(1/n)

    Args:
      num_samples: n, none of them correct.
      level: how sure.

    Returns:
      the upper bound; never 0: not seen is not impossible.

    References:
      The Invisible Leash. https://arxiv.org/abs/2507.14843

    Example:
      >>> print(f"{detectable_rate(2048):.5f} {detectable_rate(8192):.4e}")
      0.00146 3.6562e-04
    """
    return -float(np.expm1(np.log1p(-level) / num_samples))


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
    scores = np.asarray(values, np.float64).reshape(-1, 1)
    mean, low, high = mean_intervals(
        scores, level=level, seed=seed, resamples=resamples
    )[0]
    return float(mean), float(low), float(high)


def mean_intervals(
    values: NDArray[np.float64],
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
) -> NDArray[np.float64]:
    """`mean_interval` of every column, from the same weights.

    Args:
      values: scores, one row per problem, as from `pass_curve`: [N, K].
      level: as in `mean_interval`.
      seed: of the weights.
      resamples: number of weight vectors.

    Returns:
      (mean, low, high) of each column, [K, 3]. Each interval is for its own column.

    Raises:
      ValueError: as `mean_interval`.
    """
    if values.size == 0 or not np.all((values >= 0) & (values <= 1)):
        raise ValueError(
            "mean_interval: needs at least one value, all in 0..1, got "
            f"{values.size} values"
            + (f" from {values.min()} to {values.max()}." if values.size else ".")
        )
    if not 0 < level < 1:
        raise ValueError(f"mean_interval: level must be in 0..1, got {level}.")
    mean = values.mean(axis=0)
    means = _weighted_means(values, np.random.default_rng(seed), resamples)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.stack([mean, np.minimum(low, mean), np.maximum(high, mean)], axis=1)


def _weighted_means(
    values: NDArray[np.float64], rng: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """Means of columns under Dirichlet weights that also fall on a 0 and a 1."""
    block = max(BLOCK_VALUES // len(values), 1)
    means = []
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        weights = rng.standard_exponential((rows, len(values)))
        at_zero, at_one = rng.standard_gamma(0.5, (2, rows))
        total = weights.sum(axis=1) + at_zero + at_one
        means.append((weights @ values + at_one[:, None]) / total[:, None])
    return np.concatenate(means)


def _whole(name: str, values: Counts) -> NDArray[np.int64]:
    """The values as integers, or ValueError where they are not whole numbers."""
    array = np.asarray(values)
    whole = array.astype(np.int64)
    if not np.array_equal(array, whole):
        raise ValueError(f"pass_at_k: {name} must be whole numbers, got {values}.")
    return whole
