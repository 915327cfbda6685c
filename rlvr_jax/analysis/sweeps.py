"""The table of a sweep: our figures with intervals over seeds beside a paper's."""

import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from rlvr_jax.analysis import catalog, evaluations
from rlvr_jax.analysis.runs import Run, Series, load_run
from rlvr_jax.analysis.trends import steps_to

Interval = tuple[float, float | None, float | None]
"""(mean, low, high); no ends with one seed, nor where all seeds agree."""


class SweepRow(NamedTuple):
    """One row of the table; figures in percent where the metric is a share."""

    name: str
    role: str
    paper: float | None
    seeds: list[int]
    """That finished."""
    before: dict[int, float]
    """The metric before training, by seed."""
    after: dict[int, float]
    behaviour: dict[int, tuple[float, float]]
    """Share of the logged completions that show it, at the first and the last step
    with completions."""
    watched: dict[str, Interval]
    runs: list[Run]


@dataclasses.dataclass(frozen=True)
class SweepResults:
    """A sweep folder as far as it is done."""

    folder: pathlib.Path
    metric: str
    paper: str
    reference: tuple[str, float] | None
    planned: list[int]
    rows: list[SweepRow]
    steps_to: str = ""
    """The row whose final score all are timed against; "" for none."""


def is_sweep(folder: str | os.PathLike[str]) -> bool:
    """Whether `launch.sweep` made the folder."""
    return (pathlib.Path(folder) / "sweep.json").is_file()


def load_sweep(folder: str | os.PathLike[str]) -> SweepResults:
    """Reads all finished cells; the others are left out.

    Raises:
      ValueError: the folder is no sweep, or a run in it cannot be read.
    """
    path = pathlib.Path(folder)
    if not is_sweep(path):
        raise ValueError(f"load_sweep: {path} has no sweep.json; give a sweep's folder")
    told = json.loads((path / "sweep.json").read_text(encoding="utf8"))
    rows = []
    for row in told["rows"]:
        runs = {}
        for seed in told["seeds"]:
            cell = path / row["folder"] / f"seed{seed}"
            if (cell / "metrics.jsonl").is_file() and (cell / "summary.json").is_file():
                run = load_run(cell)
                if run.finished:
                    runs[seed] = run
        rows.append(_row(row, runs, told))
    reference = told["reference"]
    return SweepResults(
        folder=path,
        metric=told["metric"],
        paper=told["paper"],
        reference=tuple(reference) if reference else None,
        planned=told["seeds"],
        rows=rows,
        steps_to=told.get("steps_to", ""),
    )


def interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Mean and Student's interval t sd / sqrt(n) over the seeds; sd with ddof 1.

    Example:
      >>> interval([1.0, 2.0, 3.0])  # t = 4.303 for 2 degrees of freedom
      (2.0, -0.484, 4.484)
      >>> interval([1.0]), interval([2.0, 2.0])  # no spread to go by
      ((1.0, None, None), (2.0, None, None))
    """
    data = np.asarray(values, np.float64)
    mean = float(data.mean())
    if len(data) < 2 or np.ptp(data) == 0:
        return mean, None, None
    error = data.std(ddof=1) / np.sqrt(len(data))
    half = float(special.stdtrit(len(data) - 1, 0.5 + level / 2) * error)
    return mean, round(mean - half, 3), round(mean + half, 3)


def difference(left: dict[int, float], right: dict[int, float]) -> Interval | None:
    """right - left over the seeds that both have; the seeds pair the runs."""
    shared = sorted(left.keys() & right.keys())
    return interval([right[s] - left[s] for s in shared]) if shared else None


def table_rows(results: SweepResults) -> list[dict[str, Any]]:
    """The table as JSON values: name, mean, low, high, seeds, paper and more.

    "change" is against the row before, paired by seed; "gain" against the start.
    "steps_to" is there where the sweep asks for it, None for a row that never got
    there.
    """
    found, previous = [], None
    level = _level(results)
    for row in results.rows:
        values = [row.after[seed] for seed in row.seeds]
        mean, low, high = interval(values) if values else (None, None, None)
        change = difference(previous.after, row.after) if previous else None
        found.append(
            {
                "name": row.name,
                "mean": mean,
                "low": low,
                "high": high,
                "seeds": len(row.seeds),
                "paper": row.paper,
                "values": values,
                "change": change,
                "gain": difference(row.before, row.after),
                "watched": row.watched,
            }
            | ({} if level is None else {"steps_to": _reached(row, results, level)})
        )
        previous = row
    if results.reference:
        name, figure = results.reference
        empty = dict.fromkeys(("mean", "low", "high", "change", "gain"))
        found.append(
            {"name": name, **empty, "seeds": 0, "values": [], "watched": {}}
            | {"paper": figure}
        )
    return found


def markdown(results: SweepResults) -> str:
    """The table in Markdown."""
    headings, lines = table_cells(results)
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(
        "| " + " | ".join(cells).replace("\n", " ") + " |"
        for cells in (headings, rule, *lines)
    )


def notes(results: SweepResults) -> list[str]:
    """What the figures are, for below the table."""
    planned = len(results.planned) * len(results.rows)
    done = sum(len(row.seeds) for row in results.rows)
    said = [
        f"Ours: {results.metric} on held-out problems after training, in percent, mean "
        "and 95 % Student interval over seeds; change: against the row above, paired "
        "by seed."
    ]
    if results.paper:
        said.append(f"Paper: {results.paper}.")
    if _level(results) is not None:
        said.append(
            f"Steps: the first evaluation at which a row's mean over seeds is at the "
            f"final score of {results.steps_to}."
        )
    if done < planned:
        said.append(f"{planned - done} of {planned} cells are not finished.")
    return said


def _row(told: dict[str, Any], runs: dict[int, Run], sweep: dict[str, Any]) -> SweepRow:
    scale = 100 if catalog.unit_of(sweep["metric"]) == "share" else 1
    before, after, behaviour = {}, {}, {}
    for seed, run in runs.items():
        scores = evaluations.scores(run)
        for when, into in (("before", before), ("after", after)):
            if sweep["metric"] in scores.get(when, {}):
                into[seed] = scale * scores[when][sweep["metric"]][0]
        if sweep["behaviour"] and run.completions:
            behaviour[seed] = _shares(run, re.compile(sweep["behaviour"]))
    watched = {}
    for name in sweep["watched"]:
        means = [
            float(np.nanmean(run.metrics[name].values))
            for run in runs.values()
            if name in run.metrics
        ]
        if means:
            watched[name] = interval(means)
    return SweepRow(
        name=told["name"],
        role=told["role"],
        paper=told["paper"],
        seeds=sorted(after),
        before=before,
        after=after,
        behaviour=behaviour,
        watched=watched,
        runs=list(runs.values()),
    )


def _level(results: SweepResults) -> float | None:
    """The final score, in the metric's own unit, that rows are timed against."""
    for row in results.rows:
        if row.name == results.steps_to:
            curve = _curve(row, results.metric)
            return None if curve is None else float(curve.values[-1])
    return None  # None asked for, or that row was not run.


def _reached(row: SweepRow, results: SweepResults, level: float) -> float | None:
    curve = _curve(row, results.metric)
    return None if curve is None else steps_to(curve.steps, curve.values, level)


def _curve(row: SweepRow, metric: str) -> Series | None:
    """The metric over the steps at which all of a row's runs were evaluated."""
    if not row.runs:
        return None
    return mean_run(row).metrics.get(f"evaluation/{metric}")


def _shares(run: Run, pattern: re.Pattern) -> tuple[float, float]:
    """Shares of completions with the pattern, first and last logged step, percent."""
    steps = sorted({row["step"] for row in run.completions})
    shares = []
    for step in (steps[0], steps[-1]):
        texts = [r["completion"] for r in run.completions if r["step"] == step]
        shares.append(100 * sum(bool(pattern.search(t)) for t in texts) / len(texts))
    return shares[0], shares[1]


def table_cells(results: SweepResults) -> tuple[list[str], list[list[str]]]:
    """Headings and lines of the table, as text."""
    watched = list(dict.fromkeys(n for row in results.rows for n in row.watched))
    papers = any(row.paper is not None for row in results.rows) or results.reference
    headings = ["row", results.metric, "95 %", *(["paper"] if papers else [])]
    headings += ["seeds", "change", "from start"]
    rows = table_rows(results)
    timed = any("steps_to" in row for row in rows)
    headings += [f"steps to {results.steps_to}"] if timed else []
    headings += map(_heading, watched)
    lines = []
    for row in rows:
        ends = _ends(row["low"], row["high"])
        line = [row["name"], _number(row["mean"]), ends]
        if papers:
            line.append("" if row["paper"] is None else f"{row['paper']:g}")
        line.append(str(row["seeds"]) if row["seeds"] else "")
        line += [_signed(row["change"]), _signed(row["gain"])]
        if timed:
            steps = row.get("steps_to")
            line.append("" if steps is None else f"{steps:g}")
        for name in watched:
            value = row["watched"].get(name)
            line.append("" if value is None else _shown(name, value[0]))
        lines.append(line)
    return headings, lines


def _heading(name: str) -> str:
    """For "completion/truncated_share": "completion truncated"."""
    for ending in ("_share", "_mean", "/mean"):
        name = name.removesuffix(ending)
    return name.replace("/", " ").replace("_", " ")


def _shown(name: str, value: float) -> str:
    return catalog.shown(value, catalog.unit_of(name)).replace(" tokens", "")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.1f}, {high:.1f}]"


def _signed(value: Interval | None) -> str:
    if value is None:
        return ""
    mean, low, high = value
    ends = "" if low is None or high is None else f" [{low:+.1f}, {high:+.1f}]"
    return f"{mean:+.1f}{ends}"


def mean_run(row: SweepRow) -> Run:
    """A run whose metrics are the means over the row's seeds, where all have them."""
    names = set.intersection(*(set(run.metrics) for run in row.runs))
    metrics = {}
    for name in sorted(names):
        series = [run.metrics[name] for run in row.runs]
        steps = sorted(set.intersection(*(set(one.steps.tolist()) for one in series)))
        if not steps:
            continue
        values = [one.values[np.isin(one.steps, steps)] for one in series]
        metrics[name] = Series(np.array(steps, np.int64), np.mean(values, axis=0))
    return dataclasses.replace(row.runs[0], name=row.name, metrics=metrics)
