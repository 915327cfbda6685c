"""Do answers get longer, more reflective and better, and is length paid for?

R1-Zero's answers grew over training, and words of reflection with them, although no
reward asked for length. Of one's own run the same three curves say so, beside the terms
of the objective that do move length: the control is a run without them.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.analysis.behaviours import reflects
from rlvr_jax.analysis.runs import Run
from rlvr_jax.analysis.trends import Rise, Slope, rise, slope

CURVES = {
    "length": "completion/length_mean",
    "length of right answers": "completion/length_correct",
    "length of wrong answers": "completion/length_wrong",
    "accuracy": "pass_rate/mean",
    "pass@1": "evaluation/pass@1",
}
"""Name of a curve and the metric that it is."""


class Logged(NamedTuple):
    """The completions that a run wrote down at one step."""

    step: int
    completions: int
    tokens: float
    """Mean."""
    reflection: float
    """Share with a word of self-reflection."""
    accuracy: float


class Growth(NamedTuple):
    """What became of a run's answers."""

    logged: list[Logged]
    slopes: dict[str, Slope]
    """Per step, of `CURVES` and of "reflection"; those with three points or more."""
    rises: dict[str, Rise]
    """Of "accuracy" and "pass@1", likewise: the claim that they rise with training."""
    paid: list[str]
    """Settings of the run that act on length; empty: none does."""


def growth(run: Run) -> Growth:
    """Length, reflection and accuracy over a run.

    Args:
      run: with logging.completions_every_steps above 0, for reflection.

    References:
      DeepSeek-R1, sec. 2.2.4. https://arxiv.org/abs/2501.12948
      Dr. GRPO, sec. 3. https://arxiv.org/abs/2503.20783
    """
    steps = sorted({int(row["step"]) for row in run.completions})
    logged = [
        _logged(step, [row for row in run.completions if row["step"] == step])
        for step in steps
    ]
    slopes, rises = {}, {}
    for name, metric in CURVES.items():
        if metric in run.metrics:
            series = run.metrics[metric]
            # Of a step without a right, or a wrong, answer `load_run` has no length.
            there = np.isfinite(series.values)
            slopes[name] = _slope(series.steps[there], series.values[there])
            if name in ("accuracy", "pass@1") and there.sum() > 2:
                rises[name] = rise(series.values[there])
    shares = np.array([each.reflection for each in logged])
    slopes["reflection"] = _slope(np.array(steps), shares)
    kept = {name: found for name, found in slopes.items() if found is not None}
    return Growth(logged, kept, rises, _paid(run))


def _logged(step: int, rows: Sequence[dict]) -> Logged:
    mean = lambda values: float(np.mean(list(values)))
    return Logged(
        step,
        len(rows),
        mean(row["tokens"] for row in rows),
        mean(reflects(row["completion"]) for row in rows),
        mean(row["verdict"] == "correct" for row in rows),
    )


def _slope(steps: np.ndarray, values: np.ndarray) -> Slope | None:
    return slope(steps.astype(np.float64), values) if len(steps) > 2 else None


def _paid(run: Run) -> list[str]:
    found = []
    if run.setting("objective.loss_aggregation") == "sequence_mean":
        found.append("objective.loss_aggregation=sequence_mean: wrong answers grow")
    if run.setting("objective.length_reward_weight"):
        found.append("objective.length_reward_weight: short right answers earn more")
    if run.setting("objective.overlong_buffer_tokens"):
        found.append("objective.overlong_buffer_tokens: nearly cut ones earn less")
    if re.search(r"\b(truncated|ended)\b", str(run.setting("reward.parts"))):
        found.append("reward.parts: cut ones earn something else")
    return found
