"""Which problems stay: duplicates, conflicts, filters by a field."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rlvr_jax.data import names
from rlvr_jax.data.rows import Problem
from rlvr_jax.errors import UserError


class Deduplicated(NamedTuple):
    """Problems with different questions, and what was left out for that."""

    problems: list[Problem]
    repeated: int
    """Problems whose question and answer came before."""
    conflicting: int
    """Problems whose question has different answers among the given ones."""


def normalized_question(question: str) -> str:
    """What two spellings of one question share: case and white space do not count.

    Example:
      >>> normalized_question("What is  2 + 2?\\n")
      'what is 2 + 2?'
    """
    return " ".join(question.casefold().split())


def deduplicate(problems: Iterable[Problem]) -> Deduplicated:
    """Keeps the first of equal problems and none of those that contradict another.

    Of a question with two different answers at least one is wrong, and a wrong
    reference trains the wrong thing; so all its problems go.

    Args:
      problems: in any order, which the result keeps.

    Returns:
      The problems kept and the two counts of those left out.

    Example:
      >>> row = lambda name, question, answer: Problem(name, question, answer, "", {})
      >>> rows = [row("a", "1+1?", "2"), row("b", "1+1? ", "2"), row("c", "2+2?", "4"),
      ...         row("d", "2+2?", "5")]
      >>> kept, repeated, conflicting = deduplicate(rows)
      >>> [problem.id for problem in kept], repeated, conflicting
      (['a'], 1, 2)
    """
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(normalized_question(problem.question), []).append(problem)
    kept = [group[0] for group in groups.values() if _agree(group)]
    conflicting = sum(len(group) for group in groups.values() if not _agree(group))
    total = sum(map(len, groups.values()))
    return Deduplicated(kept, total - len(kept) - conflicting, conflicting)


def without_questions(
    problems: Sequence[Problem], of: Iterable[Problem]
) -> list[Problem]:
    """The problems whose question no problem in `of` asks."""
    seen = {normalized_question(problem.question) for problem in of}
    return [p for p in problems if normalized_question(p.question) not in seen]


def keep_matching(problems: Sequence[Problem], keep: str) -> list[Problem]:
    """Keeps problems by fields of their meta.

    Args:
      problems: in any order, which the result keeps.
      keep: data.keep, as JSON: '{"level": [3, 4, 5]}' keeps those whose meta["level"]
        is one of the values.

    Returns:
      The problems that match in every field named.

    Raises:
      UserError: `keep` is not of that form, no problem has the field, or none
        matches.
    """
    for field, values in _parse_keep(keep).items():
        found = [problem.meta.get(field) for problem in problems]
        if all(value is None for value in found):
            known = sorted({key for problem in problems for key in problem.meta})
            raise UserError(names.unknown("field", field, known, "data.keep"))
        problems = [
            p for p, value in zip(problems, found, strict=True) if value in values
        ]
        if not problems:
            some = sorted({repr(value) for value in found})[:8]
            raise UserError(
                f"data.keep: no row has {field!r} in {values!r}; rows have "
                f"{', '.join(some)}"
            )
    return list(problems)


def _parse_keep(keep: str) -> dict[str, list[Any]]:
    try:
        wanted = json.loads(keep)
    except json.JSONDecodeError as error:
        raise UserError(f"data.keep is not JSON ({error}), got {keep!r}") from None
    if not isinstance(wanted, dict) or not all(
        isinstance(values, list) for values in wanted.values()
    ):
        raise UserError(
            'data.keep needs a list of values for each field, as \'{"level": [3, 4, '
            f"5]}}', got {keep!r}"
        )
    return wanted


def _agree(group: Sequence[Problem]) -> bool:
    return len({json.dumps(p.answer, sort_keys=True, default=str) for p in group}) == 1
