"""Writes the HTML report of a run, or of several runs compared.

python -m launch.report runs/quickstart
python -m launch.report runs/seed0 runs/seed1 --output=seeds.html
python -m launch.report runs/* --json        one line per run, for other tools
python -m launch.report --plateau runs/a     why it may have stopped learning
python -m launch.report --growth runs/a runs/b      length, reflection, accuracy by step
python -m launch.report runs/sweeps/NAME     the table of a sweep (launch.sweep)
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence

import rich.box
import rich.console
import rich.table

from rlvr_jax.analysis import growth, hypotheses, plateau, report, sweeps
from rlvr_jax.analysis.runs import Run, load_run
from rlvr_jax.analysis.sweep_page import write_sweep_report
from rlvr_jax.analysis.trends import in_words


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the page and says where it is.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m launch.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run_dir", nargs="+", help="run_dir of a training run, or a sweep"
    )
    parser.add_argument(
        "--output",
        help="the HTML file; by default RUN_DIR/report.html, or comparison.html in "
        "the folder that holds the runs",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON line per run; the page's place goes to stderr",
    )
    parser.add_argument(
        "--plateau",
        action="store_true",
        help="walk the eight-point checklist, in order, and say what to mend first",
    )
    parser.add_argument(
        "--growth",
        action="store_true",
        help="do answers get longer, more reflective and better, and is length paid?",
    )
    arguments = parser.parse_args(argv)
    chosen = [name for name in ("plateau", "growth") if getattr(arguments, name)]
    if len(chosen) == 2:
        parser.error("--growth: not beside --plateau; give one")
    if chosen and arguments.output:
        parser.error(f"--output: --{chosen[0]} prints and writes no page")
    if chosen:
        (_plateau if arguments.plateau else _growth)(arguments)
        return
    if any(sweeps.is_sweep(folder) for folder in arguments.run_dir):
        _sweep(arguments)
        return
    try:
        path = report.write_report(arguments.run_dir, arguments.output)
        rows = [report.summary_row(load_run(folder)) for folder in arguments.run_dir]
    except (OSError, ValueError) as error:
        sys.exit(f"launch.report: {error}")
    if arguments.json:
        for row in rows:
            print(json.dumps(row, allow_nan=False))
    print(f"report: {path}", file=sys.stderr if arguments.json else sys.stdout)


def _sweep(arguments: argparse.Namespace) -> None:
    """Prints a sweep's table, Markdown or a JSON line per row; writes the page."""
    if len(arguments.run_dir) > 1:
        sys.exit("launch.report: give one sweep at a time")
    try:
        results = sweeps.load_sweep(arguments.run_dir[0])
        verdicts = hypotheses.verdicts(results)
        section = hypotheses.section(verdicts) if verdicts else ""
        path = write_sweep_report(results, arguments.output, [section])
    except (OSError, ValueError) as error:
        sys.exit(f"launch.report: {error}")
    if arguments.json:
        for row in sweeps.table_rows(results):
            print(json.dumps(row, allow_nan=False))
    else:
        print(sweeps.markdown(results), "", *sweeps.notes(results), sep="\n")
        if verdicts:
            print("", hypotheses.markdown(verdicts), sep="\n")
    print(f"report: {path}", file=sys.stderr if arguments.json else sys.stdout)


def _runs(folders: Iterable[str]) -> Iterator[Run]:
    """The runs of folders one by one; ends with an error at one that cannot be read."""
    for folder in folders:
        try:
            run = load_run(folder)
        except (OSError, ValueError) as error:
            sys.exit(f"launch.report: {error}")
        yield run


def _plateau(arguments: argparse.Namespace) -> None:
    """Prints the checklist of each run, or its findings as a JSON line."""
    console = rich.console.Console()
    for run in _runs(arguments.run_dir):
        findings = plateau.checklist(run)
        first, flat = plateau.first_abnormal(findings), plateau.reward_is_flat(run)
        if arguments.json:
            row = {"run": run.name, "reward_is_flat": flat}
            row["first"] = first.point if first else None
            row["findings"] = [one._asdict() for one in findings]
            print(json.dumps(row))
            continue
        words = {True: "flat", False: "still moving", None: "too short to say"}
        table = rich.table.Table("", "what", "state", "seen", box=rich.box.SIMPLE_HEAD)
        for one in findings:
            table.add_row(str(one.point), one.name, one.state, one.seen)
        console.print(f"{run.name}: reward {words[flat]} over the second half")
        console.print(table)
        said = (
            f"mend first: {first.point}. {first.name}: {first.advice}"
            if first
            else "nothing abnormal in what this run logs"
        )
        console.print(said, highlight=False, soft_wrap=True)


def _growth(arguments: argparse.Namespace) -> None:
    """Prints the three curves of each run, their slopes and what acts on length."""
    console = rich.console.Console()
    for run in _runs(arguments.run_dir):
        found = growth.growth(run)
        if arguments.json:
            row = {"run": run.name, "paid": found.paid}
            row["logged"] = [one._asdict() for one in found.logged]
            row["slopes"] = {name: list(one) for name, one in found.slopes.items()}
            row["rises"] = {name: one._asdict() for name, one in found.rises.items()}
            print(json.dumps(row))
            continue
        console.print(
            f"{run.name}: {'; '.join(found.paid) or 'no term acts on length'}"
        )
        headings = ("step", "completions", "tokens", "reflect", "right")
        table = rich.table.Table(*headings, box=rich.box.SIMPLE_HEAD)
        for step, count, tokens, *shares in found.logged:
            percent = (f"{100 * share:.0f} %" for share in shares)
            table.add_row(str(step), str(count), f"{tokens:.1f}", *percent)
        console.print(table)
        for name, (value, error) in found.slopes.items():
            console.print(f"{name}: {value:+.4f} +- {error:.4f} per step")
        for name, one in found.rises.items():
            console.print(f"{name}: {in_words(one)}")


if __name__ == "__main__":
    main()
