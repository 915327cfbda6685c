"""Slopes of planted curves."""

import numpy as np
import pytest

from rlvr_jax.analysis.trends import length_after_the_plateau, slope, steps_to


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
