"""Slopes of planted curves."""

import itertools

import numpy as np
import pytest

from rlvr_jax.analysis.trends import (
    ORDERS,
    length_after_the_plateau,
    rise,
    slope,
    steps_to,
)


def test_slope_and_error_are_those_of_polyfit():
    rng = np.random.default_rng(0)
    steps = np.arange(40.0)
    values = 3 + 0.1 * steps + rng.normal(size=40)
    coefficients, covariance = np.polyfit(steps, values, 1, cov=True)
    found = slope(steps, values)
    np.testing.assert_allclose(found.value, coefficients[0], rtol=1e-10)
    np.testing.assert_allclose(found.error, np.sqrt(covariance[0, 0]), rtol=1e-10)


@pytest.mark.parametrize("rambling", [True, False])
def test_wrong_answers_that_grow_after_the_reward_has_flattened(rambling):
    """AGG-12: reward saturates at step ~100 of 400; wrong length +.5 tokens a step.

    Noise: .02 on rewards, 10 tokens on lengths; the slope's error over 200 points is
    about 10 / (58 sqrt(200)) = .012 tokens a step.
    """
    rng = np.random.default_rng(1)
    steps = np.arange(400.0)
    reward = 0.8 - 0.5 * np.exp(-steps / 30) + rng.normal(0, 0.02, 400)
    growth = 0.5 if rambling else 0.0
    wrong = 300 + growth * steps + rng.normal(0, 10, 400)
    correct = 200 + rng.normal(0, 10, 400)
    found = length_after_the_plateau(steps, reward, wrong, correct)
    assert found["reward"].flat
    assert found["correct"].flat
    assert found["wrong"].grows == rambling
    np.testing.assert_allclose(found["wrong"].value, growth, atol=0.04)


@pytest.mark.parametrize("steps", [[0.0, 1.0], [2.0, 2.0, 2.0]])
def test_too_few_points(steps):
    with pytest.raises(ValueError, match="at least 3 points"):
        slope(np.array(steps), np.zeros(len(steps)))


def test_steps_to_a_level():
    """CLIP-17: planted 1 - e^(-k/tau) reaches .5 at tau log 2: twice tau, twice as
    many steps; a level above the curve is never reached."""
    steps = np.arange(200.0)
    for tau in (20.0, 40.0):
        curve = 1 - np.exp(-steps / tau)
        assert steps_to(steps, curve, 0.5) == np.ceil(tau * np.log(2))
    assert steps_to(steps, 0.5 * curve, 0.6) is None


def test_a_rising_curve_and_its_reverse():
    """REC-39: eight points that saturate; of 40,320 orders the sorted one alone fits as
    well, so that the curve's own is the only one of those drawn. Backwards, flat fits
    best, and every order fits as well."""
    curve = 1 - np.exp(-np.arange(8.0))
    found = rise(curve)
    np.testing.assert_allclose(found.fitted, curve, rtol=1e-12)
    assert (found.explained, found.p) == (1.0, 1 / ORDERS)
    found = rise(curve[::-1])
    np.testing.assert_allclose(found.fitted, np.full(8, curve.mean()), rtol=1e-12)
    assert found.explained == pytest.approx(0, abs=1e-12)
    assert found.p == 1
    assert rise(np.full(5, 0.3)).p == 1


def test_the_rising_fit_is_the_best_of_all_that_rise():
    """By least squares over pools of neighbours, written out: every way to cut four
    values into runs, each at its mean, that never falls."""
    values = np.array([0.4, 0.1, 0.7, 0.6])
    best = np.inf
    for cuts in itertools.product([False, True], repeat=3):
        pools = np.split(values, 1 + np.flatnonzero(cuts))
        fit = np.concatenate([np.full(len(pool), pool.mean()) for pool in pools])
        if (np.diff(fit) >= 0).all():
            best = min(best, ((values - fit) ** 2).sum())
    spread = ((values - values.mean()) ** 2).sum()
    assert rise(values).explained == pytest.approx(1 - best / spread, rel=1e-12)


def test_chance_makes_a_rise_in_five_of_a_hundred():
    """The p of 200 curves of noise, eight points each, is below .05 as often as it
    says: 10 +- 3 x 3.1."""
    draws = np.random.default_rng(5).normal(size=(200, 8))
    below = sum(rise(values).p <= 0.05 for values in draws)
    assert 1 <= below <= 19


def test_a_rise_needs_three_values():
    with pytest.raises(ValueError, match="rise: needs at least 3 values, got 2"):
        rise(np.array([0.1, 0.2]))
