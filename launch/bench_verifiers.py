"""Times verifiers on a file of rows: rows per second on one core.

Called by launch.bench. Math-Verify, where it is installed, is timed on the same rows,
beside ours and by its own rules.
"""

import logging
import pathlib
import re
import time
from collections.abc import Callable
from typing import Any

from rlvr_jax.data.rows import read_jsonl
from rlvr_jax.verifiers import base, registry
from rlvr_jax.verifiers.base import Sample


def bench_verifiers(
    path: pathlib.Path, *, verifier: str = "math", repeats: int = 3
) -> dict[str, Any]:
    """Rows per second of `verifier`, and of Math-Verify if it can be imported.

    Args:
      path: a .jsonl file of {"gold", "pred"} rows, as launch.verify reads.
      verifier: any name that a verifier can have; it runs in this process.
      repeats: passes over the rows; the fastest counts.

    Returns:
      {"rows", "rows_per_s", "slowest_s", "accuracy"} of ours, and "math_verify" with
      the same keys, or None where it is not installed. Accuracy is over rows that say
      what is expected and are not contested.

    Raises:
      ValueError: the file holds no rows.
    """
    rows = [row for _, row in read_jsonl(path)]
    if not rows:
        raise ValueError(f"{path} holds no rows")
    function = registry.resolve(verifier)

    def ours(row: dict[str, Any]) -> bool:
        question = row.get("question", "")
        sample = Sample(verifier, str(row["pred"]), row["gold"], question)
        return base.apply(function, sample).status is base.Status.CORRECT

    theirs = _math_verify()
    return _timed(ours, rows, repeats) | {
        "verifier": verifier,
        "math_verify": _timed(theirs, rows, 1) if theirs else None,
    }


def _timed(
    judge: Callable[[dict[str, Any]], bool], rows: list[dict[str, Any]], repeats: int
) -> dict[str, Any]:
    judge(rows[0])  # imports and caches
    settled = [not r.get("contested") and r.get("expected") is not None for r in rows]
    best, slowest, right = float("inf"), float("inf"), 0
    for _ in range(repeats):
        seconds, right = [], 0
        for row, counts in zip(rows, settled, strict=True):
            begun = time.perf_counter()
            accepted = judge(row)
            seconds.append(time.perf_counter() - begun)
            right += counts and accepted == row["expected"]
        best, slowest = min(best, sum(seconds)), min(slowest, max(seconds))
    return {
        "rows": len(rows),
        "rows_per_s": len(rows) / best,
        "slowest_s": slowest,
        "accuracy": right / max(sum(settled), 1),
    }


def _math_verify() -> Callable[[dict[str, Any]], bool] | None:
    try:
        import math_verify  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    # It prints every answer that it cannot read, whole.
    logging.getLogger("math_verify").setLevel(logging.CRITICAL + 1)

    def judge(row: dict[str, Any]) -> bool:
        try:
            gold = math_verify.parse(_in_dollars(str(row["gold"])))
            answer = math_verify.parse(_in_dollars(str(row["pred"])))
            return bool(math_verify.verify(gold, answer))
        except Exception:  # as a training run would have to
            return False

    return judge


def _in_dollars(text: str) -> str:
    """A bare formula as Math-Verify expects it; anything else as it is."""
    if "$" in text or "\\boxed" in text or re.search(r"[^\W\d]{2,} [^\W\d]{2,}", text):
        return text
    return f"${text}$"
