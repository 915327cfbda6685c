"""Difficulty bins, the best strategy of each, and how much compute that saves."""

import numpy as np
import pytest

from rlvr_jax.analysis.budgets import (
    allocated,
    best_strategies,
    budget_for,
    difficulty_bins,
    inference_multiplier,
    ranking_flops,
)
from rlvr_jax.toys.choosing import HARD, simulate


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


@pytest.mark.parametrize(
    ("share", "factor"), [(0.16, 257.75), (0.79, 63.37), (22, 15.77)]
)
def test_a_small_model_may_sample_more_for_the_same_flops(share, factor):
    """TT-15: a model 14 times larger: 14 + 39 / R, for the three R of the paper."""
    assert inference_multiplier(14, share) == pytest.approx(factor, abs=0.005)
    # What it says: both sums of FLOPs, 6 n per token of training and 2 n of sampling.
    tokens, size = 1e12, 1e9
    large = 6 * 14 * size * tokens + 2 * 14 * size * share * tokens
    small = 6 * size * tokens
    small += 2 * size * share * tokens * inference_multiplier(14, share)
    assert small == pytest.approx(large)
    assert inference_multiplier(1, share) == 1


def test_a_multiplier_of_nothing_is_refused():
    with pytest.raises(ValueError, match="size_ratio >= 1 and inference_share > 0"):
        inference_multiplier(14, 0.0)
    with pytest.raises(ValueError, match=r"got 0\.5 and 1"):
        inference_multiplier(0.5, 1)


def test_recognising_is_cheaper_than_generating():
    """TT-09: of Cobbe et al.'s sizes, 6B that generate and 6B that rank: 175 / 12 =
    14.6 ranked samples cost one of 175B, whatever their length, and training costs
    175 / 6 = 29 times as much for the larger. On the hard problems of the simulator (.2
    right per sample, a noisy verifier) the small pair reaches what a generator that is
    right three times as often does, for less than half of its FLOPs."""
    one = ranking_flops(1, 200, generator=175e9)
    assert one == 2 * 175e9 * 200

    def ranked(samples):
        return ranking_flops(samples, 200, generator=6e9, verifier=6e9)

    assert one / ranked(1) == pytest.approx(175 / 12)
    assert ranked(14) < one < ranked(15)
    # A vote pays for no verifier.
    assert ranking_flops(2, 200, generator=6e9) == ranked(1)
    small = simulate(HARD, problems=2000, n=64)
    needed = budget_for(3 * HARD.right, np.arange(1, 65), np.asarray(small.best))
    assert 4 < needed < 7
    assert ranked(needed) < one / 2
