"""Outcome and step rewards of the same expectation: only their noise differs."""

import jax
import numpy as np
import pytest

from rlvr_jax.toys.credit import exact_variances, simulate

RIGHT, SOLUTIONS = 0.8, 100_000


@pytest.mark.parametrize("steps", [2, 8, 32])
def test_the_noise_of_one_scalar_grows_with_the_number_of_steps(steps):
    """PROC-03: per step, outcome over step rewards: 1 + (S - 1) v^2 / (m - v^2), which
    is 1 + 4/9 (S - 1) at p = .8: v = .16, m = .0832. Sampled variances within 5 %."""
    found = simulate(jax.random.key(0), steps=steps, right=RIGHT, solutions=SOLUTIONS)
    exact = np.asarray(exact_variances(steps=steps, right=RIGHT))
    np.testing.assert_allclose(found.variance, exact, rtol=0.05)
    outcome, to_go, step = exact
    np.testing.assert_allclose(outcome / step, 1 + 4 / 9 * (steps - 1), rtol=1e-5)
    # Rewards to go spare half of it on average, and all of it at the last step.
    np.testing.assert_allclose(to_go[-1], step[-1], rtol=1e-5)
    assert step.mean() < to_go.mean() < outcome.mean()


def test_all_three_follow_the_same_gradient():
    """PROC-03: d E[right steps] / d logit = p (1 - p), within four standard errors."""
    found = simulate(jax.random.key(1), steps=8, right=RIGHT, solutions=SOLUTIONS)
    errors = np.sqrt(np.asarray(found.variance) / SOLUTIONS)
    assert (abs(np.asarray(found.mean) - RIGHT * (1 - RIGHT)) < 4 * errors).all()
