"""The charts of a report, each returned as an <svg> element."""

from collections.abc import Mapping, Sequence

import matplotlib
import matplotlib.axes
import matplotlib.ticker
import numpy as np

from rlvr_jax.analysis import catalog, svg
from rlvr_jax.analysis.runs import Run, Series

LINE_STYLES = ("-", "--", ":", "-.")
MAX_POINTS = 400
"""A longer series is drawn as the mean and range of this many stretches."""


def colors_of(labels: Sequence[str]) -> list[str]:
    """A colour per legend label; "correct" and "wrong" keep theirs everywhere."""
    free = [c for c in svg.SERIES_COLORS if c not in svg.LABEL_COLORS.values()]
    others = [label for label in labels if label not in svg.LABEL_COLORS]
    order = dict(zip(others, free * len(others), strict=False))
    return [svg.LABEL_COLORS.get(label) or order[label] for label in labels]


def chart_svg(chart: catalog.Chart, runs: Sequence[Run]) -> str:
    """One chart of one or several runs.

    With one run a colour is a metric; with several a colour is a run and a line
    style a metric. Series of 40 steps and more get their moving mean on top.
    """
    with matplotlib.rc_context(svg.STYLE):
        figure, axes = svg.new_axes()
        if len(runs) == 1 and chart.stacked:
            _stack(axes, chart, runs[0].metrics)
        else:
            _lines(axes, chart, runs)
        svg.finish(axes, chart.unit, log=chart.log)
        if chart.unit == "s":
            _leave_compiling_out(axes, chart, runs)
        return svg.inline(figure, chart.title)


def evaluation_svg(k: str, runs: Sequence[Run]) -> str:
    """An evaluated score over the steps, its 95 % interval as a band."""
    name = f"evaluation/{k}"
    with matplotlib.rc_context(svg.STYLE):
        figure, axes = svg.new_axes()
        for run, color in zip(runs, run_colors(len(runs)), strict=True):
            if name not in run.metrics:
                continue
            series = run.metrics[name]
            axes.plot(series.steps, series.values, color=color, marker="o", ms=3)
            low, high = (run.metrics.get(f"{name}_{end}") for end in ("low", "high"))
            if low is not None and high is not None:
                axes.fill_between(
                    low.steps, low.values, high.values, color=color, alpha=0.15, lw=0
                )
        svg.finish(axes, "share")
        return svg.inline(figure, f"{k} over the steps")


def intervals_svg(rows: Sequence[tuple[str, Mapping[str, Sequence[float]]]]) -> str:
    """Scores as points with intervals, one row per (label, {"before", "after"})."""
    with matplotlib.rc_context(svg.STYLE):
        figure, axes = svg.new_axes(0.55 + 0.38 * len(rows), long_labels=True)
        for number, (_, scores) in enumerate(rows):
            for when, offset, color in (
                ("before", -0.14, svg.MUTED),
                ("after", 0.14, svg.SERIES_COLORS[0]),
            ):
                if when in scores:
                    mean, low, high = scores[when]
                    at = number + offset
                    axes.plot([low, high], [at, at], color=color, lw=2)
                    axes.plot([mean], [at], color=color, marker="o", ms=5)
        axes.set_yticks(
            range(len(rows)),
            [label for label, _ in rows],
            color=svg.INK,
            parse_math=False,
        )
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(svg.percent)
        axes.tick_params(labelsize=7.5)
        return svg.inline(figure, "Evaluation before and after, 95 % intervals")


def histogram_svg(early: Sequence[float], late: Sequence[float]) -> str:
    """Shares of groups by number of correct completions, early and late in a run."""
    with matplotlib.rc_context(svg.STYLE):
        figure, axes = svg.new_axes()
        at = np.arange(len(early))
        axes.bar(at - 0.2, early, 0.36, color=svg.MUTED)
        axes.bar(at + 0.2, late, 0.36, color=svg.SERIES_COLORS[0])
        axes.set_xlabel("correct completions in the group")
        axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(9, integer=True))
        axes.grid(False, axis="x")
        axes.yaxis.set_major_formatter(svg.percent)
        return svg.inline(figure, "Groups by number of correct completions")


def run_colors(count: int) -> list[str]:
    """A colour per run; they repeat after the last."""
    return [
        svg.SERIES_COLORS[number % len(svg.SERIES_COLORS)] for number in range(count)
    ]


def smoothed(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Centred moving mean of the finite values, and its width in records.

    The width is a twentieth of the series, at least 3; below 40 records it is 1,
    and the values come back as they are.

    Example:
      >>> means, width = smoothed(np.arange(60.0))
      >>> print(width, means[0], means[30], means[59])
      3 0.5 30.0 58.5
    """
    if len(values) < 40:
        return values, 1
    half = max(1, len(values) // 40)
    kernel = np.ones(2 * half + 1)
    finite = np.isfinite(values)
    sums = np.convolve(np.where(finite, values, 0.0), kernel, "same")
    counts = np.convolve(finite.astype(float), kernel, "same")
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), len(kernel)


def _lines(axes: matplotlib.axes.Axes, chart: catalog.Chart, runs: Sequence[Run]):
    labels = [label for _, label in chart.metrics]
    by_run, by_metric = run_colors(len(runs)), colors_of(labels)
    for run, run_color in zip(runs, by_run, strict=True):
        for number, (metric, _) in enumerate(chart.metrics):
            if metric in run.metrics:
                alone = len(runs) == 1
                color = by_metric[number] if alone else run_color
                style = "-" if alone else LINE_STYLES[number % len(LINE_STYLES)]
                _line(axes, run.metrics[metric], color, style)


def _line(
    axes: matplotlib.axes.Axes, series: Series, color: str, style: str = "-"
) -> None:
    steps, values = (
        series.steps,
        np.where(np.isfinite(series.values), series.values, np.nan),
    )
    means, width = smoothed(values)
    if len(steps) <= MAX_POINTS:
        marker = "o" if len(steps) <= 12 else ""
        if width == 1:
            axes.plot(steps, values, style, color=color, lw=1.4, marker=marker, ms=2.5)
            return
        axes.plot(steps, values, color=color, lw=0.6, alpha=0.35)
        axes.plot(steps, means, style, color=color, lw=1.5)
        return
    parts = np.array_split(np.arange(len(steps)), MAX_POINTS)
    at = np.array([steps[part].mean() for part in parts])
    masked = np.ma.masked_invalid(values)
    low = np.ma.array([masked[part].min() for part in parts])
    high = np.ma.array([masked[part].max() for part in parts])
    axes.fill_between(at, low, high, color=color, alpha=0.2, lw=0)
    middle = np.array([means[part[len(part) // 2]] for part in parts])
    axes.plot(at, middle, style, color=color, lw=1.5)


def _leave_compiling_out(
    axes: matplotlib.axes.Axes, chart: catalog.Chart, runs: Sequence[Run]
) -> None:
    """Ends the axis above the usual times where a few are far longer."""
    names = [chart.whole[0]] if chart.whole else [name for name, _ in chart.lines]
    found = [
        run.metrics[name].values
        for run in runs
        for name in names
        if name in run.metrics
    ]
    values = np.concatenate([np.zeros(1), *found])
    values = values[np.isfinite(values)]
    usual = 1.5 * float(np.quantile(values, 0.9))
    if 0 < usual < values.max():
        axes.set_ylim(0, usual)


def _stack(
    axes: matplotlib.axes.Axes, chart: catalog.Chart, metrics: Mapping[str, Series]
) -> None:
    labels = [label for _, label in chart.metrics]
    colors = dict(zip(labels, colors_of(labels), strict=True))
    present = [(name, label) for name, label in chart.lines if name in metrics]
    if present:
        steps = np.unique(np.concatenate([metrics[name].steps for name, _ in present]))
        parts = np.zeros((len(present), len(steps)))
        for row, (name, _) in zip(parts, present, strict=True):
            values, _ = smoothed(metrics[name].values)
            row[np.searchsorted(steps, metrics[name].steps)] = np.nan_to_num(
                values, posinf=0.0, neginf=0.0
            )
        axes.stackplot(
            steps,
            parts,
            colors=[colors[label] for _, label in present],
            alpha=0.75,
            lw=0,
        )
    if chart.whole is not None and chart.whole[0] in metrics:
        _line(axes, metrics[chart.whole[0]], colors[chart.whole[1]])
