"""Which completions a person should read: some that were paid most, some unpaid.

A draw rather than the first few, so that nothing about the order decides, and the same
draw under the same seed, so that two people read the same ones.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any


def reading_list(
    rows: Sequence[Mapping[str, Any]], count: int, seed: int = 0
) -> dict[str, list[int]]:
    """Positions of up to `count` rows of each kind, in the order of the rows.

    Args:
      rows: with "reward" (a number), and perhaps "verdict" and "audit" (statuses).
      count: of each kind.
      seed: of the draw.

    Returns:
      "high": paid the most that any row is; "zero": paid 0 or the least;
      "disputed": accepted in training and not by the audit.

    Example:
      >>> rows = [{"reward": r} for r in (1.0, 0.0, 1.0, 0.5, 0.0)]
      >>> reading_list(rows, count=2)
      {'high': [0, 2], 'zero': [1, 4], 'disputed': []}
    """
    rewards = [_number(row.get("reward")) for row in rows]
    paid = [reward for reward in rewards if math.isfinite(reward)]
    high, low = max(paid, default=0.0), min(paid, default=0.0)
    best = high > low or high > 0
    kinds = {
        "high": [i for i, r in enumerate(rewards) if best and r == high],
        "zero": [
            i
            for i, r in enumerate(rewards)
            if r in (0.0, low) and not (best and r == high)
        ],
        "disputed": [
            i
            for i, row in enumerate(rows)
            if row.get("verdict") == "correct"
            and row.get("audit") not in (None, "correct")
        ],
    }
    return {
        kind: sorted(sorted(found, key=lambda i: _draw(seed, kind, i))[:count])
        for kind, found in kinds.items()
    }


def _draw(seed: int, kind: str, index: int) -> bytes:
    return hashlib.blake2b(f"{seed} {kind} {index}".encode()).digest()


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
