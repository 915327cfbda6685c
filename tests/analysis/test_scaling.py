"""The sigmoid of ScaleRL: planted curves are recovered, recipes are told apart."""

import numpy as np
import pytest

from rlvr_jax.analysis.scaling import SigmoidFit, fit_sigmoid

# ScaleRL's 8B run: A .610, B 1.92, C_mid 2,542 GPU-hours.
PUBLISHED = SigmoidFit(0.25, 0.610, 2542.0, 1.92, 0.0)
HOURS = np.geomspace(300, 16_000, 60)


def test_half_of_the_gain_is_made_at_the_midpoint():
    """REC-24: R(C_mid) = R_0 + (A - R_0) / 2."""
    found = PUBLISHED.at(np.array([2542.0, 1e12]))
    np.testing.assert_allclose(found, [(0.25 + 0.610) / 2, 0.610], rtol=1e-6)


def test_parameters_are_recovered():
    """REC-24: exactly without noise; A within .02 with noise of .01."""
    exact = fit_sigmoid(HOURS, PUBLISHED.at(HOURS), start=0.25)
    np.testing.assert_allclose(exact[:4], PUBLISHED[:4], rtol=1e-3)
    assert exact.rmse < 1e-5
    noise = np.random.default_rng(0).normal(0, 0.01, len(HOURS))
    noisy = fit_sigmoid(HOURS, PUBLISHED.at(HOURS) + noise, start=0.25)
    np.testing.assert_allclose(noisy.asymptote, 0.610, atol=0.02)
    np.testing.assert_allclose(noisy.exponent, 1.92, atol=0.3)
    np.testing.assert_allclose(noisy.rmse, 0.01, rtol=0.2)


def test_a_prefix_predicts_the_rest():
    """REC-24: fitted up to 8,000 hours, read at 16,000: within .02."""
    noise = np.random.default_rng(1).normal(0, 0.005, len(HOURS))
    early = HOURS <= 8000
    found = fit_sigmoid(HOURS[early], (PUBLISHED.at(HOURS) + noise)[early], start=0.25)
    np.testing.assert_allclose(
        found.at(HOURS[-1:]), PUBLISHED.at(HOURS[-1:]), atol=0.02
    )


def test_aggregation_changes_the_exponent_and_not_the_asymptote():
    """AGG-16: two recipes of equal A; B 2.01 and 1.3: the fit says which differs."""
    rng = np.random.default_rng(2)
    fits = [
        fit_sigmoid(
            HOURS,
            PUBLISHED._replace(exponent=exponent).at(HOURS)
            + rng.normal(0, 0.003, len(HOURS)),
            start=0.25,
        )
        for exponent in (2.01, 1.3)
    ]
    np.testing.assert_allclose([f.asymptote for f in fits], 0.610, atol=0.01)
    np.testing.assert_allclose([f.exponent for f in fits], [2.01, 1.3], atol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_losses_are_told_apart_by_their_asymptote(seed):
    """CLIP-28: GSPO and CISPO near .595, DAPO .52, as published; noise .01.

    The exponents (2.01 for DAPO's loss, 1.77) would order them the other way round.
    """
    rng = np.random.default_rng(seed)
    planted = {"cispo": (0.595, 1.77), "gspo": (0.593, 1.77), "dapo": (0.52, 2.01)}
    found = {}
    for name, (asymptote, exponent) in planted.items():
        curve = PUBLISHED._replace(asymptote=asymptote, exponent=exponent).at(HOURS)
        rewards = curve + rng.normal(0, 0.01, len(HOURS))
        found[name] = fit_sigmoid(HOURS, rewards, start=0.25).asymptote
    for name, (asymptote, _) in planted.items():
        np.testing.assert_allclose(found[name], asymptote, atol=0.02)
    assert min(found["cispo"], found["gspo"]) > found["dapo"] + 0.03


def test_too_few_points():
    with pytest.raises(ValueError, match="at least 4 points, got 3"):
        fit_sigmoid(HOURS[:3], HOURS[:3], start=0.0)
