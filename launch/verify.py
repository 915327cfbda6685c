"""Scores a file of answers with a verifier, and shows where it errs.

python -m launch.verify --kind math answers.jsonl
python -m launch.verify --kind code programs.jsonl
python -m launch.verify --kind instructions responses.jsonl
python -m launch.verify --kind code programs.jsonl --json    one object, for tools

One JSON object a line: {"gold": reference, "pred": completion}, and as far as known
"expected" (true or false: should the verifier accept it?), "kind", "id", "question",
"meta" and "contested" (true: left out of the headline figures). Without "expected" the
accuracy is the share of correct completions. The references are those of the verifiers
math, code and instructions. Also read are

  code          {"program": ..., "task": {"prompt", "entry_point", "tests"}}, and rows
                of HumanEval and MBPP with a "pred" beside question, answer and meta
  instructions  {"response": ..., "instruction_id": ..., "kwargs": ...}
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import rich.console
import rich.table

from rlvr_jax.data.rows import read_jsonl
from rlvr_jax.verifiers import tally
from rlvr_jax.verifiers.base import Sample, Verdict
from rlvr_jax.verifiers.code import heldout
from rlvr_jax.verifiers.pool import VerifierPool

_SHOWN = 70


@dataclasses.dataclass(frozen=True)
class Kind:
    """How the rows of a kind are read; the kind's name is that of the verifier."""

    completion: tuple[str, ...]
    """Fields of which the first present is the completion."""
    reference: tuple[str, ...]
    """Fields of which one must be present; see `answer`."""
    answer: Callable[[dict[str, Any]], Any]
    """From a row to the reference; None where it stands in `meta`."""
    group: tuple[str, ...]
    """Fields of which the first present names the row's line in the table."""
    timeout_s: float
    held_out: str = ""
    """The verifier of tests held out, if references may have some."""


def _gold(row: dict[str, Any]) -> Any:
    return row["gold"]


def _tests(row: dict[str, Any]) -> Any:
    if "task" in row:
        task = dict(row["task"])
        if "tests" in task:
            task["test"] = task.pop("tests")
        return task
    return row["gold"] if "gold" in row else row.get("answer")


def _instructions(row: dict[str, Any]) -> Any:
    if "gold" in row:
        return row["gold"]
    names = ("instruction_id", "instruction_id_list", "kwargs")
    return {name: row[name] for name in names if name in row} or None


KINDS = {
    "math": Kind(("pred",), ("gold",), _gold, ("kind",), 5.0),
    "code": Kind(
        completion=("pred", "program"),
        reference=("gold", "task", "meta"),
        answer=_tests,
        group=("kind", "attack"),
        timeout_s=20.0,
        held_out="code:held_out",
    ),
    "instructions": Kind(
        completion=("pred", "response"),
        reference=("gold", "instruction_id", "instruction_id_list", "meta"),
        answer=_instructions,
        group=("kind", "instruction_id"),
        timeout_s=5.0,
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Verifies the rows and prints the tables, or one JSON object.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m launch.verify",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=pathlib.Path, help="a .jsonl file")
    parser.add_argument("--kind", choices=KINDS, default="math")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--workers", type=int, default=1, help="verifier processes")
    parser.add_argument("--timeout_s", type=float, help="per row (default: 5; code 20)")
    arguments = parser.parse_args(argv)
    try:
        rows = read_rows(arguments.file, KINDS[arguments.kind])
        outcomes, hacks = judge(rows, arguments)
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"launch.verify: {error}")
    if arguments.json:
        print(json.dumps(tally.summary(outcomes)))
    else:
        console = rich.console.Console()
        show(outcomes, console)
        if hacks is not None:
            _show_hacks(hacks, console)


def read_rows(path: pathlib.Path, kind: Kind) -> list[dict[str, Any]]:
    """The rows of the file.

    Raises:
      ValueError: a line is no JSON object or lacks a field, or there are none.
    """
    rows = []
    for line, row in read_jsonl(path):
        present = row.keys() if isinstance(row, dict) else set()
        missing = [
            " or ".join(map(repr, fields))
            for fields in (kind.reference, kind.completion)
            if not present & set(fields)
        ]
        if missing:
            raise ValueError(f"{path}, {line}: lacks {' and '.join(missing)}")
        if not isinstance(row.get("expected"), bool | None):
            raise ValueError(
                f"{path}, {line}: expected is true or false, not {row['expected']!r}"
            )
        rows.append(row)
    if not rows:
        raise ValueError(f"{path} holds no rows")
    return rows


def judge(
    rows: list[dict[str, Any]], arguments: argparse.Namespace
) -> tuple[list[tally.Outcome], heldout.Hacks | None]:
    """Verifies all rows in the pool; those with tests held out by these as well."""
    kind = KINDS[arguments.kind]
    samples = [_sample(row, arguments.kind) for row in rows]
    timeout_s = kind.timeout_s if arguments.timeout_s is None else arguments.timeout_s
    with VerifierPool(arguments.workers, timeout_s, preload=[arguments.kind]) as pool:
        verdicts = pool.verify(samples)
        hacks = _hacks(kind, samples, verdicts, pool)
    outcomes = [
        tally.Outcome(
            name=str(row.get("id", number)),
            kind=str(_first(row, kind.group) or ""),
            expected=row.get("expected"),
            contested=bool(row.get("contested", False)),
            sample=sample,
            verdict=verdict,
        )
        for number, (row, sample, verdict) in enumerate(
            zip(rows, samples, verdicts, strict=True), 1
        )
    ]
    return outcomes, hacks


def _sample(row: dict[str, Any], name: str) -> Sample:
    kind = KINDS[name]
    return Sample(
        verifier=name,
        completion=str(_first(row, kind.completion)),
        answer=kind.answer(row),
        question=str(row.get("question", "")),
        meta=row.get("meta") or {},
    )


def _first(row: dict[str, Any], fields: Sequence[str]) -> Any:
    return next((row[field] for field in fields if field in row), None)


def _hacks(
    kind: Kind, samples: list[Sample], verdicts: list[Verdict], pool: VerifierPool
) -> heldout.Hacks | None:
    """How many rows pass their tests and fail those held out; None: none are."""
    chosen = [
        (dataclasses.replace(sample, verifier=kind.held_out), verdict)
        for sample, verdict in zip(samples, verdicts, strict=True)
        if kind.held_out
        and any("held_out" in (part or ()) for part in (sample.answer, sample.meta))
    ]
    if not chosen:
        return None
    strict = pool.verify([sample for sample, _ in chosen])
    return heldout.hacks([verdict for _, verdict in chosen], strict)


def show(outcomes: list[tally.Outcome], console: rich.console.Console) -> None:
    """Prints the figures by kind, the totals, and every row that came out wrong."""
    table = rich.table.Table(title=f"{len(outcomes)} rows")
    table.add_column("kind")
    for heading in ("rows", "accuracy", "false positives", "false negatives"):
        table.add_column(heading, justify="right")
    settled = [outcome for outcome in outcomes if not outcome.contested]
    kinds = sorted({outcome.kind for outcome in settled})
    for kind in kinds if len(kinds) > 1 else []:
        _add_row(table, kind, [each for each in settled if each.kind == kind])
    table.add_section()
    _add_row(table, "uncontested", settled)
    _add_row(table, "all", outcomes)
    console.print(table)
    total = tally.summary(outcomes)
    speed = f"{total['rows_per_s']:.0f} rows/s per core"
    console.print(
        f"timeouts {total['timeouts']}, crashes {total['crashes']}, {speed}, "
        f"slowest {total['slowest_s']:.3f} s",
        highlight=False,
    )
    for outcome in sorted(outcomes, key=lambda each: each.contested):
        if outcome.is_error:
            _show_error(outcome, console)


def _show_hacks(hacks: heldout.Hacks, console: rich.console.Console) -> None:
    console.print(
        f"hack rate {100 * hacks.rate:.1f} %: of {hacks.programs} programs "
        f"{hacks.passed} pass their tests, {hacks.hacks} of these fail the tests held "
        "out",
        highlight=False,
    )


def _add_row(table: rich.table.Table, name: str, outcomes: list[tally.Outcome]) -> None:
    figures = tally.figures(outcomes)
    table.add_row(
        name,
        str(figures["rows"]),
        f"{100 * figures['accuracy']:.1f} %",
        str(figures["false_positives"]),
        str(figures["false_negatives"]),
    )


def _show_error(outcome: tally.Outcome, console: rich.console.Console) -> None:
    verdict, sample = outcome.verdict, outcome.sample
    should = "accepted" if outcome.expected is not False else "rejected"
    note = " (contested)" if outcome.contested else ""
    console.print(
        f"{outcome.name} {outcome.kind}{note}: {verdict.status}, should be {should}\n"
        f"    gold {_short(str(sample.answer))}\n    pred {_short(sample.completion)}\n"
        f"    {verdict.detail}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]} ... {text[-_SHOWN:]}"


if __name__ == "__main__":
    main()
