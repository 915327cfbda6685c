"""Generated problems with known answers: a name gives a module with `Options`, `draw`.

A task draws candidates without end. A hash of what makes a question the same question
(its `key`) sends each to training or to evaluation, the same way for every seed, so
the two never share one.
"""

import dataclasses
import hashlib
import json
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from rlvr_jax.data import names
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tasks import (
    arithmetic,
    countdown,
    distraction,
    general_points,
    letters,
    navigation,
    random_calculation,
)
from rlvr_jax.data.tasks.draft import Draft, of_their_types
from rlvr_jax.errors import UserError

TASKS: dict[str, Any] = {
    "arithmetic": arithmetic,
    "countdown": countdown,
    "distraction": distraction,
    "general_points": general_points,
    "letters": letters,
    "navigation": navigation,
    "random_calculation": random_calculation,
}

_PATIENCE = 2_000
"""Draws in a row without a new question, after which the task counts as used up."""


@runtime_checkable
class TaskModule(Protocol):
    """What a module of this package offers."""

    Options: type
    """A frozen dataclass; a field per setting of data.task_options, each with a
    default. Its `__post_init__` refuses impossible values."""

    def draw(self, random: np.random.Generator, options: Any) -> Draft:
        """One problem, from the numbers of `random` alone."""
        ...


@dataclasses.dataclass(frozen=True)
class Amount:
    """The settings that every task shares."""

    count: int = 4096
    """Training problems, at most: a small task has fewer different questions."""
    evaluation_count: int = 256
    evaluation_share: float = 0.2
    """Share of all possible questions that training never sees."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if min(self.count, self.evaluation_count) < 1:
            raise UserError("count and evaluation_count are at least 1")
        if not 0 < self.evaluation_share < 1:
            raise UserError("evaluation_share lies between 0 and 1, both excluded")


def generate(
    task: str,
    seed: int,
    split: Literal["train", "evaluation"],
    *,
    options: str | dict[str, Any] = "{}",
) -> list[Problem]:
    """Generates the problems of one split, all different.

    Args:
      task: a name in TASKS.
      seed: which problems are drawn; never which split a question belongs to.
      split: the part.
      options: data.task_options, as JSON or already parsed: fields of `Amount` and of
        the task's own `Options`.

    Returns:
      `count` or `evaluation_count` problems; fewer where the task has fewer. The first
      n do not depend on how many are asked for.

    Raises:
      UserError: unknown task, unknown or impossible option, or no question at all.
    """
    if task not in TASKS:
        raise UserError(names.unknown("task", task, TASKS, "data.train"))
    module: TaskModule = TASKS[task]
    amount, own = _parse_options(task, module, options)
    wanted = amount.count if split == "train" else amount.evaluation_count
    random = np.random.default_rng([seed, *task.encode()])
    problems: list[Problem] = []
    seen: set[str] = set()
    fruitless = 0
    while len(problems) < wanted and fruitless < _PATIENCE:
        try:
            draft = module.draw(random, own)
        except ValueError as error:
            raise UserError(f"task:{task}: {error} (data.task_options)") from None
        fruitless += 1
        if draft.question in seen:
            continue
        if _is_held_out(task, draft.key, amount.evaluation_share) != (split != "train"):
            continue
        seen.add(draft.question)
        fruitless = 0
        problems.append(_finished(draft, task, f"{task}-{split}-{len(problems)}"))
    if not problems:
        raise UserError(
            f"task:{task}: no {split} question in {_PATIENCE} draws with {options}; "
            "widen the ranges or change evaluation_share (data.task_options)"
        )
    return problems


def _finished(draft: Draft, task: str, name: str) -> Problem:
    meta = {"solution": draft.solution, "domain": task} | draft.meta
    return Problem(name, draft.question, draft.answer, draft.verifier, meta)


def _is_held_out(task: str, key: str, share: float) -> bool:
    digest = hashlib.sha256(f"{task}\n{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _parse_options(
    task: str, module: TaskModule, options: str | dict[str, Any]
) -> tuple[Amount, Any]:
    try:
        settings = json.loads(options) if isinstance(options, str) else options
    except json.JSONDecodeError as error:
        raise UserError(
            f"data.task_options is not JSON ({error.msg} at column {error.colno}), got "
            f"{options!r}; write it as '{{\"max_operand\": 20}}'"
        ) from None
    if not isinstance(settings, dict):
        raise UserError(f"data.task_options needs a JSON object, got {options!r}")
    fields = {
        part: [field.name for field in dataclasses.fields(part)]
        for part in (Amount, module.Options)
    }
    known = [name for part in fields.values() for name in part]
    for name in settings:
        if name not in known:
            kind = f"option of task:{task}"
            raise UserError(names.unknown(kind, name, known, "data.task_options"))
    try:
        amount, own = (
            part(**of_their_types(part, {k: settings[k] for k in own if k in settings}))
            for part, own in fields.items()
        )
    except (TypeError, ValueError) as error:
        raise UserError(f"task:{task}: {error} (data.task_options)") from None
    return amount, own
