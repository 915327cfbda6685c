"""Sampled completions as rows for people: on screen and in completions.jsonl."""

import itertools
from collections.abc import Sequence
from typing import Any

from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.train.collect import Batch


def completion_rows(batch: Batch, problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """One row per completion of the batch, in order.

    Where several policies sampled it, "versions" has [version, tokens] of each stretch.
    """
    rollouts = batch.rollouts
    lengths, ended = fetch((rollouts.completion_lengths, rollouts.ended))
    versions = None if rollouts.versions is None else fetch(rollouts.versions)
    scores, generations = batch.scores, lengths.shape[1]
    rows = []
    for i, (text, verdict) in enumerate(
        zip(scores.texts, scores.verdicts, strict=True)
    ):
        sampled_by = {}
        if versions is not None:
            own = versions[divmod(i, generations)][: lengths.flat[i]]
            sampled_by["versions"] = [
                [int(version), len(list(tokens))]
                for version, tokens in itertools.groupby(own)
            ]
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
                **sampled_by,
                **scores.notes[i],
            }
        )
    return rows
