"""pass@k against enumeration, and its interval against known coverage."""

import itertools
import math

import numpy as np
import pytest

from rlvr_jax.core.passk import (
    detectable_rate,
    expected_pass_at_k,
    mean_interval,
    pass_at_k,
    pass_curve,
    sampling_error,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (10, 1, 5, 0.5),  # 1 - C(9,5)/C(10,5) = 1 - 126/252
        (4, 2, 2, 5 / 6),  # 1 - C(2,2)/C(4,2) = 1 - 1/6
        (200, 3, 100, 0.87688),  # 1 - C(197, 100) / C(200, 100)
        (10, 8, 3, 1.0),  # k > n - c: every draw holds a correct one
        (8, 0, 8, 0.0),
        (1, 1, 1, 1.0),
    ],
)
def test_known_values(n, c, k, expected):
    np.testing.assert_allclose(pass_at_k(n, c, k), expected, atol=5e-6)


def test_equals_enumeration_of_all_draws():
    """Every subset of size k of n labelled samples, for all c and k at n = 7."""
    n = 7
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        labels = [1] * c + [0] * (n - c)
        draws = [any(draw) for draw in itertools.combinations(labels, k)]
        np.testing.assert_allclose(pass_at_k(n, c, k), np.mean(draws), atol=1e-15)


def test_unbiased_over_binomial_counts():
    """E over c ~ Bin(n, p) is 1 - (1 - p)^k; the plug-in estimate is not."""
    n, p = 6, 0.3
    counts = np.arange(n + 1)
    weights = np.array(
        [
            np.prod([(n - j) / (j + 1) for j in range(c)]) * p**c * (1 - p) ** (n - c)
            for c in counts
        ]
    )
    for k in range(1, n + 1):
        mean = weights @ pass_at_k(n, counts, k)
        np.testing.assert_allclose(mean, 1 - (1 - p) ** k, atol=1e-14)


def test_arrays_broadcast():
    found = pass_at_k(np.array([8, 4]), np.array([1, 2]), np.array([[1], [2], [4]]))
    # k = 1: c/n; k = 2: 1 - C(7,2)/C(8,2) = 1/4, 5/6; k = 4: 1/2, 1.
    np.testing.assert_allclose(found, [[1 / 8, 1 / 2], [1 / 4, 5 / 6], [1 / 2, 1]])


def test_large_counts_stay_exact():
    """C(100000, 50000) overflows a float; 1 - (1 - k/n) for one correct is k/n."""
    np.testing.assert_allclose(pass_at_k(100_000, 1, 50_000), 0.5, rtol=1e-10)


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (4, 2, 5, "evaluation.num_generations"),
        (4, 2, 0, "k must be in"),
        (4, 5, 1, "num_correct must be in"),
        (4, -1, 1, "num_correct must be in"),
        (4, np.array([0.5]), 1, "num_correct must be whole"),
    ],
)
def test_errors(n, c, k, message):
    with pytest.raises(ValueError, match=message):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [
        # Quantiles .025 and .975 of Beta(c + 1/2, n - c + 1/2), from scipy.stats.beta.
        (0, 20, 0.0, 0.11664),
        (3, 20, 0.04404, 0.35042),
        (10, 20, 0.29256, 0.70744),
        (20, 20, 0.88336, 1.0),
    ],
)
def test_interval_of_binary_scores_is_jeffreys(right, of, low, high):
    scores = [1.0] * right + [0.0] * (of - right)
    mean, found_low, found_high = mean_interval(scores, resamples=200_000)
    assert mean == right / of
    # Monte-Carlo error of a tail quantile of 200,000 draws: below 0.001 here.
    np.testing.assert_allclose([found_low, found_high], [low, high], atol=0.0015)


def test_interval_holds_the_mean_and_stays_in_bounds():
    for size in (1, 2, 5, 50):
        for score in (0.0, 0.125, 1.0):
            mean, low, high = mean_interval(np.full(size, score), resamples=500)
            assert 0 <= low <= mean <= high <= 1
            assert low < high


def test_interval_is_a_function_of_the_seed():
    scores = np.linspace(0, 1, 9)
    assert mean_interval(scores, seed=3) == mean_interval(scores, seed=3)
    assert mean_interval(scores, seed=3) != mean_interval(scores, seed=4)


def test_interval_shrinks_with_problems():
    """By sqrt(n): four times the problems, half the width (5% Monte-Carlo slack)."""
    scores = np.random.default_rng(0).uniform(size=100)
    _, low, high = mean_interval(scores)
    _, low4, high4 = mean_interval(np.tile(scores, 4))
    np.testing.assert_allclose((high - low) / (high4 - low4), 2.0, rtol=0.05)


def test_interval_covers_the_truth_on_a_small_evaluation():
    """30 problems x 8 samples of a weak model, p_i ~ Beta(.3, 3): truth 1/11.

    Coverage of a 95% interval over 300 repetitions; 3 standard errors are 0.038. The
    percentile bootstrap reaches only about .90 here.
    """
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(300):
        correct = rng.binomial(8, rng.beta(0.3, 3.0, size=30))
        _, low, high = mean_interval(correct / 8, resamples=1000)
        hits.append(low <= 1 / 11 <= high)
    assert 0.95 - 0.038 <= np.mean(hits) <= 0.95 + 0.038


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([], {}, "at least one value"),
        ([0.5, 1.5], {}, r"in 0\.\.1"),
        ([0.5, np.nan], {}, r"in 0\.\.1"),
        ([0.5], {"level": 95.0}, "level must be in"),
    ],
)
def test_interval_errors(values, options, message):
    with pytest.raises(ValueError, match=message):
        mean_interval(values, **options)


def test_curve_is_pass_at_k_for_every_k():
    """Also for n that differ from problem to problem."""
    n, c = np.array([10, 12, 7]), np.array([3, 0, 7])
    expected = pass_at_k(n[:, None], c[:, None], np.arange(1, 8))
    np.testing.assert_allclose(pass_curve(n, c), expected, atol=1e-14)
    assert pass_curve(200, [3], 100)[0, -1] == pytest.approx(0.87688, abs=5e-6)
    with pytest.raises(ValueError, match="k must be in"):
        pass_curve(4, [1], 5)
    with pytest.raises(ValueError, match="at least one problem"):
        pass_curve(4, [])


def test_exactly_k_samples_are_noisier():
    """PK-03: over Binomial(n, p) counts, n = 12, k = 4, the estimator varies less than
    the single group of k, whose variance is q (1 - q), q = 1 - (1 - p)^k."""
    n, k, p = 12, 4, 0.3
    counts = np.arange(n + 1)
    weights = np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in counts])
    found = pass_at_k(n, counts, k)
    mean = weights @ found
    variance = weights @ (found - mean) ** 2
    q = 1 - (1 - p) ** k
    assert mean == pytest.approx(q)
    assert variance < 0.5 * q * (1 - q)
    # With n = k there is nothing to average, and the two agree.
    weights = np.array(
        [math.comb(k, c) * p**c * (1 - p) ** (k - c) for c in range(k + 1)]
    )
    alone = pass_at_k(k, np.arange(k + 1), k)
    assert weights @ (alone - q) ** 2 == pytest.approx(q * (1 - q))


def test_limits_of_pass_at_k():
    """PK-04: pass@1 is the mean rate, pass@infinity the share with p > 0."""
    rates = np.array([0.0, 1e-4, 0.3, 1.0])
    assert expected_pass_at_k(rates, 1).mean() == pytest.approx(rates.mean())
    assert expected_pass_at_k(rates, 1e6).mean() == pytest.approx(0.75)
    with pytest.raises(ValueError, match="needs rates"):
        expected_pass_at_k([1.5], 2)


def test_error_of_the_mean_over_samples():
    """PK-34: se of avg@32 = sqrt(mean p (1 - p) / 32 / N), here against a simulation of
    4,000 evaluations of five problems; their std is within 3 % of it two times of
    three, so 5 % is beyond 4 standard errors of a std (1 / sqrt(2 x 4000) = 1.1 %)."""
    rates = np.array([0.05, 0.2, 0.5, 0.8, 1.0])
    rng = np.random.default_rng(0)
    means = rng.binomial(32, rates, (4000, 5)).mean(axis=1) / 32
    assert sampling_error(rates, 32) == pytest.approx(means.std(), rel=0.05)


def test_none_of_2048_leaves_a_rate():
    """PK-28's bound: 1 - .05^(1/2048) = .00146."""
    assert detectable_rate(2048) == pytest.approx(0.00146, abs=5e-6)
    assert (1 - detectable_rate(2048)) ** 2048 == pytest.approx(0.05)
