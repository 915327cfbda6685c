"""What launch.evaluate prints: the scores of a model, and two models side by side."""

from collections.abc import Sequence
from typing import Any

import rich.console
import rich.table


def print_scores(
    console: rich.console.Console, name: str, score: dict[str, Any]
) -> None:
    """Of one model: pass@k and the like with intervals, and what its answers are."""
    n = score["n"]
    ks = sorted({2**i for i in range(n.bit_length()) if 2**i <= n} | {n})
    columns = {"pass@k": "pass@k", "maj@k": "maj@k", "best_of_k": "best of k"}
    heading = f"{name}: {score['problems']} problems, n = {n}"
    console.print(heading, highlight=False, soft_wrap=True, markup=False)
    table = rich.table.Table()
    table.add_column("k", justify="right")
    for key in columns:
        if key in score:
            table.add_column(columns[key], justify="right")
    for k in ks:
        table.add_row(
            str(k), *(_interval(score[key][k - 1]) for key in columns if key in score)
        )
    console.print(table)
    lines = [
        f"avg@{n} {_interval(score['avg@n'])}, "
        f"+-{100 * score['sampling_error']:.1f} by the draw of completions alone",
        f"coverage {_interval(score['coverage'])} have a correct completion; none "
        f"correct of {n} leaves a rate of {100 * score['unseen_rate']:.3g} % possible",
    ]
    if "scorer" in score:
        lines.append(_chosen(score))
    if "tokens" in score:
        cut = score.get("truncated_share")
        share = "" if cut is None else f", {100 * cut:.1f} % cut at the limit"
        lines.append(f"{score['tokens']:.0f} tokens a completion{share}")
    if "behaviours" in score:
        shares = (
            f"{n} {100 * b['share']:.0f} %" for n, b in score["behaviours"].items()
        )
        lines.append("by words: " + ", ".join(shares))
    if "perplexity_correct" in score:
        lines.append(
            f"perplexity of solutions under the base {score['perplexity_correct']:.2f}"
        )
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def _chosen(score: dict[str, Any]) -> str:
    """What a vote adds to one completion, and a scorer's choice to the vote."""
    n, one = score["n"], 100 * score["pass@k"][0][0]
    best = 100 * score["best_of_k"][n - 1][0]
    parts, before = [f"pass@1 {one:.1f}"], one
    if "maj@k" in score:
        before = 100 * score["maj@k"][n - 1][0]
        parts.append(f"a vote of {n} {before:.1f} ({before - one:+.1f})")
    parts.append(f"the scorer's choice of {n} {best:.1f} ({best - before:+.1f})")
    found = score["scorer"]
    if "weighted@n" in found:
        parts.append(f"a vote weighted by scores {100 * found['weighted@n'][0]:.1f}")
    if found["auc"] is not None:
        parts.append(f"area under the ROC curve {found['auc']:.3f}")
    return ", ".join(parts)


def print_comparison(console: rich.console.Console, both: dict[str, Any]) -> None:
    """Of two models on the same problems: the band over k, and who solves what."""
    console.print("second less first, with a band that holds at all k at once")
    table = rich.table.Table()
    for heading in ("k", "difference", "verdict"):
        table.add_column(heading, justify="right")
    last = both["k"]
    for k in sorted({2**i for i in range(last.bit_length()) if 2**i <= last} | {last}):
        mean, low, high = both["difference"][k - 1]
        table.add_row(
            str(k),
            f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]",
            both["verdicts"][k - 1],
        )
    console.print(table)
    lines = [f"finding: {both['finding']}"]
    if both["crosses"]:
        low, high = both["first_loss"]
        lines.append(f"the curves cross: the first loss is at k in [{low}, {high}]")
    solved = both["solved"]
    lines.append(
        f"solved by both {solved['preserved']}, gained {solved['gained']}, lost "
        f"{solved['lost']}, by neither {solved['neither']} (retention "
        f"{solved['retention']:.3f}, discovery {solved['discovery']:.3f}, net "
        f"{solved['net']:+.3f})"
    )
    lines.append(
        f"pass@{last} of the first less pass@1 of the second: "
        f"{100 * both['sampling_gap']:.1f} points"
    )
    for match in both.get("matched", [])[-1:]:
        mean, low, high = match["difference"]
        lines.append(
            f"at equal cost, pass@{match['other_k']} - pass@{match['base_k']}: "
            f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        )
    if "new_solutions_perplexity" in both:
        lines.append(
            "perplexity of newly solved problems' solutions under the base "
            f"{both['new_solutions_perplexity']:.2f}"
        )
    console.print("\n".join(lines), highlight=False, soft_wrap=True)
    if "domains" in both:
        console.print(_domains(both["domains"]))
    levels = rich.table.Table("first \\ second")
    for name in both["levels"]:
        levels.add_column(name, justify="right")
    for name, row in zip(both["levels"], both["transitions"], strict=True):
        levels.add_row(name, *map(str, row))
    console.print(levels)


def _domains(rows: Sequence[dict[str, Any]]) -> rich.table.Table:
    table = rich.table.Table("domain", "problems", "k = 1", "last k", "finding")
    for row in rows:
        ends = (
            f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
            for mean, low, high in (row["first"], row["last"])
        )
        table.add_row(row["domain"], str(row["problems"]), *ends, row["finding"])
    return table


def _interval(score: Sequence[float]) -> str:
    mean, low, high = (100 * part for part in score)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"
