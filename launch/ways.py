"""One model evaluated in several ways: how far its scores hang on the way.

For `launch.evaluate --spread` (templates, temperatures) and `--scaling` (lengths of the
thoughts).
"""

import argparse
import json
import sys

import rich.console
import rich.table

from rlvr_jax.analysis.counts import read_counts
from rlvr_jax.analysis.protocol import sensitivity
from rlvr_jax.analysis.thinking import control, scaling_of
from rlvr_jax.analysis.trends import in_words


def spread(arguments: argparse.Namespace) -> None:
    """Prints pass@1 and pass@k of each file, and how far apart they are."""
    try:
        grid = {str(path): read_counts(path) for path in arguments.spread}
        last = min(problem.n for counts in grid.values() for problem in counts)
        found = {k: sensitivity(grid, k) for k in sorted({1, last})}
    except (OSError, ValueError) as error:
        sys.exit(f"launch.evaluate: {error}")
    if arguments.json:
        print(json.dumps({"spread": found}, allow_nan=False))
        return
    table = rich.table.Table("way", *(f"pass@{k}" for k in found))
    for name in grid:
        shares = (found[k]["pass@k"][name] for k in found)
        table.add_row(name, *(f"{100 * share:.1f}" for share in shares))
    spreads = (f"{100 * each['spread']:.1f}" for each in found.values())
    table.add_section()
    table.add_row("largest - smallest", *spreads)
    rich.console.Console().print(table)


def scaling(arguments: argparse.Namespace) -> None:
    """Prints s1's measures of test-time scaling."""
    try:
        found = scaling_of([read_counts(p) for p in arguments.scaling])
        if arguments.between:
            least, most = arguments.between
            found["control"] = control(found["tokens"], least=least, most=most)
    except (OSError, ValueError) as error:
        sys.exit(f"launch.evaluate: {error}")
    del found["tokens"]
    rising = found.pop("rise", None)
    if arguments.json:
        found |= {"rise": rising._asdict()} if rising else {}
        print(json.dumps({"thinking": found}, allow_nan=False))
        return
    table = rich.table.Table("counts", "thinking tokens", "pass@1")
    for path, point in zip(arguments.scaling, found["points"], strict=True):
        table.add_row(str(path), f"{point[0]:.1f}", f"{100 * point[1]:.1f}")
    console = rich.console.Console()
    console.print(table)
    lines = [f"performance {100 * found['performance']:.1f}"]
    if "scaling" in found:
        slope = 100_000 * found["scaling"]
        lines.append(f"scaling {slope:+.2f} points per 1000 thinking tokens")
    if rising:
        lines.append(f"with more thinking: {in_words(rising)}")
    if "control" in found:
        share = 100 * found["control"]
        lines.append(f"control {share:.1f} % within {arguments.between}")
    console.print("\n".join(lines), highlight=False, soft_wrap=True)
