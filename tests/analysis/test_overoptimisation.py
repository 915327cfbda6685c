"""Gold against proxy: the peak of a simulated curve whose peak is known."""

import numpy as np
import pytest

from rlvr_jax.analysis.overoptimisation import hacking_gap, turnover

AMOUNT = np.arange(0.0, 10.01, 0.25)
GOLD = AMOUNT * (1.2 - 0.1 * AMOUNT)
"""Gao et al.'s best-of-n form d (alpha - beta d): the peak is alpha / (2 beta) = 6."""
PROXY = 1.2 * AMOUNT


def test_the_peak_is_found():
    """DIAG-26: exactly without noise; within one unit with noise of a tenth of the peak
    and a mean of seven points, in 20 draws."""
    found = turnover(AMOUNT, GOLD, PROXY)
    assert found.at == 6
    assert found.gold == pytest.approx(3.6)
    assert found.fall == pytest.approx(3.6 - 2.0)
    assert found.is_hacked
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = turnover(AMOUNT, GOLD + rng.normal(0, 0.1, len(GOLD)), PROXY, window=7)
        assert noisy.at == pytest.approx(6, abs=1.5)
        assert noisy.is_hacked


def test_a_curve_that_only_rises_has_no_peak():
    """DIAG-26: with both rising there is nothing to see, and a small dip is allowed."""
    assert not turnover(AMOUNT, PROXY, PROXY).is_hacked
    dipped = PROXY.copy()
    dipped[-1] -= 0.31
    assert turnover(AMOUNT, dipped, PROXY).is_hacked
    assert not turnover(AMOUNT, dipped, PROXY, tolerance=0.02).is_hacked
    # Both fall: the run broke, but nobody was fooled.
    assert not turnover(AMOUNT, GOLD, GOLD).is_hacked
    with pytest.raises(ValueError, match="must be odd"):
        turnover(AMOUNT, GOLD, PROXY, window=4)


def test_the_gap_is_what_the_proxy_gained_alone():
    """DIAG-26: here beta d^2, by the two formulas."""
    np.testing.assert_allclose(hacking_gap(GOLD, PROXY), 0.1 * AMOUNT**2)
