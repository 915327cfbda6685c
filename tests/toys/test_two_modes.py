"""A rare behaviour is amplified along the logistic curve, or not at all."""

import numpy as np
import pytest

from rlvr_jax.toys.two_modes import logistic_shares, sampled_shares


def test_sampled_answers_follow_the_logistic_curve():
    """BEH-13: right 60 % of the time with the behaviour and 50 % without, from a share
    of .1. The mean path of 400 seeds x 64 answers stays on the curve of the exact
    gradient, whose step is smaller by 1 - 1/64, within five standard errors; the
    curvature of the logistic adds less than that."""
    step, steps, samples = 0.5, 60, 64
    paths = sampled_shares(0.1, 0.6, 0.5, step, steps, samples=samples, seeds=400)
    curve = logistic_shares(0.1, 0.6, 0.5, step * (1 - 1 / samples), steps)
    assert curve[-1] == pytest.approx(1 / (1 + 9 * np.exp(-3 * (1 - 1 / 64))))
    odds = np.log(paths / (1 - paths))
    expected = np.log(curve / (1 - curve))
    error = odds.std(axis=0, ddof=1) / np.sqrt(len(paths))
    off = np.abs(odds.mean(axis=0) - expected)[1:] / error[1:]
    assert off.max() < 5
    assert paths[:, -1].mean() > 0.5


def test_what_is_never_shown_is_never_learned():
    """BEH-13: from 0 both stay at 0, however good the behaviour would be."""
    paths = sampled_shares(0.0, 1.0, 0.0, 1.0, 20, samples=16, seeds=5)
    np.testing.assert_array_equal(paths, np.zeros((5, 21)))
    exact = logistic_shares(0.0, 1.0, 0.0, 1.0, 20)
    np.testing.assert_array_equal(exact, np.zeros(21))


def test_without_an_advantage_nothing_moves():
    """BEH-13: equally right either way, the share stays where the base had it."""
    np.testing.assert_allclose(logistic_shares(0.2, 0.5, 0.5, 1.0, 9), np.full(10, 0.2))
