"""Base against trained models over families, sizes, checkpoints and benchmarks."""

import dataclasses

import numpy as np
import pytest

from rlvr_jax.analysis.counts import ProblemCounts, arrays
from rlvr_jax.analysis.protocol import by_domain, matrix, sensitivity
from rlvr_jax.analysis.trends import slope
from rlvr_jax.core.passk import pass_curve
from tests.analysis import shared_strategies as toy

N = 256
ALGORITHMS = {"a": (1.0, 8), "b": (2.0, 4), "c": (0.5, 16), "d": (1.0, 10)}
"""Step and steps: "a" to "c" go as far as each other by other ways, "d" further."""


def family(seed):
    """Counts of a base and of what four algorithms make of it."""
    solved = toy.success(seed)
    base = toy.counts(solved, toy.base_policy(), N, seed=1)
    after = {
        name: toy.counts(solved, toy.trained(solved, *how), N, seed=2 + i)
        for i, (name, how) in enumerate(ALGORITHMS.items())
    }
    return base, after


def test_the_protocol_on_families_of_toys():
    """PK-09, PK-15: trained models win at k = 1 and lose at k = 256 in each of three
    families (or sizes) and under each algorithm, and all leave a similar gap to what
    the base reaches (PK-12): as they differ in speed, not in what they can reach."""
    families = {f"family {seed}": family(seed) for seed in range(3)}
    rows = matrix(
        {name: base for name, (base, _) in families.items()},
        {name: after for name, (_, after) in families.items()},
        resamples=400,
    )
    assert len(rows) == 3 * len(ALGORITHMS)
    for row in rows:
        assert row["finding"] == "sharpening + coverage loss"
        assert row["crosses"]
        assert row["pass@1"][1] > row["pass@1"][0] + 0.1
        assert row["pass@k"][1] < row["pass@k"][0]
        low, high = row["first_loss"]
        assert 1 < low <= high <= N
    gaps = [row["sampling_gap"] for row in rows]
    assert max(gaps) - min(gaps) < 0.1
    assert min(gaps) > 0.2


def test_the_boundary_narrows_as_training_goes_on():
    """PK-13: pass@1 rises and pass@256 falls over the checkpoints of a toy run, each
    with a slope beyond its error; exact rates, so the fall has no exception."""
    solved = toy.success(0)
    steps = np.arange(0.0, 13.0, 2)
    rates = [solved @ toy.trained(solved, 1.0, int(step)) for step in steps]
    curves = {k: np.array([(1 - (1 - p) ** k).mean() for p in rates]) for k in (1, N)}
    assert slope(steps, curves[1]).grows
    assert slope(steps, -curves[N]).grows
    assert (np.diff(curves[N]) < 0).all()
    # What nobody solved stays unsolved, whatever the tilt.
    assert all((p[solved.sum(axis=1) == 0] == 0).all() for p in rates)


def test_benchmarks_by_themselves():
    """PK-21: planted. The base is strong on one benchmark: pass@1 gains, pass@128
    falls; on the other it is weak, and both gain. The mean over both hides the loss."""

    def problems(domain, correct):
        return [
            ProblemCounts(f"{domain}/{i}", 128, c, domain)
            for i, c in enumerate(correct)
        ]

    easy = problems("easy", [64] * 100), problems("easy", [100] * 80 + [0] * 20)
    hard = problems("hard", [0] * 90 + [2] * 10), problems("hard", [20] * 60 + [0] * 40)
    rows = by_domain(easy[0] + hard[0], easy[1] + hard[1], resamples=400)
    found = {row["domain"]: row for row in rows}
    assert found["easy"]["finding"] == "sharpening + coverage loss"
    assert found["easy"]["last"][0] == pytest.approx(-0.2)
    assert found["hard"]["finding"].startswith("expansion")
    assert found["hard"]["first"][0] == pytest.approx((60 * 20 - 10 * 2) / 100 / 128)
    assert [row["problems"] for row in rows] == [100, 100]


def test_spread_over_ways_to_evaluate():
    """PK-30: temperature, template and what counts as solved, for one model; a stricter
    "solved" takes a third of the problems away."""
    counts = toy.counts(toy.success(0), toy.base_policy(), N, seed=0)
    strict = [
        dataclasses.replace(p, c=0) if i % 3 == 0 else p for i, p in enumerate(counts)
    ]
    found = sensitivity({"T 0.6": counts, "strict": strict}, k=128)
    expected = [
        pass_curve(*arrays(each), 128)[:, -1].mean() for each in (counts, strict)
    ]
    assert found["pass@k"] == {
        "T 0.6": pytest.approx(expected[0]),
        "strict": pytest.approx(expected[1]),
    }
    assert (found["lowest"], found["highest"]) == ("strict", "T 0.6")
    assert found["spread"] == pytest.approx(expected[0] - expected[1])


def evaluated(rates, rng, domain):
    return [
        ProblemCounts(f"{domain}/{i}", 16, int(c), domain)
        for i, c in enumerate(rng.binomial(16, rates))
    ]


GAPS = {"practised": 0.5, "another": 0.1, "unrelated": 0.0}
"""Planted: what RL on one task adds to pass@1 there and elsewhere."""


def test_the_gap_to_the_untrained_policy_by_task():
    """DATA-16: 64 problems a task, of rates from .05 to .45, 16 completions of each
    policy: planted gaps of .5, .1 and 0 lie in their intervals (95 % at all k at once)
    in at least 9 of 10 of 40 repetitions, the one of .5 and mostly that of .1 exclude
    0, that of 0 does not; mean estimates are unbiased within four standard errors."""
    rng = np.random.default_rng(0)
    found = {name: [] for name in GAPS}
    for _ in range(40):
        untrained, trained = [], []
        for name, gap in GAPS.items():
            rates = rng.uniform(0.05, 0.45, 64)
            untrained += evaluated(rates, rng, name)
            trained += evaluated(rates + gap, rng, name)
        for row in by_domain(untrained, trained, resamples=200):
            found[row["domain"]].append(row["first"])
    for name, gap in GAPS.items():
        mean, low, high = np.array(found[name]).T
        assert ((low <= gap) & (gap <= high)).mean() >= 0.9, name
        assert abs(mean.mean() - gap) < 4 * mean.std(ddof=1) / 40**0.5, name
    assert (np.array(found["practised"])[:, 1] > 0.3).all()
    assert (np.array(found["another"])[:, 1] > 0).mean() > 0.5
    # Paired by problem: narrower than two separate means, whose rates differ by .115.
    mean, low, high = np.array(found["unrelated"]).T
    unpaired = 1.96 * np.sqrt(2 * (0.4**2 / 12 + 0.2 / 16) / 64)
    assert ((high - low) / 2).mean() < unpaired
