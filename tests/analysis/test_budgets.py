"""Difficulty bins, the best strategy of each, and how much compute that saves."""

import numpy as np
import pytest

from rlvr_jax.analysis.budgets import (
    allocated,
    best_strategies,
    budget_for,
    difficulty_bins,
)


def test_edges_on_planted_rates():
    """TT-12: rates .1, .2, ..., 1 make quintiles of two; the edges lie at 1/5 ... 4/5
    of the way: .28, .46, .64, .82 by linear interpolation."""
    rates = np.arange(1, 11) / 10
    found, edges = difficulty_bins(rates)
    np.testing.assert_allclose(edges, [0.28, 0.46, 0.64, 0.82])
    np.testing.assert_array_equal(found, np.repeat(np.arange(5), 2))
    # In any order, and for shares of unequal spacing.
    shuffled = np.array([0.9, 0.01, 0.5, 0.02])
    np.testing.assert_array_equal(difficulty_bins(shuffled, 2)[0], [1, 0, 1, 0])
    # The median is the edge of two bins, and above it.
    np.testing.assert_array_equal(difficulty_bins(np.arange(3.0), 2)[0], [0, 1, 1])
    with pytest.raises(ValueError, match="5 bins of 3 problems"):
        difficulty_bins(rates[:3])


def test_predicted_bins_need_no_label():
    """TT-12: 2,048 samples of 500 problems; a verifier whose mean score grows with the
    rate puts nine of ten problems where the oracle does."""
    rng = np.random.default_rng(0)
    rates = rng.beta(0.6, 0.9, 500)
    oracle, _ = difficulty_bins(rng.binomial(2048, rates) / 2048)
    scores = 0.2 + 0.6 * rates + rng.normal(0, 0.005, 500)
    predicted, _ = difficulty_bins(scores)
    assert (oracle == predicted).mean() > 0.9
    assert abs(oracle - predicted).max() == 1
    np.testing.assert_array_equal(np.bincount(oracle), 100)


PLANTED = {
    # strategy -> accuracy in bins 0 (hardest) to 4
    "best of n": [0.05, 0.20, 0.55, 0.80, 0.95],
    "beam search": [0.10, 0.35, 0.60, 0.70, 0.85],
    "revisions": [0.02, 0.10, 0.50, 0.85, 0.99],
}


def test_the_best_strategy_of_each_bin_is_found():
    """TT-11: planted: beams below, revisions above; argmax of each column. 100 problems
    a bin, judged on the half that did not choose."""
    rng = np.random.default_rng(1)
    bins = np.repeat(np.arange(5), 100)
    drawn = {
        name: (rng.random(500) < np.array(rates)[bins]) * 1.0
        for name, rates in PLANTED.items()
    }
    exact = {name: np.array(rates)[bins] for name, rates in PLANTED.items()}
    found = best_strategies(exact, bins)
    best = ["beam search"] * 3 + ["revisions"] * 2
    assert found["choice"] == dict(enumerate(best))
    table = np.array(list(PLANTED.values()))
    assert found["accuracy"] == pytest.approx(table.max(axis=0).mean())
    assert found["single"] == pytest.approx(table.mean(axis=1).max())
    # With one draw per problem: no strategy is judged on what chose it, so the figure
    # stays below the best of all and near it, within four standard errors.
    sampled = best_strategies(drawn, bins)
    assert abs(sampled["accuracy"] - table.max(axis=0).mean()) < 4 * 0.5 / 500**0.5
    with pytest.raises(ValueError, match="one value per problem and strategy"):
        best_strategies(exact, bins[:10])


def test_adaptive_allocation_needs_a_fraction_of_the_samples():
    """TT-13: nine of ten problems have p = .95, one of ten p = .05. Uniform best-of-64
    with a verifier that knows is right on 1 - .1 x .95^64 = .9962; samples put where
    they help most get there with less than a quarter of them."""
    n = np.arange(1, 129)
    curves = np.stack([1 - (1 - p) ** n for p in (0.95, 0.05)])
    shares = np.array([0.9, 0.1])
    uniform = shares @ curves
    target = uniform[63]
    assert target == pytest.approx(1 - 0.1 * 0.95**64 - 0.9 * 0.05**64)
    cost, right = allocated(curves, shares)
    ratio = budget_for(target, n, uniform) / budget_for(target, cost, right)
    assert budget_for(target, n, uniform) == pytest.approx(64)
    assert ratio > 4
    # By hand: two or three samples of the easy, about 65 of the hard ones.
    by_hand = 64 / (0.9 * 3 + 0.1 * 65)
    assert ratio == pytest.approx(by_hand, rel=0.1)


def test_budgets_between_points_go_by_the_logarithm():
    """TT-13."""
    assert budget_for(0.5, [1, 4, 16], [0.2, 0.4, 0.6]) == pytest.approx(8)
    assert budget_for(0.2, [1, 4], [0.2, 0.4]) == 1
    assert budget_for(0.9, [1, 4], [0.2, 0.4]) == float("inf")
    # A curve that falls has reached what it once was.
    assert budget_for(0.4, [1, 4, 16], [0.2, 0.4, 0.3]) == pytest.approx(4)
