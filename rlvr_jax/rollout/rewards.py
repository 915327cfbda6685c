"""What a completion is paid, as a sum of parts: `reward.parts` in words and in numbers.

    1*answer, 0.1*format:think, 0.1*language if format:think, -10*truncated
    answer if domain=math, 0.5*judge:rubric if domain=chat and not truncated
    answer, 0.2*rank(judge:rubric) if answer

A part is a weight (1 if left out), a name and perhaps conditions. The names: `answer`
(the row's own verifier, paid by `reward.correct` and `reward.wrong`), `ended` and
`truncated` (1 where it holds), or any verifier, which is paid its score. `rank(NAME)`
places the completions of a group that meet the conditions by their score.

A condition is a name that must have passed (score 1) or `not` one, or `field=value`,
which looks at the data row: completions of other rows never reach that verifier.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from rlvr_jax.config import RewardConfig
from rlvr_jax.errors import UserError

ANSWER = "answer"
BUILT_IN = (ANSWER, "ended", "truncated")
_PART = re.compile(
    r"\s*(?:(?P<weight>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*\*)?\s*(?P<rank>rank\s*\()?"
    r"\s*(?P<name>[^\s()*]+)\s*(?P<end>\))?(?:\s+if\s+(?P<gates>.+?))?\s*",
    re.IGNORECASE,
)
_ROW_FIELD = re.compile(r"([A-Za-z_]\w*)=(.+)")


@dataclasses.dataclass(frozen=True)
class Part:
    """One term of the reward."""

    weight: float
    name: str
    """`answer`, `ended`, `truncated` or a verifier."""
    ranked: bool = False
    """Paid by its place among the completions of the group that meet the conditions."""
    gates: tuple[tuple[str, bool], ...] = ()
    """(name, whether it must have passed or must not)."""
    rows: tuple[tuple[str, str, bool], ...] = ()
    """(field of the row's meta, its value as text, whether it must be that or not)."""

    @property
    def names(self) -> set[str]:
        """Everything that has to be known to pay it."""
        return {self.name, *(name for name, _ in self.gates)}

    def applies_to(self, meta: Mapping[str, Any]) -> bool:
        """Whether the row is one of those that the part is about."""
        return all(
            (str(meta.get(field)) == value) is wanted
            for field, value, wanted in self.rows
        )


def parse_parts(text: str) -> list[Part]:
    """The parts that a text names.

    Raises:
      UserError: there are none, or one cannot be read; the message shows it.

    Example:
      >>> parse_parts("answer, -0.5*truncated if not answer")[1].gates
      (('answer', False),)
    """
    parts = [_parse(piece) for piece in text.split(",") if piece.strip()]
    if not parts:
        raise UserError("reward.parts is empty; 'answer' pays the answer alone")
    return parts


def parts_of(reward: RewardConfig) -> list[Part]:
    """The parts of `reward.parts`, and the format reward beside them."""
    parts = parse_parts(reward.parts)
    if reward.format:
        parts.append(Part(reward.format_weight, f"format:{reward.format}"))
    return parts


def verifiers_of(parts: Sequence[Part]) -> list[str]:
    """The verifiers that parts and conditions name, beside the rows' own."""
    names = {name: None for part in parts for name in sorted(part.names)}
    return [name for name in names if name not in BUILT_IN]


def labels(parts: Sequence[Part]) -> list[str]:
    """A short name for each part, for metrics.

    Example:
      >>> labels(parse_parts("answer, format:think, answer if format:think"))
      ['answer', 'format_think', 'answer_2']
    """
    found: list[str] = []
    for part in parts:
        plain = re.sub(r"[^\w.-]+", "_", part.name.rpartition("/")[2]).strip("_")
        base = f"rank_{plain}" if part.ranked else plain
        count = sum(
            re.fullmatch(rf"{re.escape(base)}(_\d+)?", n) is not None for n in found
        )
        found.append(f"{base}_{count + 1}" if count else base)
    return found


def part_values(
    part: Part,
    values: Mapping[str, Float32[np.ndarray, "P G"]],
    passed: Mapping[str, Bool[np.ndarray, "P G"]],
    applies: Bool[np.ndarray, "P G"],
) -> Float32[np.ndarray, "P G"]:
    """What a part is worth before its weight: 0 where it does not apply.

    Args:
      part: the part.
      values: name -> score of every completion.
      passed: name -> whether the score counts as passed.
      applies: where the data row is one of the part's.
    """
    open_gate = applies.copy()
    for name, wanted in part.gates:
        open_gate &= passed[name] == wanted
    value = values[part.name]
    if part.ranked:
        value = np.stack([places(*row) for row in zip(value, open_gate, strict=True)])
    return np.where(open_gate, value, np.float32(0))


def places(
    scores: Float32[np.ndarray, " G"], counted: Bool[np.ndarray, " G"]
) -> Float32[np.ndarray, " G"]:
    """Places from -1/2 (lowest) to 1/2 among those that count; equal scores share one.

    They sum to 0, so grading a group of right answers against each other pays none of
    them on average.

    Example:
      >>> scores = np.array([0.2, 0.9, 0.4, 0.4], np.float32)
      >>> print(places(scores, np.ones(4, bool)))
      [-0.5  0.5  0.   0. ]
    """
    found = np.zeros(scores.shape, np.float32)
    values = scores[counted]
    if len(values) > 1:
        below = (values[:, None] > values).sum(axis=1)
        above = (values[:, None] < values).sum(axis=1)
        found[counted] = (below - above) / (2 * (len(values) - 1))
    return found


def _parse(text: str) -> Part:
    match = _PART.fullmatch(text)
    if match is None or (match["rank"] is None) != (match["end"] is None):
        raise UserError(
            f"reward.parts: cannot read {text.strip()!r}; write WEIGHT*NAME, "
            "WEIGHT*NAME if NAME and not NAME and FIELD=VALUE, or rank(NAME) for NAME"
        )
    gates: list[tuple[str, bool]] = []
    rows: list[tuple[str, str, bool]] = []
    for piece in re.split(r"\s+and\s+", match["gates"] or ""):
        wanted = not piece.startswith("not ")
        name = piece.removeprefix("not ").strip()
        if field := _ROW_FIELD.fullmatch(name):
            rows.append((field[1], field[2], wanted))
        elif name and not re.search(r"\s", name):
            gates.append((name, wanted))
        elif name:
            raise UserError(
                f"reward.parts: cannot read the condition {piece!r} of "
                f"{text.strip()!r}; conditions are joined by 'and'"
            )
    weight = float(match["weight"] or 1)
    ranked = match["rank"] is not None
    return Part(weight, match["name"], ranked, tuple(gates), tuple(rows))
