"""Which sampled completions a report shows, and how."""

import math
from collections.abc import Sequence
from typing import Any

from rlvr_jax.analysis import page, text

SHOWN = 3
"""Completions per group of the gallery."""
MAX_CHARACTERS = 4000
"""Of one completion; its middle is cut."""
VERDICT_CLASSES = {"correct": "good", "wrong": "bad"}


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Heading -> rows: the first, the last, the best paid, the unpaid.

    The latest come first among the best paid and the unpaid; no row is shown twice.

    Example:
      >>> rows = [{"step": step, "reward": step % 2} for step in range(8)]
      >>> {name: [row["step"] for row in some] for name, some in chosen(rows).items()}
      {'First': [0, 1, 2], 'Last': [5, 6, 7], 'Highest reward': [3],
       'Zero or lowest reward': [4]}
    """
    seen: set[int] = set()

    def take(order: Sequence[int]) -> list[dict[str, Any]]:
        picked = [index for index in order if index not in seen][:SHOWN]
        seen.update(picked)
        return [rows[index] for index in picked]

    everything = range(len(rows))
    paid = [index for index in everything if math.isfinite(_reward(rows[index]))]
    groups = {"First": take(everything)}
    groups["Last"] = take(everything[::-1])[::-1]
    if paid:
        top = max(_reward(rows[index]) for index in paid)
        low = min(0.0, min(_reward(rows[index]) for index in paid))
        best = [index for index in paid if _reward(rows[index]) == top > low]
        unpaid = [index for index in paid if _reward(rows[index]) in (0.0, low)]
        groups["Highest reward"] = take(best[::-1])
        groups["Zero or lowest reward"] = take(unpaid[::-1])
    return {heading: some for heading, some in groups.items() if some}


def gallery(rows: Sequence[dict[str, Any]]) -> str:
    """The chosen completions as cards, or "" when the run kept none."""
    parts = []
    for heading, some in chosen(rows).items():
        parts.append(f"<h3>{page.escaped(heading)}</h3>")
        parts.append(f'<div class="gallery">{"".join(map(_card, some))}</div>')
    if not parts:
        return ""
    return "<h2>Completions</h2>\n" + "\n".join(parts)


def _card(row: dict[str, Any]) -> str:
    verdict = str(row.get("verdict", "unverified"))
    kind = VERDICT_CLASSES.get(verdict, "")
    tags = [f'<span class="verdict {kind}">{page.escaped(verdict)}</span>']
    tags.append(f"step {page.escaped(row['step'])}")
    for key, form in (("reward", "{:.2f}"), ("advantage", "{:+.2f}")):
        if row.get(key) is not None:
            tags.append(f"{key} {form.format(_number(row[key]))}")
    if row.get("tokens") is not None:
        tags.append(f"{page.escaped(row['tokens'])} tokens")
    if row.get("truncated"):
        tags.append("cut at the limit")
    spans = "".join(f"<span>{tag}</span>" for tag in tags)
    parts = [f'<div class="tags">{spans}</div>']
    if row.get("prompt"):
        prompt = text.tail(str(row["prompt"]), MAX_CHARACTERS // 4)
        parts.append(f'<pre class="prompt">{page.escaped(prompt)}</pre>')
    completion = str(row.get("completion", ""))
    if completion:
        shown = page.escaped(text.head_and_tail(completion, MAX_CHARACTERS))
    else:
        shown = '<span class="soft">(empty)</span>'
    parts.append(f"<pre>{shown}</pre>")
    answers = [
        f"{key} <code>{page.escaped(text.head_and_tail(str(row[key]), 200))}</code>"
        for key in ("answer", "reference", "detail")
        if row.get(key) not in (None, "")
    ]
    if answers:
        parts.append(f'<p class="small soft">{", ".join(answers)}</p>')
    return f'<div class="card">{"".join(parts)}</div>'


def _reward(row: dict[str, Any]) -> float:
    return _number(row.get("reward"))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
