"""Recomputes a stored update: `python -m launch.replay RUN_DIR/replay/step_10.npz`.

A run writes bundles with --config.replay.save_every=N. Prints each stage that agrees,
and the first that does not; exit status 1 if there is one.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

from rlvr_jax.train import replay


def main(argv: Sequence[str] | None = None) -> None:
    """Compares the bundle with what comes out here.

    Args:
      argv: the arguments after the program's name; by default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m launch.replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=pathlib.Path, help="a bundle, .npz")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="relative")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    try:
        arrays, settings = replay.load(arguments.file)
        found = replay.compare(arrays, settings, arguments.tolerance)
    except ValueError as error:
        sys.exit(f"launch.replay: {error}")
    if arguments.json:
        difference = None if found is None else vars(found)
        print(json.dumps({"step": settings["step"], "difference": difference}))
    else:
        show(found, settings["step"], arrays)
    sys.exit(0 if found is None else 1)


def show(found: replay.Difference | None, step: int, arrays: dict) -> None:
    """Stage by stage, until one differs."""
    print(f"step {step}: {arrays['rewards'].size} completions")
    for stage in replay.STAGES:
        if found is not None and stage == found.stage:
            print(
                f"  {stage}: differs by {found.largest:.3g} at {list(found.at)}: "
                f"stored {found.stored:.8g}, here {found.computed:.8g}"
            )
            print("  what comes after was not compared")
            return
        print(f"  {stage}: agrees")


if __name__ == "__main__":
    main()
