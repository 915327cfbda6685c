"""One model's scores at every k, and two models on the same problems."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.behaviours import behaviour_table
from rlvr_jax.analysis.correlation import rank_correlation
from rlvr_jax.analysis.counts import ProblemCounts, arrays, paired
from rlvr_jax.core import paired as bands
from rlvr_jax.core import passk
from rlvr_jax.core.voting import (
    MAX_SAMPLES,
    auc,
    best_of_k,
    majority_at_k,
    weighted_vote,
)


def summary(problems: Sequence[ProblemCounts], *, seed: int = 0) -> dict[str, Any]:
    """All scores of one model.

    Args:
      problems: its counts.
      seed: of the bootstrap over problems.

    Returns:
      JSON values. "pass@k", "maj@k" and "best_of_k" are lists over k = 1.. of [mean,
      low, high], 95 % over problems; "avg@n" is pass@1 with "sampling_error", what
      another draw of completions would change; "coverage" is the share of problems
      with a correct one, "unseen_rate" what rate none of n leaves possible. The best of
      k is that of the highest score of a reward model, where there is one, else of the
      highest mean log-prob; "scorer" says how well the scores rank ("auc", mean over
      problems of right and wrong completions) and what a vote weighted by them comes to
      ("weighted@n"). Where completions are known: "tokens", "truncated_share",
      "perplexity_correct", "perplexity_wrong", "behaviours".
    """
    n, c = arrays(problems)
    curve = passk.pass_curve(n, c)
    found: dict[str, Any] = {
        "problems": len(problems),
        "n": int(n.min()),
        "avg@n": list(passk.mean_interval(c / n, seed=seed)),
        "sampling_error": passk.sampling_error(c / n, int(n.min())),
        "coverage": list(passk.mean_interval((c > 0) * 1.0, seed=seed)),
        "unseen_rate": passk.detectable_rate(int(n.min())),
        "pass@k": passk.mean_intervals(curve, seed=seed).tolist(),
    }
    for name, chosen in (("maj@k", _majority), ("best_of_k", _best)):
        rows = chosen(problems)
        if rows is not None:
            found[name] = passk.mean_intervals(rows, seed=seed).tolist()
    if all(problem.scores and problem.correct for problem in problems):
        found["scorer"] = _scorer(problems, seed)
    if all(problem.tokens for problem in problems):
        found["tokens"] = float(np.mean([np.mean(p.tokens) for p in problems]))
    if all(problem.ended for problem in problems):
        found["truncated_share"] = 1 - float(
            np.mean([np.mean(p.ended) for p in problems])
        )
    found |= {
        f"perplexity_{name}": value
        for name, value in perplexities(problems).items()
        if value is not None
    }
    if all(problem.completions and problem.correct for problem in problems):
        found["behaviours"] = behaviour_table(
            [text for problem in problems for text in problem.completions],
            [right for problem in problems for right in problem.correct],
            [problem.id for problem in problems for _ in problem.completions],
        )
    return found


def compare(
    base: Sequence[ProblemCounts],
    other: Sequence[ProblemCounts],
    *,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> dict[str, Any]:
    """The other model against the base, problem by problem.

    Args:
      base: counts of the base.
      other: of the model that is compared with it, on the same problems.
      level: of the band over all k together.
      resamples: draws behind the band.
      seed: of the draws.

    Returns:
      JSON values: "difference" (list over k of [mean, low, high] of the simultaneous
      band), "verdicts" (the same as words), "gains", "losses", "crosses",
      "first_loss"; "finding" (what happened to pass@1 and to the last k);
      "transitions", "levels"; "solved" (preserved, gained, lost, neither and the four
      ratios); "sampling_gap" (pass@k of the base at the last k - pass@1 of the other);
      "sharpening_tax"; "gain_by_level" (rank correlation of a problem's gain at the
      last k with the base's rate); where tokens are known "matched" (pairs of k at
      equal cost with the difference there); "new_solutions_perplexity".

    Raises:
      ValueError: the two are not of the same problems.
    """
    base, other = paired(base, other)
    (n_base, c_base), (n_other, c_other) = arrays(base), arrays(other)
    last = int(min(n_base.min(), n_other.min()))
    curves = [
        passk.pass_curve(n, c, last) for n, c in ((n_base, c_base), (n_other, c_other))
    ]
    band = bands.paired_band(
        curves[1] - curves[0], level=level, resamples=resamples, seed=seed
    )
    crossed = bands.crossing(range(1, last + 1), band.low, band.high)
    means = [curve.mean(axis=0) for curve in curves]
    rates = c_base / n_base, c_other / n_other
    change = bands.support_change(*rates)
    found: dict[str, Any] = {
        "problems": len(base),
        "k": last,
        "critical": band.critical,
        "difference": np.stack([band.mean, band.low, band.high], axis=1).tolist(),
        "verdicts": [
            bands.label(*ends) for ends in zip(band.low, band.high, strict=True)
        ],
        **crossed._asdict(),
        "finding": finding(
            bands.label(float(band.low[0]), float(band.high[0])),
            bands.label(float(band.low[-1]), float(band.high[-1])),
        ),
        "levels": list(bands.LEVELS),
        "transitions": bands.transition_matrix(*rates).tolist(),
        "solved": change._asdict()
        | {
            name: getattr(change, name)
            for name in ("retention", "discovery", "balance", "net", "is_subset")
        },
        "sampling_gap": sampling_gap(float(means[0][-1]), float(means[1][0])),
        "sharpening_tax": list(bands.sharpening_tax(*means)),
        "gain_by_level": rank_correlation(
            curves[0][:, 0], (curves[1] - curves[0])[:, -1]
        ),
    }
    if matched := _matched(base, other, seed=seed, level=level, resamples=resamples):
        found["matched"] = matched
    new = [o for b, o in zip(base, other, strict=True) if b.c == 0 and o.c > 0]
    if new and all(problem.base_logprobs for problem in new):
        found["new_solutions_perplexity"] = perplexities(new)["correct"]
    return found


def finding(first: str, last: str) -> str:
    """What training did, from the labels at k = 1 and at the last k.

    Args:
      first: "gain", "loss" or "inconclusive" at k = 1.
      last: the same at the largest k.

    Example:
      >>> finding("gain", "loss")
      'sharpening + coverage loss'
    """
    names = {
        ("gain", "loss"): "sharpening + coverage loss",
        ("gain", "gain"): "expansion: better at every k that decides",
        ("gain", "inconclusive"): "sharpening; coverage undecided",
        ("inconclusive", "loss"): "coverage loss",
        ("inconclusive", "gain"): "coverage gain",
        ("inconclusive", "inconclusive"): "no difference established",
    }
    return names.get((first, last), f"{first} at k = 1, {last} at the last k")


def sampling_gap(base_pass_at_k: float, other_pass_at_1: float) -> float:
    """What training left of the base's reach: pass@k (base) - pass@1 (trained).

    References:
      Yue et al. 2025, sec. 4.4 (k = 256). https://arxiv.org/abs/2504.13837
    """
    return base_pass_at_k - other_pass_at_1


def perplexities(problems: Sequence[ProblemCounts]) -> dict[str, float | None]:
    """Median perplexity exp(-mean log-prob per token) under the other model.

    Of correct completions and of wrong ones, where `base_logprobs` is known; None where
    there are none. Solutions that the base finds likely were within its reach.
    """
    by_kind: dict[str, list[float]] = {"correct": [], "wrong": []}
    for problem in problems:
        for value, good in zip(problem.base_logprobs, problem.correct, strict=False):
            by_kind["correct" if good else "wrong"].append(float(np.exp(-value)))
    return {k: float(np.median(v)) if v else None for k, v in by_kind.items()}


def _majority(problems: Sequence[ProblemCounts]) -> np.ndarray | None:
    if not all(p.answers and p.correct and p.n <= MAX_SAMPLES for p in problems):
        return None
    last = min(problem.n for problem in problems)
    return np.stack([majority_at_k(p.answers, p.correct)[:last] for p in problems])


def _best(problems: Sequence[ProblemCounts]) -> np.ndarray | None:
    scored = all(problem.scores for problem in problems)
    ranks = [p.scores if scored else p.logprobs for p in problems]
    if not all(r and p.correct for r, p in zip(ranks, problems, strict=True)):
        return None
    last = min(problem.n for problem in problems)
    pairs = zip(ranks, problems, strict=True)
    return np.stack([best_of_k(r, p.correct)[:last] for r, p in pairs])


def _scorer(problems: Sequence[ProblemCounts], seed: int) -> dict[str, Any]:
    """How well a reward model ranks, and what votes by its scores come to."""
    mixed = [p for p in problems if 0 < p.c < p.n]
    areas = [auc(p.scores, p.correct) for p in mixed]
    found: dict[str, Any] = {"auc": float(np.mean(areas)) if areas else None}
    if all(problem.answers for problem in problems):
        votes = [weighted_vote(p.answers, p.scores, p.correct) for p in problems]
        found["weighted@n"] = list(passk.mean_interval(np.array(votes), seed=seed))
    return found


def _matched(base, other, *, seed, level, resamples) -> list[dict[str, Any]]:
    """Differences at pairs of k that cost the same tokens, under one band."""
    if not all(problem.tokens for problem in [*base, *other]):
        return []
    cost = [float(np.mean([np.mean(p.tokens) for p in each])) for each in (base, other)]
    (n_base, c_base), (n_other, c_other) = arrays(base), arrays(other)
    pairs = bands.matched_budgets(
        cost[0], cost[1], int(n_base.min()), int(n_other.min())
    )
    if not pairs:
        return []
    ks = np.array(pairs).T - 1
    rows = (
        passk.pass_curve(n_other, c_other)[:, ks[1]]
        - passk.pass_curve(n_base, c_base)[:, ks[0]]
    )
    band = bands.paired_band(rows, level=level, resamples=resamples, seed=seed)
    return [
        {"base_k": b, "other_k": o, "difference": list(map(float, interval))}
        for (b, o), *interval in zip(pairs, band.mean, band.low, band.high, strict=True)
    ]
