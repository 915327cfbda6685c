"""What is remembered of each problem, and what is made of it."""

import json

import numpy as np
import pytest

from rlvr_jax.data.pass_rates import PassRates


def groups(*solved, size=10):
    """One group a number: so many of `size` are correct."""
    return (np.arange(size) < np.array(solved)[:, None]).astype(np.float32)


@pytest.fixture
def rates():
    """Problem 0: 2 of 10, then 6 of 10; problem 1: 5 of 10; 2 and 3 never tried."""
    found = PassRates(4)
    found.record(np.array([0, 1]), groups(2, 5), step=3)
    found.record(np.array([0]), groups(6), step=8)
    return found


def test_the_latest_group_and_all_completions(rates):
    """DATA-08: shares of planted groups, by hand."""
    np.testing.assert_array_equal(rates.estimate(), [0.6, 0.5, np.nan, np.nan])
    everything = rates.estimate(of="all")
    np.testing.assert_array_equal(everything, [8 / 20, 5 / 10, np.nan, np.nan])
    assert rates.last_step.tolist() == [8, 3, -1, -1]


def test_a_prior_gives_the_mean_of_the_beta_posterior(rates):
    """DATA-08: Beta(1, 1) and 8 of 20 is Beta(9, 13), whose mean is 9 / 22."""
    found = rates.estimate(of="all", prior_count=2)
    np.testing.assert_allclose(found, [9 / 22, 6 / 12, 1 / 2, 1 / 2], rtol=1e-15)
    known = np.array([0.9, np.nan, 0.25, np.nan])
    found = rates.estimate(of="all", prior_count=4, prior=known)
    # (8 + 3.6) / 24; (5 + 2) / 14; the prior's mean alone.
    np.testing.assert_allclose(found, [11.6 / 24, 7 / 14, 0.25, 0.5], rtol=1e-15)


def test_a_known_rate_holds_until_a_problem_is_tried(rates):
    known = np.array([0.9, np.nan, 0.25, np.nan])
    found = rates.estimate(prior=known)
    np.testing.assert_array_equal(found, [0.6, 0.5, 0.25, np.nan])


def test_the_histogram_has_exact_bins():
    """DATA-09: 0.3 of 10 is 3 / 10 in whole numbers and belongs to [.3, .4)."""
    found = PassRates(13)
    found.record(np.arange(11), groups(*range(11)), step=0)
    np.testing.assert_array_equal(found.histogram(), np.ones(11))
    found.record(np.array([11]), groups(3, size=4), step=1)  # 0.75
    np.testing.assert_array_equal(found.histogram()[7:9], [2, 1])
    assert found.histogram().sum() == 12  # the thirteenth was never tried


def test_the_state_comes_back_from_json(rates):
    again = PassRates(4)
    again.restore(json.loads(json.dumps(rates.state())))
    for name, values in vars(rates).items():
        np.testing.assert_array_equal(getattr(again, name), values)
    with pytest.raises(ValueError, match="knows 4 problems and the data has 5"):
        PassRates(5).restore(rates.state())
