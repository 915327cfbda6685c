"""A plan of stages: which problems, in which mix, how long, until which step."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from rlvr_jax.data import names
from rlvr_jax.errors import UserError

_FIELDS = ("until", "keep", "mix", "max_completion_tokens")


@dataclasses.dataclass(frozen=True)
class Stage:
    """What holds from step `start` on, until the next stage."""

    start: int = 0
    keep: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    """Field of a row -> values; all problems where empty."""
    mix: dict[str, float | int] | None = None
    """Domain -> weight; None leaves data.mix in place."""
    max_completion_tokens: int | None = None
    """None: that of the rollout."""


def parse_stages(stages: str, max_completion_tokens: int) -> list[Stage]:
    """Reads curriculum.stages; one stage that changes nothing for "[]".

    Args:
      stages: the setting.
      max_completion_tokens: of the rollout, which no stage may exceed.

    Raises:
      UserError: not of the form that the setting's docstring shows.

    Example:
      >>> plan = '[{"until": 100, "max_completion_tokens": 64}, {}]'
      >>> [(s.start, s.max_completion_tokens) for s in parse_stages(plan, 128)]
      [(0, 64), (100, None)]
    """
    try:
        rows = json.loads(stages)
    except json.JSONDecodeError as error:
        raise UserError(
            f"curriculum.stages is not JSON ({error}), got {stages!r}"
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(
            f"curriculum.stages needs a list of JSON objects, got {stages!r}"
        )
    found, start = [], 0
    for number, row in enumerate(rows, start=1):
        try:
            found.append(_stage(row, start, max_completion_tokens))
            start = _until(row, start, is_last=number == len(rows))
        except ValueError as error:
            raise UserError(f"curriculum.stages, stage {number}: {error}") from None
    return found or [Stage()]


def stage_at(stages: Sequence[Stage], step: int) -> int:
    """The number of the stage that a step belongs to, counted from 0."""
    return max(i for i, stage in enumerate(stages) if stage.start <= step)


def _stage(row: dict[str, Any], start: int, limit: int) -> Stage:
    for name in row:
        if name not in _FIELDS:
            raise UserError(names.unknown("field", name, _FIELDS, "curriculum.stages"))
    keep, mix = row.get("keep", {}), row.get("mix")
    if not isinstance(keep, dict) or not all(
        isinstance(values, list) for values in keep.values()
    ):
        raise UserError(f"keep needs a list of values for each field, got {keep!r}")
    if mix is not None and not (isinstance(mix, dict) and mix):
        raise UserError(f"mix needs a weight for each of its domains, got {mix!r}")
    length = row.get("max_completion_tokens")
    if length is not None and not (type(length) is int and 1 <= length <= limit):
        raise UserError(
            "max_completion_tokens is a whole number from 1 to "
            f"rollout.max_completion_tokens={limit}, got {length!r}"
        )
    return Stage(start, keep, mix, length)


def _until(row: dict[str, Any], start: int, *, is_last: bool) -> int:
    until = row.get("until")
    if is_last:
        if until is not None:
            raise UserError(f"the last stage has no end, got until={until!r}")
        return start
    if type(until) is not int or until <= start:
        raise UserError(f"until is a step after {start}, got {until!r}")
    return until
