"""Looks at verifiers and at what they paid.

python -m launch.audit checkers                   eight outputs, six checkers: who errs
python -m launch.audit checkers FILE.jsonl        the same on your own rows, with rates
python -m launch.audit read RUN_DIR               completions to read: paid most, unpaid
python -m launch.audit gap RUN_DIR                training against stricter verifier

A row of FILE.jsonl is {"gold": reference, "pred": completion, "expected": true or
false}, as for launch.verify; with --against VERIFIER a stricter verifier says what is
right instead of "expected"; contested rows are left out. TPR is the share of right rows
that are accepted, FPR that of wrong ones. --pattern NAME=REGEX adds rates over the
completions that contain REGEX: a checker is known by where it errs, not only by how
often.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import rich.console
import rich.table
import rich.text

from rlvr_jax.analysis.runs import load_run
from rlvr_jax.data.rows import read_jsonl
from rlvr_jax.verifiers import inspector
from rlvr_jax.verifiers.audit_reading import reading_list
from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.pool import VerifierPool

_MARKS = {
    Status.CORRECT: "yes",
    Status.WRONG: "no",
    Status.UNPARSEABLE: "no (unparseable)",
}
_SHOWN = 800
_GAP_COLUMNS = ("accuracy", "strict_accuracy", "gap", "alarm")


def main(argv: Sequence[str] | None = None) -> None:
    """Runs one of the three.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m launch.audit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    checkers = commands.add_parser("checkers", help="verdicts of several verifiers")
    checkers.set_defaults(run=show_checkers)
    checkers.add_argument("file", type=pathlib.Path, nargs="?", help="a .jsonl file")
    checkers.add_argument("--verifiers", default=",".join(inspector.CHECKERS))
    checkers.add_argument("--against", default="", help="a stricter verifier")
    checkers.add_argument(
        "--pattern", action="append", default=[], metavar="NAME=REGEX"
    )
    checkers.add_argument("--workers", type=int, default=0)
    checkers.add_argument("--timeout_s", type=float, default=5.0)
    read = commands.add_parser("read", help="completions that a person should read")
    read.set_defaults(run=show_completions)
    read.add_argument("run_dir", type=pathlib.Path)
    read.add_argument("--count", type=int, default=3, help="of each kind")
    read.add_argument("--seed", type=int, default=0, help="of the draw")
    gap = commands.add_parser("gap", help="the audit stream of a run")
    gap.set_defaults(run=show_gap)
    gap.add_argument("run_dir", type=pathlib.Path)
    arguments = parser.parse_args(argv)
    try:
        arguments.run(arguments, rich.console.Console())
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"launch.audit: {error}")


def show_checkers(arguments: argparse.Namespace, console: rich.console.Console) -> None:
    """The table of verdicts (of the eight outputs) and the rates of each checker."""
    names = [name.strip() for name in arguments.verifiers.split(",") if name.strip()]
    patterns = dict(_pattern(text) for text in arguments.pattern)
    if arguments.file is None:
        samples = inspector.eight_samples()
        right = [is_right for _, is_right in inspector.EIGHT]
    else:
        rows = _settled_rows(arguments.file)
        samples = [
            Sample(
                "",
                str(row["pred"]),
                row["gold"],
                row.get("question", ""),
                row.get("meta") or {},
            )
            for row in rows
        ]
        right = [row.get("expected") for row in rows]
    asked = [*names, arguments.against] if arguments.against else names
    with VerifierPool(arguments.workers, arguments.timeout_s) as pool:
        pool.check(asked)
        found = inspector.matrix(samples, asked, pool)
    if arguments.against:
        truth = [v.status is Status.CORRECT for v in found[arguments.against]]
    else:
        truth = [each for each in right if isinstance(each, bool)]
    if unknown := len(samples) - len(truth):
        raise ValueError(
            f"{unknown} rows of {arguments.file} lack 'expected'; add it, or name a "
            "stricter verifier with --against"
        )
    if arguments.file is None:
        console.print(_verdict_table(samples, truth, names, found))
    console.print(_rate_table(samples, truth, names, found, patterns))


def show_completions(
    arguments: argparse.Namespace, console: rich.console.Console
) -> None:
    """Draws completions by reward and prints them whole enough to judge."""
    rows = load_run(arguments.run_dir).completions
    if not rows:
        raise ValueError(
            f"{arguments.run_dir} kept no completions; set "
            "logging.completions_every_steps above 0"
        )
    for kind, places in reading_list(rows, arguments.count, arguments.seed).items():
        for place in places:
            row = rows[place]
            console.rule(
                f"{kind}: row {place}, step {row.get('step')}, reward "
                f"{row.get('reward')}, {row.get('verdict')}"
                + (f", audit {row['audit']}" if "audit" in row else "")
            )
            for name in ("prompt", "completion", "reference", "detail"):
                text = str(row.get(name, ""))
                shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
                console.print(rich.text.Text(f"{name}: {shown}"))


def show_gap(arguments: argparse.Namespace, console: rich.console.Console) -> None:
    """What both verifiers accepted, over the run in tenths, and the alarm."""
    run = load_run(arguments.run_dir)
    series = {name: run.metrics.get(f"audit/{name}") for name in _GAP_COLUMNS}
    train, strict, gap, alarm = series.values()
    if train is None or strict is None or gap is None or alarm is None:
        raise ValueError(
            f"{arguments.run_dir} has no audit; set audit.verifier to a stricter one"
        )
    table = rich.table.Table(title=f"{run.name}: {run.setting('audit.verifier')}")
    for heading in ("step", "accepted in training", "by the audit", "gap", "alarm"):
        table.add_column(heading, justify="right")
    steps = gap.steps
    for place in sorted({len(steps) * i // 10 for i in range(10)} | {len(steps) - 1}):
        step = steps[place]
        shares = [
            each.values[each.steps <= step][-1:].mean() for each in (train, strict)
        ]
        table.add_row(
            str(step),
            *(f"{share:.1%}" for share in shares),
            f"{gap.values[place]:+.1%}",
            "yes" if alarm.values[place] else "",
        )
    console.print(table)
    if alarm.values.any():
        first = steps[alarm.values > 0][0]
        console.print(f"the alarm first sounded at step {first}")


def _settled_rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of a file that are not contested."""
    rows = []
    for line, row in read_jsonl(path):
        fields = row if isinstance(row, dict) else {}
        if fields.get("contested"):
            continue
        if not {"gold", "pred"} <= fields.keys():
            raise ValueError(f"{path}, {line}: is no object with 'gold' and 'pred'")
        rows.append(fields)
    if not rows:
        raise ValueError(f"{path} holds no rows")
    return rows


def _verdict_table(
    samples: Sequence[Sample],
    right: Sequence[bool],
    names: Sequence[str],
    found: dict[str, list[Verdict]],
) -> rich.table.Table:
    title = f"{inspector.QUESTION} ({inspector.REFERENCE})"
    table = rich.table.Table("output", "right", *names, title=title, show_lines=True)
    for i, sample in enumerate(samples):
        marks = (_MARKS.get(found[name][i].status, "failed") for name in names)
        table.add_row(
            rich.text.Text(sample.completion), "yes" if right[i] else "no", *marks
        )
    return table


def _rate_table(
    samples: Sequence[Sample],
    right: Sequence[bool],
    names: Sequence[str],
    found: dict[str, list[Verdict]],
    patterns: dict[str, str],
) -> rich.table.Table:
    table = rich.table.Table("checker", "rows", title="errors")
    for heading in ("TPR", "FPR", "misses", "accepted wrongly", "failed"):
        table.add_column(heading, justify="right")
    texts = [sample.completion for sample in samples]
    for name in names:
        failed = sum(v.status not in _MARKS for v in found[name])
        for kind, counts in inspector.confusion(
            found[name], right, texts, patterns
        ).items():
            table.add_row(
                name if kind == "all" else "",
                kind,
                _rate(counts.true_positive_rate),
                _rate(counts.false_positive_rate),
                str(counts.false_negatives),
                str(counts.false_positives),
                str(failed) if kind == "all" else "",
            )
    return table


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def _pattern(text: str) -> tuple[str, str]:
    name, equals, pattern = text.partition("=")
    if not equals or not name:
        raise ValueError(f"--pattern is NAME=REGEX, got {text!r}")
    return name, pattern


if __name__ == "__main__":
    main()
