"""Bands over k, crossings, transitions: published counts and cases made by hand."""

import gzip
import json
import pathlib

import numpy as np
import pytest

from rlvr_jax.core.paired import (
    LEVELS,
    crossing,
    label,
    matched_budgets,
    paired_band,
    sampling_gain,
    sharpening_tax,
    solve_levels,
    support_change,
    transition_matrix,
)
from rlvr_jax.core.passk import detectable_rate, pass_curve

DATA = pathlib.Path(__file__).parents[1] / "data" / "passk"


def published(model: str) -> np.ndarray:
    """Correct completions of 128, of 1,060 problems (tests/data/passk/SOURCES.md)."""
    with gzip.open(DATA / f"deepscaler32k_{model}.jsonl.gz") as lines:
        return np.array([json.loads(line)["c"] for line in lines])


def test_published_counts_give_the_published_interval():
    """PK-22. Every figure is from expected.json beside the counts: Yang, Zhang, Chen
    2026 find the gain up to k = 10, the loss from 61 on, the first loss in 11..61."""
    base, other = (pass_curve(128, published(name)) for name in ("base", "rl"))
    band = paired_band(other - base)
    assert band.critical == pytest.approx(2.5566, abs=1e-4)
    assert base.mean(axis=0)[[0, 127]] == pytest.approx(
        [0.6041052476415094, 0.8905660377358491], abs=1e-12
    )
    assert other.mean(axis=0)[[0, 127]] == pytest.approx(
        [0.6800633844339623, 0.870754716981132], abs=1e-12
    )
    assert band.mean[[0, 20, 21, 127]] == pytest.approx(
        [
            0.07595813679245284,
            0.0004630654500437453,
            -8.7042800015886e-05,
            -0.01981132075471698,
        ],
        abs=1e-12,
    )
    assert band.error[0] == pytest.approx(0.004103778183680334, abs=1e-12)
    assert band.low[0] == pytest.approx(0.06546648482530973, abs=1e-10)
    found = crossing(range(1, 129), band.low, band.high)
    assert found.gains == list(range(1, 11))
    assert found.losses == list(range(61, 129))
    assert found.crosses
    assert found.first_loss == (11, 61)


WORLDS = {
    "homogeneous null": ([1.0], [0.1], [0.1]),
    "heterogeneous null": ([0.5, 0.5], [0.001, 0.4], [0.001, 0.4]),
    "crossing": ([0.7, 0.3], [0.15, 0.02], [0.3, 0.0002]),
}


def simulated(world, prompts, samples, last, repetitions, seed=0):
    """Bands over fresh problems and completions, and the true curve."""
    weights, base, other = (np.array(part) for part in WORLDS[world])
    ks = np.arange(1, last + 1)
    truth = weights @ (
        (1 - base[:, None]) ** ks - (1 - other[:, None]) ** ks
    )  # = pass@k of the other less that of the base
    rng = np.random.default_rng(seed)
    bands = []
    for _ in range(repetitions):
        kind = rng.choice(len(weights), prompts, p=weights)
        counts = (rng.binomial(samples, rates[kind]) for rates in (base, other))
        curves = [pass_curve(samples, count, last) for count in counts]
        bands.append(
            paired_band(
                curves[1] - curves[0], resamples=399, seed=int(rng.integers(2**31))
            )
        )
    return bands, truth


@pytest.mark.parametrize("world", WORLDS)
def test_the_band_holds_the_true_curve(world):
    """PK-22: the published simulation (50 problems, 64 samples, k to 32, 399 draws, 100
    repetitions) covers .93 to .98 of the time and sees no crossing that is not there;
    it finds the true one 96 % of the time. With 100 repetitions a rate of .95 is
    within .02 of itself two times of three, so the bar is three of those below."""
    bands, truth = simulated(world, 50, 64, 32, 100)
    inside = [np.all((b.low <= truth) & (truth <= b.high)) for b in bands]
    assert np.mean(inside) >= 0.89
    crossed = [crossing(range(1, 33), b.low, b.high).crosses for b in bands]
    if world == "crossing":
        # Recomputed truth of the paper's case: FORMULAS F-95.
        assert truth[[0, 7, 15, 31]] == pytest.approx(
            [0.09906, 0.10610, -0.03225, -0.13707], abs=1e-5
        )
        assert int(np.argmax(truth < 0)) + 1 == 14
        assert np.mean(crossed) >= 0.9
    else:
        assert np.mean(crossed) == 0


def test_more_problems_beat_more_samples(monkeypatch):
    """PK-23. 3,200 completions of each model: where problems differ, 200 x 16 sees a
    gain of .1 at k = 1 far more often than 50 x 64. By the normal approximation the
    difference is 1.7 and 3.3 standard errors."""
    monkeypatch.setitem(WORLDS, "mixed", ([0.5, 0.5], [0.4, 0.4], [0.9, 0.1]))
    power = {}
    for prompts, samples in ((50, 64), (200, 16)):
        bands, truth = simulated("mixed", prompts, samples, 1, 100)
        assert truth[0] == pytest.approx(0.1)
        power[prompts] = np.mean([band.low[0] > 0 for band in bands])
    assert power[50] < 0.6
    assert power[200] > 0.8


def test_a_column_without_spread_says_nothing():
    """Three equal differences are no proof: the bound is that of any difference."""
    band = paired_band(np.array([[0.0, 0.1], [0.0, 0.3], [0.0, 0.2]]))
    assert (band.low[0], band.high[0]) == (-1, 1)
    assert band.low[1] < 0.2 < band.high[1]


def test_bands_need_problems():
    with pytest.raises(ValueError, match="at least 2 problems"):
        paired_band(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="finite"):
        paired_band(np.full((2, 3), np.nan))


@pytest.mark.parametrize(
    ("low", "high", "gains", "losses", "crosses", "first"),
    [
        ([0.1, 0.1], [0.2, 0.2], [1, 2], [], False, (3, None)),
        ([-0.2, -0.2], [-0.1, -0.1], [], [1, 2], False, (1, 1)),
        ([-0.1, -0.1], [0.1, 0.1], [], [], False, (1, None)),
        ([0.1, -0.2], [0.2, -0.1], [1], [2], True, (2, 2)),
        # A loss first and a gain later is no crossing from gain to loss.
        ([-0.2, 0.1], [-0.1, 0.2], [2], [1], False, (1, 1)),
    ],
)
def test_what_a_band_certifies(low, high, gains, losses, crosses, first):
    """PK-24: the truth table by hand. No gain and no loss is inconclusive, not "equal",
    and mean curves that cross inside the band certify nothing."""
    found = crossing([1, 2], np.array(low), np.array(high))
    assert found == (gains, losses, crosses, first)
    for k, ends in enumerate(zip(low, high, strict=True), 1):
        expected = "gain" if k in gains else "loss" if k in losses else "inconclusive"
        assert label(*ends) == expected


def test_a_sparse_grid_bounds_no_first_loss():
    """PK-24."""
    ends = np.array([0.1, -0.2]), np.array([0.2, -0.1])
    assert crossing([1, 4], *ends) == ([1], [4], True, None)
    with pytest.raises(ValueError, match="must rise"):
        crossing([4, 1], *ends)


def test_transitions_of_planted_problems():
    """PK-25: one problem planted per cell that is named, three in one of them."""
    rates = {"unsolved": 0.0, "rare": 0.1, "moderate": 0.5, "solved": 0.75}
    planted = np.zeros((4, 4), int)
    planted[0, 3], planted[3, 0], planted[1, 2], planted[2, 2] = 1, 2, 3, 1
    before = [
        rates[LEVELS[i]] for i, j in np.ndindex(4, 4) for _ in [0] * planted[i, j]
    ]
    after = [rates[LEVELS[j]] for i, j in np.ndindex(4, 4) for _ in [0] * planted[i, j]]
    found = transition_matrix(np.array(before), np.array(after))
    np.testing.assert_array_equal(found, planted)
    # Rows sum to the base's counts by level, columns to the other's.
    levels = solve_levels(np.array(before)), solve_levels(np.array(after))
    for axis, each in enumerate(levels):
        np.testing.assert_array_equal(
            found.sum(axis=1 - axis), np.bincount(each, None, 4)
        )


def test_solved_sets():
    """PK-11, PK-17: P = 90, E = 2, S = 6 give SRR 90/96, NDR 2/92, NSCR -4/98."""
    base = np.repeat([0.5, 0.0, 0.5, 0.0], [90, 2, 6, 30])
    other = np.repeat([0.5, 0.5, 0.0, 0.0], [90, 2, 6, 30])
    change = support_change(base, other)
    assert change == (90, 2, 6, 30)
    assert change.retention == pytest.approx(0.9375)
    assert change.discovery == pytest.approx(0.0217, abs=5e-5)
    assert change.net == pytest.approx(-0.0408, abs=5e-5)
    harmonic = 2 / (1 / change.retention + 1 / change.discovery)
    assert change.balance == pytest.approx(harmonic)
    assert not change.is_subset
    # Without the two gains, all that is solved was solved by the base.
    assert support_change(base, np.where(base > 0, other, 0)).is_subset
    # The paper's threshold for k = 8192 (FORMULAS F-94).
    assert detectable_rate(8192) == pytest.approx(3.656e-4, abs=1e-7)


def test_sampling_gain_and_its_identities():
    """PK-27: p = .5, K = 4 gives A = .6875 and S = .4583 (FORMULAS F-95b)."""
    ks = np.arange(1, 5)
    area, share = sampling_gain(1 - 0.5**ks)
    assert area == pytest.approx(0.6875)
    assert share == pytest.approx(0.4583, abs=5e-5)
    # A(K) = K (pass@K - mean) = E[(H - 1) 1{H <= K}], H the index of the first success.
    rates = np.array([0.1, 0.5, 0.9])
    curve = (1 - (1 - rates[:, None]) ** ks).mean(axis=0)
    area, _ = sampling_gain(curve)
    assert area == pytest.approx(4 * (curve[-1] - curve.mean()))
    first = rates[:, None] * (1 - rates[:, None]) ** (ks - 1)
    assert area == pytest.approx(((ks - 1) * first).sum(axis=1).mean())
    # All or nothing: sampling gains nothing. Against itself there is no tax, and
    # making a third of the problems deterministic takes a third of the gain.
    assert sampling_gain(np.full(4, 0.3)) == (0, 0)
    same = 1 - (1 - 0.5) ** ks
    assert sharpening_tax(same, same) == (0, 0)
    sharpened = (2 * same + np.full(4, 0.5)) / 3
    assert sharpening_tax(same, sharpened)[0] == pytest.approx(0.6875 / 3)


def test_budgets_match_within_a_percent():
    """PK-35, DIAG-27: 137 against 300 tokens a completion."""
    pairs = matched_budgets(137, 300, 256, 64)
    assert pairs
    for base, other in pairs:
        assert abs(base * 137 - other * 300) <= 0.01 * other * 300
    # 7 x 300 = 2100 and 15 x 137 = 2055 are 2 % apart.
    assert 7 not in [other for _, other in pairs]
    assert matched_budgets(100, 100, 4, 8) == [(k, k) for k in range(1, 5)]
    with pytest.raises(ValueError, match="lengths above 0"):
        matched_budgets(0, 1, 4, 4)
