"""Scores a file of answers with a verifier, and shows where it errs.

python -m launch.verify --kind math answers.jsonl
python -m launch.verify --kind math answers.jsonl --json        one object, for tools

One JSON object a line: {"gold": reference, "pred": completion}, and as far as known
"expected" (true or false: should the verifier accept it?), "kind", "id", "question" and
"contested" (true: left out of the headline figures). Without "expected" the accuracy is
the share of correct completions.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import rich.console
import rich.table

from rlvr_jax.verifiers import tally
from rlvr_jax.verifiers.base import Sample
from rlvr_jax.verifiers.pool import VerifierPool

KINDS = ("math", "code", "instructions")
_SHOWN = 70


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
    parser.add_argument("--timeout_s", type=float, default=5.0, help="per row")
    arguments = parser.parse_args(argv)
    try:
        rows = read_rows(arguments.file, arguments.kind)
        outcomes = judge(rows, arguments)
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"launch.verify: {error}")
    if arguments.json:
        print(json.dumps(tally.summary(outcomes)))
    else:
        show(outcomes, rich.console.Console())


def read_rows(path: pathlib.Path, kind: str) -> list[dict[str, Any]]:
    """The rows of the file.

    Raises:
      ValueError: the kind is not available, a line is no JSON object or lacks a field,
        or there are none.
    """
    if kind != "math":
        raise ValueError(f"--kind {kind} is not available yet; --kind math is")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number} is no JSON: {error}") from error
        missing = {"gold", "pred"} - (row.keys() if isinstance(row, dict) else set())
        if missing:
            fields = " and ".join(repr(name) for name in sorted(missing))
            raise ValueError(f"{path}:{number} lacks {fields}")
        rows.append(row)
    if not rows:
        raise ValueError(f"{path} holds no rows")
    return rows


def judge(
    rows: list[dict[str, Any]], arguments: argparse.Namespace
) -> list[tally.Outcome]:
    """Verifies all rows in the pool."""
    samples = [
        Sample(arguments.kind, str(row["pred"]), row["gold"], row.get("question", ""))
        for row in rows
    ]
    with VerifierPool(
        arguments.workers, arguments.timeout_s, preload=[arguments.kind]
    ) as pool:
        verdicts = pool.verify(samples)
    return [
        tally.Outcome(
            name=str(row.get("id", number)),
            kind=str(row.get("kind", "")),
            expected=row.get("expected"),
            contested=bool(row.get("contested", False)),
            sample=sample,
            verdict=verdict,
        )
        for number, (row, sample, verdict) in enumerate(
            zip(rows, samples, verdicts, strict=True), 1
        )
    ]


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
