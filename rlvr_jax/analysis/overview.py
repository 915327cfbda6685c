"""The head and foot of a report: what the runs were and how they ended."""

import datetime
import pathlib
from collections.abc import Sequence

import numpy as np

from rlvr_jax import config as settings
from rlvr_jax.analysis import catalog, evaluations, page, plots, svg, text
from rlvr_jax.analysis.runs import Run, flatten

TILES = (
    ("Reward", "reward/mean", ""),
    ("Pass rate", "pass_rate/mean", "share"),
    ("Entropy", "entropy/mean", "nats"),
    ("Length", "completion/length_mean", "tokens"),
    ("Time per step", "time/step_s", "s"),
    ("Speed", "speed/tokens_per_s", "tokens/s"),
)


def header(run: Run) -> str:
    """Name, objective, model and task of the run, then `facts`."""
    parts = (run.setting("objective.name"), model_name(run), run.setting("data.train"))
    line = " · ".join(str(part) for part in parts if part)
    return (
        f"<header><h1>{page.escaped(run.name)}</h1>"
        f'<p class="soft">{page.escaped(line)}</p>{facts(run)}</header>'
    )


def facts(run: Run) -> str:
    """When, how long, with which batch, seed, commit and versions."""
    started = ""
    if run.started is not None:
        utc = run.started.astimezone(datetime.UTC)
        started = utc.strftime("%Y-%m-%d %H:%M UTC")
    planned = run.setting("steps")
    steps = f"{run.steps}" if planned is None else f"{run.steps} of {planned}"
    lasted = "" if run.seconds is None else text.duration(run.seconds)
    if not run.finished:
        lasted += " so far (not finished)"
    pairs = [("Started", started), ("Duration", lasted), ("Steps", steps)]
    pairs.append(("Seed", str(run.setting("seed", ""))))
    prompts = run.setting("batch.prompts_per_step")
    generations = run.setting("rollout.num_generations")
    if prompts and generations:
        pairs.append(("Batch", f"{prompts} prompts, {generations} completions each"))
    versions = flatten(run.versions)
    command = str(versions.pop("command", ""))
    pairs.append(("Commit", str(versions.pop("commit", ""))[:12]))
    pairs += [(str(key), str(value)) for key, value in versions.items()]
    line = f"<pre>{page.escaped(command)}</pre>" if command else ""
    return page.facts(pairs) + line


def model_name(run: Run) -> str:
    """The model in a few words: the last part of its path, or a new decoder's size."""
    path = run.setting("model.path")
    if path:
        return pathlib.PurePath(path).name
    layers, width = run.setting("model.num_layers"), run.setting("model.hidden_size")
    return f"new decoder, {layers} layers, width {width}" if layers else ""


def tiles(run: Run) -> str:
    """The few figures to see first."""
    shown = []
    score = evaluations.scores(run)
    before, after = score.get("before", {}), score.get("after", {})
    for name in ("pass@1", "pass@8"):
        if name in before and name in after:
            value = f"{100 * before[name][0]:.1f} → {100 * after[name][0]:.1f} %"
            shown.append((f"Held-out {name}", value, "before and after training"))
    for label, metric, unit in TILES:
        if metric in run.metrics:
            value = catalog.shown(run.metrics[metric].last(), unit)
            shown.append((label, value, "mean of the last tenth of the steps"))
    cards = []
    for label, value, note in shown:
        number, _, unit = value.rpartition(" ")
        number, unit = (number, unit) if number else (unit, "")
        cards.append(
            f'<div class="card tile"><span class="small soft">{label}</span>'
            f'<b>{number} <span class="unit">{unit}</span></b>'
            f'<span class="small soft">{note}</span></div>'
        )
    return f'<div class="tiles">{"".join(cards)}</div>' if cards else ""


def warnings(runs: Sequence[Run]) -> str:
    """Values that are not finite and updates that were skipped, or ""."""
    found = []
    for run in runs:
        of = f"{run.name}: " if len(runs) > 1 else ""
        for name, series in run.metrics.items():
            bad = series.steps[~np.isfinite(series.values)]
            if len(bad):
                times = f"{len(bad)} steps" if len(bad) > 1 else "one step"
                found.append(f"{of}{name} is not finite at {times}, first {bad[0]}")
        skipped = run.metrics.get("optimizer/skipped")
        if skipped is not None and np.nansum(skipped.values) > 0:
            at = skipped.steps[skipped.values > 0]
            times = f"{len(at)} steps" if len(at) > 1 else "one step"
            found.append(f"{of}updates were skipped at {times}, first {at[0]}")
    if not found:
        return ""
    items = "".join(f"<li>{page.escaped(line)}</li>" for line in found)
    return f'<div class="card warnings"><b>Look at this first</b><ul>{items}</ul></div>'


def run_table(runs: Sequence[Run]) -> str:
    """One row per run, with the colour that its curves have."""
    headings = ["run", "objective", "model", "steps", "duration"]
    headings += [label.lower() for label, _, _ in TILES]
    rows = []
    for run, color in zip(runs, plots.run_colors(len(runs)), strict=True):
        key = page.legend([(svg.variable(color), run.name, "", 1)])
        row = [key, page.escaped(run.setting("objective.name", ""))]
        row += [page.escaped(model_name(run)), f"{run.steps:,}"]
        row.append("" if run.seconds is None else text.duration(run.seconds))
        for _, metric, unit in TILES:
            series = run.metrics.get(metric)
            row.append("" if series is None else catalog.shown(series.last(), unit))
        rows.append(row)
    note = '<p class="small soft">Metrics: mean of the last tenth of the steps.</p>'
    return f'<div class="card">{page.table(headings, rows, numbers=3)}{note}</div>'


def differing_settings(runs: Sequence[Run]) -> str:
    """The settings in which the runs differ, run_dir left out."""
    flat = [flatten(run.config) for run in runs]
    names = dict.fromkeys(name for one in flat for name in one if name != "run_dir")
    rows = [
        [f"<code>{page.escaped(name)}</code>"]
        + [_setting(one.get(name, "-")) for one in flat]
        for name in names
        if len({repr(one.get(name)) for one in flat}) > 1
    ]
    if not rows:
        return ""
    headings = ["setting", *(page.escaped(run.name) for run in runs)]
    table = page.table(headings, rows, numbers=len(headings))
    return f'<h2>Settings that differ</h2><div class="card">{table}</div>'


def settings_table(run: Run) -> str:
    """All resolved settings, folded; those that are not the default stand out."""
    if not run.config:
        return ""
    defaults = flatten(settings.to_dict(settings.Config()))
    rows = []
    for name, value in flatten(run.config).items():
        changed = name not in defaults or defaults[name] != value
        shown = _setting(value)
        default = _setting(defaults.get(name, "-"))
        cells = [f"<code>{page.escaped(name)}</code>", shown, ""]
        if changed:
            cells[1], cells[2] = f"<b>{shown}</b>", default
        rows.append(cells)
    table = page.table(["setting", "value", "default, where it differs"], rows, 3)
    return (
        '<h2>Settings</h2><details class="card"><summary>All '
        f"{len(rows)} resolved settings</summary>{table}</details>"
    )


def _setting(value: object) -> str:
    """A value as code; an empty text shows its quotes."""
    return f"<code>{page.escaped(value if value != '' else repr(value))}</code>"
