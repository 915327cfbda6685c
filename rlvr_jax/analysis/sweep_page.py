"""The page of a sweep: its table, and every curve as the mean over a row's seeds."""

import os
import pathlib
from collections.abc import Sequence

from rlvr_jax.analysis import catalog, charts, page, plots, svg
from rlvr_jax.analysis.sweeps import (
    Interval,
    SweepResults,
    interval,
    mean_run,
    notes,
    table_cells,
)


def write_sweep_report(
    results: SweepResults,
    output: str | os.PathLike[str] | None = None,
    extra: Sequence[str] = (),
) -> pathlib.Path:
    """Writes the table and every curve, each the mean over a row's seeds, as HTML.

    Args:
      results: of `load_sweep`.
      output: the file; by default report.html in the sweep's folder.
      extra: more HTML, between table and curves.
    """
    path = pathlib.Path(output or results.folder / "report.html")
    headings, lines = table_cells(results)
    escaped = [[page.escaped(cell) for cell in line] for line in lines]
    below = "".join(
        f'<p class="small soft">{page.escaped(note)}</p>' for note in notes(results)
    )
    title = results.folder.resolve().name
    body = [
        f"<h1>{page.escaped(title)}</h1>",
        f'<div class="card">{page.table(headings, escaped, numbers=1)}{below}</div>',
        _points(results),
        *extra,
    ]
    means = [mean_run(row) for row in results.rows if row.runs]
    if means:
        body.append(
            '<p class="small soft">Curves are means over the seeds of a row.</p>'
            + charts.sections(means)
        )
    path.write_text(page.document(title, body), encoding="utf-8")
    return path


def _points(results: SweepResults) -> str:
    """Every row's figure as a point with its interval, before and after training."""
    if catalog.unit_of(results.metric) != "share":
        return ""
    points = []
    for row in results.rows:
        if row.seeds and row.before:
            pair = {
                when: [end / 100 for end in _whole(interval(list(values.values())))]
                for when, values in (("before", row.before), ("after", row.after))
            }
            points.append((row.name, pair))
    if not points:
        return ""
    keys = page.legend(
        (svg.variable(color), label, "", 1)
        for color, label in ((svg.MUTED, "before"), (svg.SERIES_COLORS[0], "after"))
    )
    card = f'<div class="card chart">{keys}{plots.intervals_svg(points)}</div>'
    return f'<div class="charts">{card}</div>'


def _whole(value: Interval) -> tuple[float, float, float]:
    mean, low, high = value
    return mean, mean if low is None else low, mean if high is None else high
