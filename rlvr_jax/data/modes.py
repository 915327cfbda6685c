"""One model that thinks or does not, as the prompt says: rows for thinking-mode fusion.

A question ends in /think or /no_think; of several flags the last one counts, and
without any the model thinks. What it does not think it leaves an empty block for, so
that every answer has the same form (Qwen3, sec. 4.3, https://arxiv.org/abs/2505.09388).
`format:think_flag` is the verifier of this.
"""

import re
from collections.abc import Mapping
from typing import Any

THINK, NO_THINK = "/think", "/no_think"
EMPTY = "<think>\n\n</think>\n\n"
_BLOCK = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


def without_thoughts(solution: str) -> str:
    r"""The answer behind an empty block.

    Example:
      >>> without_thoughts("<think>\n3 + 4\n</think>\n\n7")
      '<think>\n\n</think>\n\n7'
    """
    match = _BLOCK.match(solution)
    return EMPTY + (solution[match.end() :] if match else solution.lstrip())


def in_both_modes(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows that ask one question in every way that the flags allow.

    Departs from Qwen3, whose answers without thoughts are of other questions: these are
    the same answers, their thoughts left out.

    Args:
      row: {"question", ..., "meta": {"solutions": [...]}}, as `launch.demonstrate`
        writes it.

    Returns:
      without a flag, with either, and with either after the other one; those that ask
      for thoughts only where a solution has some.

    Example:
      >>> row = {"question": "3 + 4 =", "meta": {"solutions": ["7"]}}
      >>> [each["question"] for each in in_both_modes(row)]
      ['3 + 4 = /no_think', '/think 3 + 4 = /no_think']
    """
    solutions = row["meta"]["solutions"]
    thoughts = [text for text in solutions if _thinks(text)]
    answers = list(dict.fromkeys(map(without_thoughts, solutions)))
    question, found = row["question"], []
    for asked, shown in (
        (question, thoughts),
        (f"{question} {THINK}", thoughts),
        (f"{NO_THINK} {question} {THINK}", thoughts),
        (f"{question} {NO_THINK}", answers),
        (f"{THINK} {question} {NO_THINK}", answers),
    ):
        if shown:
            meta = {**row["meta"], "solutions": shown}
            found.append({**row, "question": asked, "meta": meta})
    if "id" in row:
        found = [{**r, "id": f"{row['id']}/{i}"} for i, r in enumerate(found)]
    return found


def _thinks(solution: str) -> bool:
    match = _BLOCK.match(solution)
    return match is not None and bool(match[1].strip())
