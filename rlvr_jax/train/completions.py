"""Sampled completions as rows for people: on screen and in completions.jsonl."""

from collections.abc import Sequence
from typing import Any

from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.train.collect import Batch


def completion_rows(batch: Batch, problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """One row per completion of the batch, in order."""
    lengths, ended = fetch((batch.rollouts.completion_lengths, batch.rollouts.ended))
    scores, generations = batch.scores, lengths.shape[1]
    rows = []
    for i, (text, verdict) in enumerate(
        zip(scores.texts, scores.verdicts, strict=True)
    ):
        problem = problems[int(batch.indices[i // generations])]
        answer = problem.answer
        rows.append(
            {
                "prompt": problem.question,
                "completion": text,
                "reference": answer if isinstance(answer, str) else repr(answer),
                "verdict": str(verdict.status),
                "detail": verdict.detail,
                "reward": float(scores.rewards.flat[i]),
                "tokens": int(lengths.flat[i]),
                "truncated": not bool(ended.flat[i]),
                **scores.notes[i],
            }
        )
    return rows
