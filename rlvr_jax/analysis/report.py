"""The HTML report of one or several runs: `write_report`, `summary_row`."""

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis import charts, checks, evaluations, gallery, overview, page
from rlvr_jax.analysis.runs import Run, load_run


def write_report(
    run_dirs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
) -> pathlib.Path:
    """Writes one self-contained HTML page about the runs.

    Args:
      run_dirs: run folders, finished or not. With several, every curve is overlaid
        and the settings that differ are listed.
      output: the file to write; by default run_dir/report.html for one run, and
        comparison.html in the folder that holds all of several runs.

    Returns:
      The file written.

    Raises:
      ValueError: a folder has no readable metrics.jsonl, or another file of it is
        damaged; the message names the file.
    """
    runs = [load_run(run_dir) for run_dir in run_dirs]
    if not runs:
        raise ValueError("write_report: needs at least one run folder, got none")
    paths = [run.path.resolve() for run in runs]
    shared = pathlib.Path(os.path.commonpath([path.parent for path in paths]))
    if len({run.name for run in runs}) < len(runs):
        runs = [
            dataclasses.replace(run, name=str(path.relative_to(shared)))
            for run, path in zip(runs, paths, strict=True)
        ]
    if output is None:
        one = len(runs) == 1
        output = paths[0] / "report.html" if one else shared / "comparison.html"
    path = pathlib.Path(output)
    title = ", ".join(run.name for run in runs)
    path.write_text(page.document(title, _body(runs)), encoding="utf-8")
    return path


def summary_row(run: Run) -> dict[str, Any]:
    """What one line of a table of runs holds; JSON values only.

    "last" has the mean of each metric over its last tenth, evaluations left out.
    """
    last = {
        name: series.last()
        for name, series in run.metrics.items()
        if not name.startswith("evaluation/")
    }
    return {
        "run": run.name,
        "run_dir": str(run.path),
        "finished": run.finished,
        "steps": run.steps,
        "seconds": run.seconds,
        "objective": run.setting("objective.name"),
        "model": run.setting("model.path"),
        "train": run.setting("data.train"),
        "seed": run.setting("seed"),
        "commit": run.versions.get("commit"),
        "eval": {
            when: {
                name: [_or_none(part) for part in score] for name, score in some.items()
            }
            for when, some in evaluations.scores(run).items()
        },
        "last": {name: _or_none(value) for name, value in last.items()},
    }


def _body(runs: Sequence[Run]) -> list[str]:
    if len(runs) == 1:
        run = runs[0]
        parts = [overview.header(run), overview.tiles(run), overview.warnings(runs)]
    else:
        parts = [f"<h1>{len(runs)} runs</h1>", overview.run_table(runs)]
        parts += [overview.warnings(runs), overview.differing_settings(runs)]
    parts += [evaluations.section(runs), charts.sections(runs)]
    for run in runs:
        if len(runs) > 1:
            name = f'<h1 class="next">{page.escaped(run.name)}</h1>'
            parts.append(name + overview.facts(run))
        parts += [checks.section(run), gallery.gallery(run.completions)]
        parts.append(overview.settings_table(run))
    return [part for part in parts if part]


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None
