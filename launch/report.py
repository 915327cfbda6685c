"""Writes the HTML report of a run, or of several runs compared.

python -m launch.report runs/quickstart
python -m launch.report runs/seed0 runs/seed1 --output=seeds.html
python -m launch.report runs/* --json        one line per run, for other tools
"""

import argparse
import json
import sys
from collections.abc import Sequence

from rlvr_jax.analysis import report
from rlvr_jax.analysis.runs import load_run


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
    parser.add_argument("run_dir", nargs="+", help="run_dir of a training run")
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
    arguments = parser.parse_args(argv)
    try:
        path = report.write_report(arguments.run_dir, arguments.output)
        rows = [report.summary_row(load_run(folder)) for folder in arguments.run_dir]
    except (OSError, ValueError) as error:
        sys.exit(f"launch.report: {error}")
    if arguments.json:
        for row in rows:
            print(json.dumps(row, allow_nan=False))
    print(f"report: {path}", file=sys.stderr if arguments.json else sys.stdout)


if __name__ == "__main__":
    main()
