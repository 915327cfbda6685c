"""Finds training questions that come close to evaluation questions.

python -m launch.decontaminate --train dapo_math_17k.jsonl.gz --against math500.jsonl
python -m launch.decontaminate --train hub:open-r1/DAPO-Math-17k-Processed \
    --against math500.jsonl,amc23.jsonl --write clean.jsonl

Sources are those of data.train. Equal questions (case, spaces and signs aside) and
questions that share most of their runs of 13 words count; a run applies the same rule
by itself with data.decontaminate.
"""

import argparse
import collections
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import rich.console
import rich.table

from rlvr_jax.config import DataConfig
from rlvr_jax.data import decontamination
from rlvr_jax.data.decontamination import Overlap
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.sources import read_source, split_sources

_SHOWN = 110


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the overlaps by evaluation set; exits with 0 also where there are some.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m launch.decontaminate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    defaults = DataConfig()
    parser.add_argument("--train", required=True, help="sources, with commas between")
    parser.add_argument("--against", required=True, help="evaluation sources")
    parser.add_argument("--words", type=int, default=defaults.decontaminate_words)
    parser.add_argument("--share", type=float, default=defaults.decontaminate_share)
    parser.add_argument("--write", type=pathlib.Path, help="the rest, as a .jsonl file")
    parser.add_argument("--json", action="store_true", help="one line per source")
    parser.add_argument("--show", type=int, default=5, help="pairs shown per source")
    arguments = parser.parse_args(argv)
    try:
        if arguments.write:  # before the work that would be lost
            arguments.write.parent.mkdir(parents=True, exist_ok=True)
        training = read_problems(arguments.train)
        found = {
            source: decontamination.overlaps(
                training,
                read_problems(source),
                run_words=arguments.words,
                share=arguments.share,
            )
            for source in split_sources(arguments.against)
        }
    except (OSError, ValueError) as error:
        sys.exit(f"launch.decontaminate: {error}")
    rows = [summary(source, pairs) for source, pairs in found.items()]
    if arguments.json:
        for row in rows:
            print(json.dumps(row))
    else:
        show(rows, found, arguments.show)
    if arguments.write:
        everything = [pair for pairs in found.values() for pair in pairs]
        kept = decontamination.without_overlaps(training, everything)
        write_problems(arguments.write, kept)
        out = sys.stderr if arguments.json else sys.stdout
        print(f"{len(kept)} of {len(training)} kept: {arguments.write}", file=out)


def read_problems(sources: str) -> list[Problem]:
    """All problems of some sources, test parts included."""
    return [
        problem
        for source in split_sources(sources)
        for part in read_source(source, DataConfig(), seed=0)
        for problem in part
    ]


def summary(source: str, pairs: Sequence[Overlap]) -> dict[str, Any]:
    """Counts of one evaluation source.

    Example:
      >>> summary("amc23.jsonl", [])
      {'against': 'amc23.jsonl', 'equal': 0, 'close': 0, 'training': 0}
    """
    equal = {pair.evaluation.id for pair in pairs if pair.equal}
    close = {pair.evaluation.id for pair in pairs}
    return {
        "against": source,
        "equal": len(equal),
        "close": len(close - equal),
        "training": len({id(pair.training) for pair in pairs}),
    }


def show(rows, found: dict[str, list[Overlap]], shown: int) -> None:
    """The table, and the first pairs of each source."""
    console = rich.console.Console()
    table = rich.table.Table("against", "equal", "close", "training rows")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console.print(table)
    for source, pairs in found.items():
        by_question = collections.defaultdict(list)
        for pair in pairs:
            by_question[pair.evaluation.id].append(pair)
        for name, close in list(by_question.items())[:shown]:
            pair = close[0]
            console.print(
                f"{source} {name}: {pair.share:.0%} in {pair.training.id}"
                f" and {len(close) - 1} more",
                markup=False,
            )
            console.print(f"  {pair.evaluation.question[:_SHOWN]!r}", markup=False)
            console.print(f"  {pair.training.question[:_SHOWN]!r}", markup=False)


def write_problems(path: pathlib.Path, problems: Sequence[Problem]) -> None:
    """One problem a line, in the form that data.train reads."""
    with path.open("w", encoding="utf8") as file:
        for p in problems:
            row = {"id": p.id, "question": p.question, "answer": p.answer}
            if p.verifier:
                row["verifier"] = p.verifier
            row["meta"] = p.meta
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
