"""R = -a e^H + b: planted laws are recovered, other laws found out."""

import numpy as np
import pytest

from rlvr_jax.analysis.entropy_law import fit_entropy_law

# A run of 236 steps whose entropy decays from 1.2 nats.
STEPS = np.arange(236)
ENTROPY = 1.2 * np.exp(-STEPS / 40)


def rewards(a=0.15, b=0.75):
    return b - a * np.exp(ENTROPY)


def test_the_law_is_recovered_without_noise():
    """ENT-01: least squares in e^H gives (a, b); the ceiling b - a at H = 0."""
    law = fit_entropy_law(ENTROPY, rewards())
    np.testing.assert_allclose([law.a, law.b], [0.15, 0.75], rtol=1e-12)
    np.testing.assert_allclose(law.ceiling, 0.6, rtol=1e-12)
    np.testing.assert_allclose(law.at(np.zeros(1)), [0.6], rtol=1e-12)
    assert law.rmse < 1e-12
    assert law.persistence == 0


def test_36_steps_predict_the_next_200():
    """ENT-02: noise of .005 on the reward: the prediction is off by about 1%."""
    noise = np.random.default_rng(0).normal(0, 0.005, len(STEPS))
    law = fit_entropy_law(ENTROPY[:36], rewards()[:36] + noise[:36])
    gap = law.at(ENTROPY[36:]) - rewards()[36:]
    assert np.sqrt((gap**2).mean()) < 0.01 * rewards()[36:].mean()
    np.testing.assert_allclose(law.rmse, 0.005, rtol=0.3)


def test_a_run_with_another_law_is_not_predicted():
    """ENT-02: reward linear in H^2 instead: 36 steps miss the rest by more than 3%."""
    other = 0.65 - 0.2 * ENTROPY**2
    law = fit_entropy_law(ENTROPY[:36], other[:36])
    gap = law.at(ENTROPY[36:]) - other[36:]
    assert np.sqrt((gap**2).mean()) > 0.03 * other[36:].mean()


def test_misfit_shows_in_what_is_left_over():
    """ENT-23: noise on the law leaves unrelated rests; a law broken midway does not.

    The broken run takes off-policy data from step 100 on: reward +.05 at no entropy.
    """
    noise = np.random.default_rng(1).normal(0, 0.005, len(STEPS))
    follows = fit_entropy_law(ENTROPY, rewards() + noise)
    assert abs(follows.persistence) < 3 / np.sqrt(len(STEPS))
    jump = np.where(STEPS < 100, 0.0, 0.05)
    breaks = fit_entropy_law(ENTROPY, rewards() + jump + noise)
    assert breaks.persistence > 0.7
    assert breaks.rmse > 2 * follows.rmse


@pytest.mark.parametrize("entropy", [[1.0, 0.5], [0.3, 0.3, 0.3]])
def test_too_little_to_fit(entropy):
    with pytest.raises(ValueError, match="at least 3 steps of different entropy"):
        fit_entropy_law(np.array(entropy), np.zeros(len(entropy)))
