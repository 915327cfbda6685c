"""python -m tests.golden DIR: one line per formula, then the totals."""

import argparse
import os
import pathlib
import sys

from tests.golden.registry import Summary, run

# A run compiles over a thousand programs of one operation each and runs them once:
# compiling them without optimisation halves its time.
FAST_COMPILATION = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
)


def main(arguments: list[str] | None = None) -> int:
    """Prints the agreement; returns 0 when no case failed."""
    # Read when JAX first uses a device.
    flags = (os.environ.get("XLA_FLAGS", ""), *FAST_COMPILATION)
    os.environ["XLA_FLAGS"] = " ".join(flags)
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("directory", type=pathlib.Path, help="manifest.json and npz")
    summaries = run(parser.parse_args(arguments).directory)
    for formula, summary in summaries.items():
        print(_line(formula, summary))
        for problem in summary.problems:
            print(f"  {problem}", file=sys.stderr)
    passed = sum(summary.agreed for summary in summaries.values())
    failed = sum(len(summary.problems) for summary in summaries.values())
    uncovered = sum(s.cases for s in summaries.values() if not s.covered)
    print(f"golden: {passed} passed, {failed} failed, {uncovered} not covered")
    return 1 if failed else 0


def _line(formula: str, summary: Summary) -> str:
    if not summary.covered:
        return f"{formula:20} {summary.cases:4} cases, not covered"
    return (
        f"{formula:20} {summary.cases:4} cases, {summary.agreed:4} agreed, "
        f"worst error {summary.worst:.1e}"
    )


if __name__ == "__main__":
    sys.exit(main())
