"""Many comparisons at once: families, algorithms, benchmarks, ways to evaluate."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.comparison import compare
from rlvr_jax.analysis.counts import ProblemCounts, arrays
from rlvr_jax.core.passk import pass_curve

Counts = Sequence[ProblemCounts]


def matrix(
    bases: Mapping[str, Counts],
    trained: Mapping[str, Mapping[str, Counts]],
    *,
    resamples: int = 2000,
) -> list[dict[str, Any]]:
    """Base against trained, for every family (or size) and every algorithm.

    Args:
      bases: family or size -> counts of its base.
      trained: family or size -> algorithm -> counts on the same problems.
      resamples: draws behind each band.

    Returns:
      one row each: "family", "algorithm", "k", "pass@1" and "pass@k" ([base, trained]),
      "finding", "crosses", "first_loss", "sampling_gap".

    References:
      Yue et al. 2025, sec. 3: base against six algorithms at k = 1..256 and more.
      https://arxiv.org/abs/2504.13837
    """
    rows = []
    for family, algorithms in trained.items():
        for algorithm, counts in algorithms.items():
            base = bases[family]
            found = compare(base, counts, resamples=resamples)
            last = found["k"]
            curves = [pass_curve(*arrays(each), last) for each in (base, counts)]
            means = [curve.mean(axis=0) for curve in curves]
            kept = ("k", "finding", "crosses", "first_loss", "sampling_gap")
            rows.append(
                {
                    "family": family,
                    "algorithm": algorithm,
                    "pass@1": [float(mean[0]) for mean in means],
                    "pass@k": [float(mean[-1]) for mean in means],
                    **{name: found[name] for name in kept},
                }
            )
    return rows


def by_domain(base: Counts, other: Counts, *, resamples: int = 2000) -> list[dict]:
    """The comparison within each benchmark (the counts' "domain").

    Where the base is already strong, pass@1 may rise while pass@k stays or falls; a
    mean over benchmarks hides that.

    Args:
      base: counts with domains.
      other: of the same problems.
      resamples: draws behind each band.

    Returns:
      one row per domain of two problems or more: "domain", "problems", "k", "first" and
      "last" ([difference, low, high] at k = 1 and at the last k) and "finding".
    """
    by_id = {problem.id: problem for problem in other}
    rows = []
    for domain in dict.fromkeys(problem.domain for problem in base):
        ours = [problem for problem in base if problem.domain == domain]
        if len(ours) < 2:
            continue
        theirs = [by_id[problem.id] for problem in ours if problem.id in by_id]
        found = compare(ours, theirs, resamples=resamples)
        rows.append(
            {
                "domain": domain,
                "problems": len(ours),
                "k": found["k"],
                "first": found["difference"][0],
                "last": found["difference"][-1],
                "finding": found["finding"],
            }
        )
    return rows


def sensitivity(grid: Mapping[str, Counts], k: int) -> dict[str, Any]:
    """How much pass@k hangs on how it is measured: temperature, template, "solved".

    Args:
      grid: name of a way to evaluate -> the counts that it gives, of one model.
      k: at most the smallest n.

    Returns:
      "pass@k" by name, "lowest" and "highest" (names), "spread" (their difference).
    """
    found = {}
    for name, counts in grid.items():
        found[name] = float(pass_curve(*arrays(counts), k)[:, -1].mean())
    ends = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    return {
        "pass@k": found,
        "lowest": ends[0],
        "highest": ends[1],
        "spread": float(np.subtract(found[ends[1]], found[ends[0]])),
    }
