"""s1's measures of test-time scaling, by hand."""

import numpy as np
import pytest

from rlvr_jax.analysis.counts import ProblemCounts
from rlvr_jax.analysis.thinking import (
    Forced,
    control,
    log_law,
    performance,
    scaling,
    scaling_of,
)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([256, 512], 1.0),  # the ends are within
        ([255, 513], 0.0),
        ([100, 256, 300, 600], 0.5),
    ],
)
def test_control_is_the_share_within(tokens, expected):
    """TT-17."""
    assert control(np.array(tokens), least=256, most=512) == expected


def test_scaling_is_the_mean_slope_over_all_pairs():
    """TT-17: pairs (1, 2), (1, 4), (2, 4) of lengths; slopes 2, 1, 0.5."""
    points = [Forced(4, 5.0), Forced(1, 2.0), Forced(2, 4.0)]
    assert scaling(points) == pytest.approx((2 + 1 + 0.5) / 3)
    assert scaling(points[::-1]) == scaling(points)
    # Thinking that does not help has none, whatever it costs.
    assert scaling([Forced(10, 0.3), Forced(99, 0.3)]) == 0
    assert performance(points) == 5.0


def test_measures_of_counts():
    """TT-17: lengths of all completions, accuracy as the mean over problems."""
    short = [ProblemCounts("a", 2, 0, thinking=[8, 12])]
    long = [ProblemCounts("a", 2, 1, thinking=[28, 32])]
    found = scaling_of([short, long])
    assert found["points"] == [(10.0, 0.0), (30.0, 0.5)]
    assert found["scaling"] == pytest.approx(0.025)
    assert found["performance"] == 0.5
    assert found["tokens"].tolist() == [8, 12, 28, 32]
    assert "scaling" not in scaling_of([short])


def test_accuracy_by_the_logarithm_of_the_length():
    """TT-23: planted a = -.3, b = .08; without noise exactly, with a noise of .01 on
    12 lengths from 100 to 50,000 tokens within four standard errors of b, .01 /
    sqrt(sum of squares of log tokens) = .0015."""
    lengths = np.geomspace(100, 50_000, 12)
    planted = -0.3 + 0.08 * np.log(lengths)
    exact = log_law([Forced(*pair) for pair in zip(lengths, planted, strict=True)])
    assert exact == pytest.approx((-0.3, 0.08))
    noisy = planted + np.random.default_rng(0).normal(0, 0.01, 12)
    _, b = log_law([Forced(*pair) for pair in zip(lengths, noisy, strict=True)])
    logs = np.log(lengths)
    assert abs(b - 0.08) < 4 * 0.01 / np.sqrt(((logs - logs.mean()) ** 2).sum())
    # Accuracy that does not depend on the length has b = 0.
    assert log_law([Forced(9, 0.5), Forced(99, 0.5)]) == pytest.approx((0.5, 0))


def test_what_cannot_be_measured():
    with pytest.raises(ValueError, match="two different lengths or more, all above 0"):
        log_law([Forced(10, 0.3), Forced(10, 0.4)])
    with pytest.raises(ValueError, match="all above 0"):
        log_law([Forced(0, 0.3), Forced(10, 0.4)])
    with pytest.raises(ValueError, match="needs runs and least <= most, got 0 runs"):
        control(np.array([], int), least=1, most=2)
    with pytest.raises(ValueError, match="least=3 and most=2"):
        control(np.array([1]), least=3, most=2)
    with pytest.raises(ValueError, match="each of another thinking length"):
        scaling([Forced(10, 0.3), Forced(10, 0.4)])
    with pytest.raises(ValueError, match="--thinking_budget or --least_thinking"):
        scaling_of([[ProblemCounts("a", 2, 1)]])
