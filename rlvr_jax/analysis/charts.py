"""The charts of a report, by section."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from rlvr_jax.analysis import catalog, evaluations, page, plots, svg
from rlvr_jax.analysis.runs import Run


def sections(runs: Sequence[Run]) -> str:
    """All charts that the runs have metrics for, under the headings of the catalog.

    A line that equals an earlier one of its chart is left out. A chart whose metrics
    are 0 at every step is only named, unless it is essential.
    """
    names = {name for run in runs for name in run.metrics}
    other = catalog.Section("Other", tuple(catalog.other_charts(names)))
    parts = []
    for section in (*catalog.SECTIONS, other):
        charts = [
            _distinct(chart, runs)
            for chart in section.charts
            if any(metric in names for metric, _ in chart.metrics)
        ]
        flat = [c for c in charts if not c.essential and _is_zero(c, runs)]
        cards = [_card(chart, runs) for chart in charts if chart not in flat]
        if section.title == "Learning" and len(runs) == 1:
            cards.append(evaluations.histogram(runs[0]))
        if not any(cards) and not flat:
            continue
        parts.append(f"<h2>{section.title}</h2>")
        if len(parts) == 1:
            parts.append(_reading_note(runs))
        if any(cards):
            parts.append(f'<div class="charts">{"".join(cards)}</div>')
        if flat:
            titles = page.escaped(", ".join(chart.title.lower() for chart in flat))
            parts.append(f'<p class="small soft below">0 at every step: {titles}.</p>')
    return "\n".join(parts)


def _distinct(chart: catalog.Chart, runs: Sequence[Run]) -> catalog.Chart:
    """The chart without lines that repeat an earlier one, as loss/policy often does."""
    if chart.stacked:
        return chart
    kept: list[tuple[str, str]] = []
    for metric, label in chart.lines:
        mine = [_key(run, metric) for run in runs]
        if not any(mine == [_key(run, other) for run in runs] for other, _ in kept):
            kept.append((metric, label))
    return dataclasses.replace(chart, lines=tuple(kept))


def _key(run: Run, metric: str) -> tuple[bytes, bytes] | str:
    series = run.metrics.get(metric)
    if series is None:
        return metric
    return series.steps.tobytes(), series.values.tobytes()


def _is_zero(chart: catalog.Chart, runs: Sequence[Run]) -> bool:
    return not any(
        metric in run.metrics and np.any(run.metrics[metric].values != 0)
        for run in runs
        for metric, _ in chart.metrics
    )


def _card(chart: catalog.Chart, runs: Sequence[Run]) -> str:
    heading = page.escaped(chart.title)
    if chart.unit not in ("", "share"):  # A share has % at its ticks.
        heading += f' <span class="unit">{page.escaped(chart.unit)}</span>'
    note = f'<p class="small soft">{page.escaped(chart.note)}</p>' if chart.note else ""
    keys = _metric_keys(chart, runs[0]) if len(runs) == 1 else _run_keys(chart, runs)
    return (
        f'<div class="card chart"><h3>{heading}</h3>{note}{page.legend(keys)}'
        f"{plots.chart_svg(chart, runs)}</div>"
    )


def _metric_keys(chart: catalog.Chart, run: Run) -> list[tuple[str, str, str, int]]:
    colors = plots.colors_of([label for _, label in chart.metrics])
    return [
        (
            svg.variable(color),
            label,
            catalog.shown(run.metrics[metric].last(), chart.unit),
            1,
        )
        for (metric, label), color in zip(chart.metrics, colors, strict=True)
        if metric in run.metrics
    ]


def _run_keys(
    chart: catalog.Chart, runs: Sequence[Run]
) -> list[tuple[str, str, str, int]]:
    colors = plots.run_colors(len(runs))
    keys = [
        (svg.variable(color), run.name, "", 1)
        for run, color in zip(runs, colors, strict=True)
    ]
    drawn = [
        (number, label)
        for number, (metric, label) in enumerate(chart.metrics)
        if any(metric in run.metrics for run in runs)
    ]
    if len(drawn) > 1:
        for number, label in drawn:
            style = number % len(plots.LINE_STYLES) + 1
            keys.append((svg.variable(svg.MUTED), label, "", style))
    return keys


def _reading_note(runs: Sequence[Run]) -> str:
    longest = max(len(series.steps) for run in runs for series in run.metrics.values())
    _, width = plots.smoothed(np.zeros(longest))
    notes = []
    if len(runs) == 1:
        notes.append("Figures beside the labels: mean of the last tenth of the steps.")
    if width > 1:
        notes.append(f"Strong lines: centred moving mean over {width} steps.")
    return f'<p class="small soft above">{" ".join(notes)}</p>' if notes else ""
