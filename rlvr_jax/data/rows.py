"""One row of a data file becomes one `Problem`, or an error that names the line."""

import dataclasses
import gzip
import json
import logging
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlvr_jax import config as config_lib
from rlvr_jax.data import forms
from rlvr_jax.errors import UserError

_CALCULATOR_MARK = re.compile(r"<<[^<>\n]*>>")
_FINAL_ANSWER = re.compile(r"(?:^|\n)####[ \t]*(\S[^\n]*?)\s*\Z")
_THOUSANDS_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_OUR_FIELDS = ("question", "answer")
_LOG = logging.getLogger(__name__)
_KNOWN_FIELDS = ("id", "verifier", "meta")


@dataclasses.dataclass(frozen=True)
class Problem:
    """A question whose answer a verifier can check."""

    id: str
    """Unique within its source; names the problem in logs."""
    question: str
    answer: Any
    """The reference, in the form that the verifier reads: a string for "math", a
    {"target", "numbers"} for "countdown", None where meta says it all (IFEval)."""
    verifier: str
    """A registered name, or "" in a row that leaves it to reward.verifier."""
    meta: dict[str, Any]
    """Whatever else the row holds. "solution": a worked solution whose end is the
    answer in a form the verifier extracts. "domain": which source it comes from."""


def row_to_problem(
    row: Any, *, data: config_lib.DataConfig, default_id: str
) -> Problem:
    """Reads one row, {"question", "answer", "id"?, "verifier"?, "meta"?, ...}.

    Fields of any other name join `meta`. Rows in the form of a known data set
    (rlvr_jax/data/forms.py) are read as well, unless `data` names fields. An answer in
    GSM8K's own form ("... #### 72") is split: what follows the marks is the answer, all
    of it the solution.

    Args:
      row: what one line of JSON holds.
      data: names the fields (`question_field`, `answer_field`; a dot goes into a
        nested object, "reward_model.ground_truth").
      default_id: for a row without "id".

    Returns:
      The problem.

    Raises:
      UserError: a field is missing, empty or of the wrong type. The message says
        which; the caller puts file and line before it.
    """
    if not isinstance(row, Mapping):
        raise UserError(
            f"needs one JSON object a line, got {_kind(row)}; write "
            '{"question": "...", "answer": "..."}'
        )
    if (data.question_field, data.answer_field) == _OUR_FIELDS:
        row = forms.in_our_form(row)
    question = _question_text(_field(row, data.question_field, "data.question_field"))
    answer = _field(row, data.answer_field, "data.answer_field")
    if isinstance(answer, str) and not answer.strip():
        raise UserError(f"field {data.answer_field!r} is empty; every row needs one")
    meta = row.get("meta")
    if meta is not None and not isinstance(meta, Mapping):
        raise UserError(f"field 'meta' needs a JSON object, got {_kind(meta)}")
    used = {data.question_field, data.answer_field, *_KNOWN_FIELDS}
    meta = {k: v for k, v in row.items() if k not in used} | dict(meta or {})
    answer, meta = _split_gsm8k(answer, meta)
    question = forms.with_function_name(question, meta)
    verifier = row.get("verifier") or ""
    if not isinstance(verifier, str):
        raise UserError(f"field 'verifier' needs a name, got {_kind(verifier)}")
    name = default_id if row.get("id") is None else str(row["id"])
    return Problem(name, question, answer, verifier, meta)


def rows_to_problems(
    numbered_rows: Iterable[tuple[str, Any]],
    *,
    data: config_lib.DataConfig,
    source: str,
    domain: str,
) -> list[Problem]:
    """All rows of one source, each error led by the source and the place in it.

    A row that repeats another's id, question and answer is a copy and left out, with
    one warning of how many: BytedTsinghua-SIA/DAPO-Math-17k holds its 17,917 rows 100
    times each.

    Args:
      numbered_rows: ("line 7", row) pairs.
      data: names the fields.
      source: leads each message, as a file name.
      domain: the source's short name, for ids and for meta["domain"] where a row
        has none.

    Returns:
      The problems, in the source's order.

    Raises:
      UserError: a bad row, an id used for two problems, or no row at all.
    """
    problems: list[Problem] = []
    seen: dict[str, tuple[str, Problem]] = {}
    copies = systems = 0
    for place, row in numbered_rows:
        try:
            problem = row_to_problem(
                row, data=data, default_id=f"{domain}-{len(problems)}"
            )
            known_place, known = seen.setdefault(problem.id, (place, problem))
            if (problem.question, problem.answer) != (known.question, known.answer):
                raise UserError(
                    f"id {problem.id!r} was already used on {known_place}; "
                    "give each row its own id, or none"
                )
        except ValueError as error:
            raise UserError(f"{source}, {place}: {error}") from None
        if problem is not known:
            copies += 1
            continue
        problem.meta.setdefault("domain", domain)
        problems.append(problem)
        systems += _has_system_message(row)
    if not problems:
        raise UserError(f"{source}: holds no row; it needs at least one problem")
    if copies:
        _LOG.warning(
            "%s: left out %d rows that repeat the id, question and answer of another",
            source,
            copies,
        )
    if systems:
        _LOG.warning(
            "%s: the system messages of %d rows are not read; data.system_prompt is "
            "the one of all",
            source,
            systems,
        )
    return problems


def _has_system_message(row: Mapping[str, Any]) -> bool:
    chats = [v for v in row.values() if isinstance(v, list) and v]
    firsts = [chat[0] for chat in chats if isinstance(chat[0], Mapping)]
    return any(first.get("role") == "system" for first in firsts)


def read_jsonl(path: Any) -> Iterator[tuple[str, Any]]:
    """Reads a .jsonl or .jsonl.gz file as ("line N", parsed row); skips blank lines.

    Args:
      path: a `pathlib.Path`, or an `epath.Path` in a bucket.

    Raises:
      UserError: a line is not UTF-8 or not JSON, or the compressed file is cut off or
        damaged. Names the file, the line and what to change.
    """
    number = 0
    try:
        with path.open("rb") as file:
            lines = gzip.open(file) if path.suffix == ".gz" else file
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"line {number}", _parse(line, f"{path}, line {number}")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"{path}, after line {number}: the compressed file is cut off or damaged "
            f"({error}); copy or download it again"
        ) from None


def worked_solution(text: str, answer: str) -> str:
    """GSM8K's solution without calculator marks, its last line "#### answer".

    Example:
      >>> worked_solution("48 / 2 = <<48/2=24>>24 clips", "24")
      '48 / 2 = 24 clips\\n#### 24'
    """
    text = _CALCULATOR_MARK.sub("", text).rstrip()
    return text if _FINAL_ANSWER.search(text) else f"{text}\n#### {answer}"


def _parse(line: bytes, place: str) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place}: is not UTF-8 (byte {line[error.start]:#04x} at column "
            f"{error.start + 1}); save the file as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{place}: is not JSON ({error.msg} at column {error.colno}); write one "
            "object a line"
        ) from None
    except (RecursionError, ValueError) as error:
        raise UserError(f"{place}: cannot be read as JSON ({error})") from None


def _field(row: Mapping[str, Any], name: str, setting: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            found = ", ".join(repr(key) for key in row) or "nothing"
            raise UserError(
                f"has no field {name!r}, only {found}; add it, or name the right one "
                f"in {setting}"
            )
        value = value[part]
    return value


def _question_text(value: Any) -> str:
    """A string, or what a chat asks as verl's data sets store it."""
    value = forms.asked_in(value)
    if not isinstance(value, str):
        raise UserError(f"the question needs to be text, got {_kind(value)}")
    if not value.strip():
        raise UserError("the question is empty; write one or delete the row")
    return value


def _split_gsm8k(answer: Any, meta: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if not isinstance(answer, str):
        return answer, meta
    if match := _FINAL_ANSWER.search(answer):
        solution = worked_solution(answer, match[1])
        return _THOUSANDS_COMMA.sub("", match[1]), {"solution": solution} | meta
    solution = meta.get("solution")
    if isinstance(solution, str) and _CALCULATOR_MARK.search(solution):
        return answer, meta | {"solution": worked_solution(solution, answer)}
    return answer, meta


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), f"{value!r}")
