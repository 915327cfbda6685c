"""Increments against the luck of the seed, and effects of a factorial."""

import itertools

import numpy as np
import pytest

from rlvr_jax.analysis.seeds import difference_interval, increments, main_effects


def test_interval_by_hand():
    """Equal arms of three with variance 1: t(4, .975) = 2.776 times sqrt(2/3)."""
    found = difference_interval([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert found == pytest.approx((1, 1 - 2.776 * 0.8165, 1 + 2.776 * 0.8165), abs=1e-3)
    with pytest.raises(ValueError, match="at least 2 seeds"):
        difference_interval([1.0], [1.0, 2.0])
    # Two equal seeds are no certainty: of coins that fall on 1 or 2, half the pairs.
    assert difference_interval([1.0, 1.0], [2.0, 2.0]) == (1, None, None)
    one_arm = difference_interval([1.0, 1.0], [2.0, 4.0])
    assert one_arm == pytest.approx((2, 2 - 12.706, 2 + 12.706), abs=1e-3)


def test_interval_covers():
    """DIAG-14: of 400 pairs of five seeds, 95 % hold the true difference, within three
    standard errors (.011 each)."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        arms = rng.normal([[40.0], [42.0]], [[2.0], [4.0]], (2, 5))
        _, low, high = difference_interval(arms[0].tolist(), arms[1].tolist())
        inside += low <= 2 <= high
    assert inside / 400 == pytest.approx(0.95, abs=0.033)


def test_published_increments_are_within_the_range_of_seeds():
    """DIAG-14: DAPO's table rises 30, 36, 38, 41, 42, 50. With five seeds that scatter
    by +-4 points about those means (planted), the steps of 1 to 3 points are no larger
    than the range within an arm; 30 -> 36 and 42 -> 50 are at it or above."""
    scatter = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
    published = {
        "naive": 30,
        "filter": 36,
        "clip": 38,
        "soft": 41,
        "token": 42,
        "all": 50,
    }
    rows = increments({k: (v + scatter).tolist() for k, v in published.items()})
    assert [row["name"] for row in rows] == list(published)[1:]
    assert [row["increment"][0] for row in rows] == pytest.approx([6, 2, 3, 1, 8])
    assert all(row["seed_range"] == 8 for row in rows)
    assert all(row["within_seed_range"] for row in rows)
    # The CI of the difference: sd sqrt(10), t(8) = 2.306, 2.306 x 2 = 4.6.
    holds_0 = [row["increment"][1] <= 0 <= row["increment"][2] for row in rows]
    assert holds_0 == [False, True, True, True, False]
    assert rows[0]["increment"][2] - 6 == pytest.approx(2.306 * 2, abs=1e-3)


def test_main_effects_of_a_factorial():
    """DIAG-28: four switches in 16 runs with planted effects and one interaction, which
    a balanced design keeps out of the main effects."""
    design = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    effects = np.array([3.0, 0.5, 2.0, -1.0])
    both = (2 * design[:, 0] - 1) * (2 * design[:, 2] - 1)
    found = main_effects(design, 10 + design @ effects + 5 * both)
    np.testing.assert_allclose(found, effects)


@pytest.mark.parametrize(
    "design",
    [
        # One of 16 missing; a switch that is never off; half of a factorial, in which
        # the third switch is the interaction of the others; a switch half on.
        np.array(list(itertools.product([0.0, 1.0], repeat=4)))[1:],
        np.array([[1.0, 1.0], [1.0, 0.0]]),
        np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
        np.array([[0.0], [0.5]]),
    ],
)
def test_designs_that_mix_effects_are_refused(design):
    """DIAG-28: a score of 0.5 throughout was an effect of 1 of a switch always on."""
    with pytest.raises(ValueError, match="every combination"):
        main_effects(design, np.full(len(design), 0.5))
