"""Held-out scores of a run, and how a report shows them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis import catalog, page, plots, svg
from rlvr_jax.analysis.runs import Run

_ENDS = ("low", "high")
Score = tuple[float, float, float]
"""(mean, low, high) with a 95 % interval; low and high are NaN when there is none."""


def scores(run: Run) -> dict[str, dict[str, Score]]:
    """{"before": {metric: score}, "after": ...} of a run; what is missing is left out.

    summary.json counts first. What it lacks, as in a run that has not finished, comes
    from the metrics: "before" is the first evaluation, "after" the latest other one.
    """
    found = _recorded(run)
    written = run.summary.get("eval")
    for when, values in (written if isinstance(written, dict) else {}).items():
        if when in ("before", "after") and isinstance(values, dict):
            known = {name: _score(value) for name, value in values.items()}
            found[when] = {k: score for k, score in known.items() if score is not None}
    return {when: found[when] for when in ("before", "after") if found.get(when)}


def section(runs: Sequence[Run]) -> str:
    """Table and plots of all evaluations, or "" when no run has any."""
    several = len(runs) > 1
    rows, points = [], []
    for run in runs:
        score = scores(run)
        before, after = score.get("before", {}), score.get("after", {})
        for name in dict.fromkeys([*before, *after]):
            cells = [
                page.escaped(name),
                *_cells(before.get(name), after.get(name), catalog.unit_of(name)),
            ]
            rows.append([page.escaped(run.name), *cells] if several else cells)
            if name.startswith("pass@"):
                pair = {when: of[name] for when, of in score.items() if name in of}
                points.append((f"{run.name}  {name}" if several else name, pair))
    if not rows:
        return ""
    headings = ["score", "before", "after", "change", "95 % intervals"]
    if several:
        headings = ["run", *headings]
    table = page.table(headings, rows, numbers=len(headings) - 4)
    note = (
        '<p class="small soft">Mean and 95 % interval over the problems. '
        '"higher" and "lower": the two intervals lie apart.</p>'
    )
    heading = "<h2>Evaluation on held-out problems</h2>"
    card = f'<div class="card">{table}{note}</div>'
    plot, curves = _intervals(points), _curves(runs)
    if several:
        return f'{heading}{card}<div class="charts">{plot}{curves}</div>'
    below = f'<div class="charts">{curves}</div>' if curves else ""
    return f'{heading}<div class="two">{card}{plot}</div>{below}'


def histogram(run: Run) -> str:
    """Groups by number of correct completions, early and late, or ""."""
    found = {
        int(match.group(1)): series
        for name, series in run.metrics.items()
        if (match := catalog.HISTOGRAM.match(name))
    }
    if not found:
        return ""
    counts = range(max(found) + 1)
    tenth = max(1, max(len(series.steps) for series in found.values()) // 10)
    early, late = (
        [
            float(np.nanmean(found[count].values[part])) if count in found else 0.0
            for count in counts
        ]
        for part in (slice(None, tenth), slice(-tenth, None))
    )
    stretch = "step" if tenth == 1 else f"{tenth} steps"
    keys = _when_keys(f"first {stretch}", f"last {stretch}")
    drawn = plots.histogram_svg(early, late)
    return (
        '<div class="card chart"><h3>Pass-rate histogram <span class="unit">share of '
        f"groups</span></h3>{keys}{drawn}</div>"
    )


def _intervals(points: Sequence[tuple[str, dict[str, Score]]]) -> str:
    if not points:
        return ""
    keys = _when_keys("before", "after")
    return f'<div class="card chart">{keys}{plots.intervals_svg(points)}</div>'


def _when_keys(before: str, after: str) -> str:
    colors = (svg.MUTED, svg.SERIES_COLORS[0])
    pairs = zip(colors, (before, after), strict=True)
    return page.legend((svg.variable(color), label, "", 1) for color, label in pairs)


def _curves(runs: Sequence[Run]) -> str:
    """Scores over the steps, for runs that evaluated in between as well."""
    names = dict.fromkeys(
        name
        for run in runs
        for name in _evaluated(run)
        if name.startswith("pass@") and len(run.metrics[f"evaluation/{name}"].steps) > 2
    )
    keys = ""
    if len(runs) > 1:
        pairs = zip(runs, plots.run_colors(len(runs)), strict=True)
        keys = page.legend((svg.variable(c), run.name, "", 1) for run, c in pairs)
    return "".join(
        f'<div class="card chart"><h3>{page.escaped(name)} <span class="unit">band: '
        f"95 % interval</span></h3>{keys}{plots.evaluation_svg(name, runs)}</div>"
        for name in names
    )


def _recorded(run: Run) -> dict[str, dict[str, Score]]:
    found: dict[str, dict[str, Score]] = {}
    for name in _evaluated(run):
        series = run.metrics[f"evaluation/{name}"]
        places = {"before": 0} | ({"after": -1} if len(series.steps) > 1 else {})
        for when, place in places.items():
            step = int(series.steps[place])
            low, high = (_at(run, f"evaluation/{name}_{e}", step) for e in _ENDS)
            found.setdefault(when, {})[name] = (float(series.values[place]), low, high)
    return found


def _evaluated(run: Run) -> list[str]:
    names = [
        name.removeprefix("evaluation/")
        for name in run.metrics
        if name.startswith("evaluation/")
    ]
    ends = {f"{name}_{end}" for name in names for end in _ENDS}
    return [name for name in names if name not in ends]


def _score(value: Any) -> Score | None:
    try:
        if isinstance(value, list):
            mean, low, high = (float(part) for part in value)
            return mean, low, high
        return float(value), float("nan"), float("nan")
    except (TypeError, ValueError):
        return None  # Not a score: summary.json may hold more than scores.


def _at(run: Run, name: str, step: int) -> float:
    series = run.metrics.get(name)
    if series is None:
        return float("nan")
    place = np.flatnonzero(series.steps == step)
    return float(series.values[place[0]]) if len(place) else float("nan")


def _cells(before: Score | None, after: Score | None, unit: str) -> list[str]:
    cells = [_interval(before, unit), _interval(after, unit)]
    if before is None or after is None:
        return [*cells, "", ""]
    change = after[0] - before[0]
    if unit == "share":
        cells.append(f"{100 * change:+.1f} points")
    else:
        sign = "+" if change >= 0 else "-"
        cells.append(sign + page.escaped(catalog.shown(abs(change), unit)))
    if after[1] > before[2]:
        return [*cells, '<span class="good">higher</span>']
    if after[2] < before[1]:
        return [*cells, '<span class="bad">lower</span>']
    known = np.isfinite([*before, *after]).all()
    return [*cells, "overlap" if known else ""]


def _interval(score: Score | None, unit: str) -> str:
    if score is None:
        return "-"
    mean, low, high = score
    shown = f"<b>{page.escaped(catalog.shown(mean, unit))}</b>"
    if not np.isfinite([low, high]).all():
        return shown
    scale = 100 if unit == "share" else 1
    ends = f"[{scale * low:.1f}, {scale * high:.1f}]"
    return f'{shown} <span class="soft">{ends}</span>'
