"""What is written about scored completions: metrics of parts, notes for readers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from rlvr_jax.config import RewardConfig
from rlvr_jax.verifiers.base import Verdict


def part_metrics(
    reward: RewardConfig,
    names: Sequence[str],
    paid: Float32[np.ndarray, "P G R"],
    scores: Mapping[str, Float32[np.ndarray, "P G"]],
) -> dict[str, float]:
    """The share that keeps the format, and what each of several parts pays."""
    metrics = {}
    if reward.format:
        metrics["format/rate"] = float(scores[f"format:{reward.format}"].mean())
    if len(names) > 1:
        means = paid.mean(axis=(0, 1)).tolist()
        metrics |= {f"part/{n}": mean for n, mean in zip(names, means, strict=True)}
    return metrics


def notes_on(
    names: Sequence[str],
    worth: Float32[np.ndarray, "P G R"],
    true: Float32[np.ndarray, "P G"],
    paid: Float32[np.ndarray, "P G"],
    audited: Mapping[int, Verdict],
) -> list[dict[str, Any]]:
    """Parts, if several; a verdict paid as another; the audit's verdict."""
    notes = []
    for i, values in enumerate(worth.reshape(-1, len(names)).tolist()):
        note: dict[str, Any] = {}
        if len(names) > 1:
            note["parts"] = dict(zip(names, values, strict=True))
        if paid.flat[i] != true.flat[i]:
            note["paid_score"] = float(paid.flat[i])
        if i in audited:
            note["audit"] = str(audited[i].status)
            note["audit_detail"] = audited[i].detail
        notes.append(note)
    return notes
