"""Two ways to train, compared as they should be: equal compute, seeds, large k."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.entropy_law import fit_entropy_law
from rlvr_jax.analysis.runs import Run

NEEDED = {
    "seeds": "at least two seeds in each arm",
    "families": "at least two model families",
    "compute": "arms within 5 % of the same number of tokens",
    "large k": "pass@k at a k above 1",
}
"""What the comparison has to have before it says anything."""


def intervention_table(
    arms: Mapping[str, Sequence[Run]],
) -> tuple[list[dict[str, Any]], list[str]]:
    """One row per arm and what the comparison lacks.

    Args:
      arms: name -> its runs: seeds, and model families.

    Returns:
      rows with, each as [mean, least, largest] over the arm's runs or None where no run
      logs it: "entropy", "covariance" (late), "pass@1", "pass@k" (the largest k, under
      "k"), "ceiling" (of the entropy law fitted to reward over entropy), "tokens"
      (sampled in training), with "seeds" and "families"; and sentences from `NEEDED`
      for what is missing.
    """
    rows = [_row(name, runs) for name, runs in arms.items()]
    missing = []
    if any(row["seeds"] < 2 for row in rows):
        missing.append("seeds")
    if len({family for row in rows for family in row["families"]}) < 2:
        missing.append("families")
    tokens = [row["tokens"][0] for row in rows if row["tokens"]]
    if len(tokens) < len(rows) or max(tokens) > 1.05 * min(tokens):
        missing.append("compute")
    if any(not row["k"] or row["k"] == 1 for row in rows):
        missing.append("large k")
    return rows, [f"{name}: {NEEDED[name]}" for name in missing]


def _row(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    ks = [k for run in runs if (k := _largest_k(run))]
    k = min(ks, default=0)
    figures = {
        "entropy": lambda run: _last(run, "entropy/mean"),
        "covariance": lambda run: _last(run, "entropy/covariance"),
        "pass@1": lambda run: _final(run, "evaluation/pass@1"),
        "pass@k": lambda run: _final(run, f"evaluation/pass@{k}"),
        "ceiling": _ceiling,
        "tokens": _tokens,
    }
    families = {_family(run) for run in runs}
    return {
        "name": name,
        "k": k,
        "seeds": len({run.setting("seed") for run in runs}),
        "families": sorted(families),
        **{key: _spread([look(run) for run in runs]) for key, look in figures.items()},
    }


def _spread(values: Sequence[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None and np.isfinite(value)]
    return [float(np.mean(known)), min(known), max(known)] if known else None


def _last(run: Run, metric: str) -> float | None:
    series = run.metrics.get(metric)
    return None if series is None else series.last()


def _final(run: Run, metric: str) -> float | None:
    series = run.metrics.get(metric)
    return None if series is None else float(series.values[-1])


def _largest_k(run: Run) -> int:
    prefix = "evaluation/pass@"
    tails = [
        name.removeprefix(prefix) for name in run.metrics if name.startswith(prefix)
    ]
    return max((int(tail) for tail in tails if tail.isdigit()), default=0)


def _tokens(run: Run) -> float | None:
    lengths = run.metrics.get("completion/length_mean")
    batch = (
        run.setting("batch.prompts_per_step"),
        run.setting("rollout.num_generations"),
    )
    if lengths is None or not all(batch):
        return None
    return float(np.nansum(lengths.values)) * batch[0] * batch[1]


def _ceiling(run: Run) -> float | None:
    entropy, reward = run.metrics.get("entropy/mean"), run.metrics.get("reward/mean")
    if entropy is None or reward is None:
        return None
    steps = np.intersect1d(entropy.steps, reward.steps)
    pair = [each.values[np.isin(each.steps, steps)] for each in (entropy, reward)]
    if len(steps) < 3 or np.ptp(pair[0]) == 0:
        return None
    return fit_entropy_law(pair[0], pair[1]).ceiling


def _family(run: Run) -> str:
    return str(run.setting("model.path") or "new decoder")


def distil_or_reinforce(
    *,
    teacher: float | None,
    student: float,
    target: float,
) -> str:
    """Which way to train a small model, by what there is to learn from.

    Distillation is the cheaper way to what a teacher can do; RL is the only one beyond
    it, and where there is no teacher. Published: of Qwen2.5-32B on AIME 2024,
    distillation 72.6 and RL 47.0, 25.6 points less; of Qwen3-8B, on-policy distillation
    in 1,800 GPU-hours and RL in 17,920, a tenth.

    Args:
      teacher: its accuracy, None without one that may be used.
      student: the accuracy now.
      target: the accuracy wanted.

    Returns:
      "stop" (the target is reached), "distil", "reinforce", or "distil, then reinforce"
      (the teacher is better than the student, and the target beyond it).

    References:
      DeepSeek-R1, sec. 4.1. https://arxiv.org/abs/2501.12948
      Qwen3. https://arxiv.org/abs/2505.09388

    Example:
      >>> distil_or_reinforce(teacher=0.8, student=0.3, target=0.7)
      'distil'
    """
    if student >= target:
        return "stop"
    if teacher is None or teacher <= student:
        return "reinforce"
    return "distil" if teacher >= target else "distil, then reinforce"
