"""What a sweep runs: rows of changed settings x seeds, as cells of flags.

A sweep file is a recipe with one more function, `get_sweep(config) -> Sweep`. All of
this is words: `launch/sweep.py` starts the processes, `rlvr_jax/analysis/sweeps.py`
reads the results.
"""

import dataclasses
import itertools
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rlvr_jax.config import Config, EvaluationConfig, ModelConfig, WarmupConfig
from rlvr_jax.ignored import NEW_MODEL

Settings = Mapping[str, Any]
"""Dotted names of settings and their values; what was read from a command line stays
text."""

IN_START = ("model.", "data.", "warmup.", "rollout.", "batch.")
"""Settings of all cells that also hold for their cold start."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: what differs from the base recipe."""

    name: str
    settings: Settings = dataclasses.field(default_factory=dict)
    paper: float | None = None
    """The published figure that stands beside ours, in percent."""
    role: str = ""
    """Which arm of the spurious-reward kit this is (analysis/hypotheses.py)."""

    @property
    def folder(self) -> str:
        """The name, as part of a path."""
        return re.sub(r"[^a-z0-9.=]+", "-", self.name.lower()).strip("-") or "row"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A base recipe's rows and seeds, and how the table reports them."""

    rows: Sequence[Row]
    seeds: Sequence[int] = (0,)
    metric: str = "pass@1"
    """Of the evaluation after training."""
    watched: Sequence[str] = ()
    """Metrics of the runs that the table has a column for: their mean over steps."""
    reference: tuple[str, float] | None = None
    """A published figure that no row stands for, and what it is."""
    paper: str = ""
    """What the published figures measure."""
    own_start: Sequence[str] = ("model.", "data.", "warmup.")
    """Settings that give a row a cold start of its own; rows that change none of them
    share one per seed."""
    start_settings: Settings = dataclasses.field(default_factory=dict)
    """What only the cold start has."""
    steps_to: str = ""
    """A row whose final score all rows are timed against: the table says at which step
    the mean over seeds of `metric` first reaches it, in evaluations during training;
    "" times none."""
    behaviour: str = ""
    """Regular expression of a way to answer whose share of the completions is
    counted, as "python" in the study of spurious rewards; "" counts none."""


class Cell(NamedTuple):
    """One run of `launch.train`."""

    name: str
    run_dir: pathlib.Path
    flags: tuple[str, ...]
    start: str = ""
    """Name of the cold start that has to be there before; "" for none."""


class Plan(NamedTuple):
    """All runs of a sweep: the cold starts that rows share, and the cells."""

    starts: dict[str, Cell]
    cells: list[Cell]


def plan(
    sweep: Sweep, base: Config, folder: pathlib.Path, common: Settings | None = None
) -> Plan:
    """The runs of a sweep, seed by seed, so that what is done first is a whole table.

    With a cold start in the base recipe it becomes a run of its own, 0 steps long,
    that exports the model; the cells begin from that.

    Args:
      sweep: rows and seeds.
      base: the recipe of all cells, before any change.
      folder: of the sweep; each run gets a folder below.
      common: settings of all cells.

    Raises:
      ValueError: no row, no seed, or two rows of the same name.
    """
    _check(sweep)
    shared = dict(common or {})
    starts: dict[str, Cell] = {}
    cells = []
    for seed, row in itertools.product(sweep.seeds, sweep.rows):
        settings = shared | dict(row.settings)
        name, start = f"{row.folder}/seed{seed}", ""
        if _has_cold_start(base, settings):
            own = {k: v for k, v in settings.items() if k.startswith(_own(sweep))}
            differs = any(shared.get(k) != v for k, v in own.items())
            start = f"start/{row.folder if differs else 'shared'}/seed{seed}"
            for_start = {k: v for k, v in shared.items() if k.startswith(IN_START)}
            for_start |= own | dict(sweep.start_settings)
            starts.setdefault(start, cold_start(for_start, seed, folder / start, start))
            settings = from_model(folder / start / "model", settings, base)
        flags = flags_of({"run_dir": folder / name, "seed": seed} | settings)
        cells.append(Cell(name, folder / name, flags, start))
    return Plan(starts, cells)


def crossed(rows: Iterable[Row], axes: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Every row with every combination of values.

    Example:
      >>> [row.name for row in crossed([Row("")], {"a.b": ["1", "2"], "c": ["x"]})]
      ['b=1 c=x', 'b=2 c=x']
    """
    found = []
    for row, values in itertools.product(rows, itertools.product(*axes.values())):
        chosen = dict(zip(axes, values, strict=True))
        words = [f"{name.rpartition('.')[2]}={value}" for name, value in chosen.items()]
        name = " ".join([row.name, *words]).strip()
        found.append(
            dataclasses.replace(row, name=name, settings={**row.settings, **chosen})
        )
    return found


def one_axis_rows(axes: Mapping[str, Sequence[Any]]) -> list[Row]:
    """The base, and a row for each value that changes one setting and no other.

    Example:
      >>> [row.name for row in one_axis_rows({"a.b": ["1", "2"], "c": ["x"]})]
      ['base', 'b=1', 'b=2', 'c=x']
    """
    single = (crossed([Row("")], {name: values}) for name, values in axes.items())
    return [Row("base"), *itertools.chain.from_iterable(single)]


def flags_of(settings: Settings) -> tuple[str, ...]:
    """Settings as `launch.train` takes them.

    Example:
      >>> flags_of({"data.shuffle": False, "mesh.shape": (2, 4, 1)})
      ('--config.data.shuffle=false', '--config.mesh.shape=(2, 4, 1)')
    """
    return tuple(
        f"--config.{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in settings.items()
    )


def description(sweep: Sweep, config: str, plan: Plan) -> dict[str, Any]:
    """What `sweep.json` holds: all that the report needs beside the run folders."""
    rows = [
        {
            "name": row.name,
            "folder": row.folder,
            "paper": row.paper,
            "role": row.role,
            "settings": {name: str(value) for name, value in row.settings.items()},
        }
        for row in sweep.rows
    ]
    return {
        "config": config,
        "rows": rows,
        "seeds": list(sweep.seeds),
        "metric": sweep.metric,
        "watched": list(sweep.watched),
        "reference": sweep.reference,
        "paper": sweep.paper,
        "steps_to": sweep.steps_to,
        "behaviour": sweep.behaviour,
        "flags": {
            cell.name: cell.flags for cell in [*plan.starts.values(), *plan.cells]
        },
    }


def check_unchanged(folder: pathlib.Path, described: dict[str, Any]) -> None:
    """Refuses to mix the runs of two sweeps in one folder.

    Raises:
      ValueError: a cell of the folder was begun with other flags.
    """
    path = folder / "sweep.json"
    if not path.is_file():
        return
    before = json.loads(path.read_text(encoding="utf8"))
    if before["config"] != described["config"]:
        raise ValueError(
            f"{folder} holds a sweep of {before['config']}, not of "
            f"{described['config']}; choose another --output"
        )
    for name, flags in described["flags"].items():
        old = before["flags"].get(name)
        if old is None or old == list(flags) or not (folder / name).exists():
            continue
        changed = sorted(set(flags) ^ set(old))
        raise ValueError(
            f"{folder / name} was begun with other settings ({', '.join(changed)}); "
            "choose another --output, or remove that folder"
        )


def _check(sweep: Sweep) -> None:
    if not sweep.rows or not sweep.seeds:
        raise ValueError("a sweep needs at least one row and one seed")
    folders = [row.folder for row in sweep.rows]
    twice = sorted({folder for folder in folders if folders.count(folder) > 1})
    if twice:
        raise ValueError(f"rows of a sweep need different names, got {twice} twice")
    if "start" in folders:
        raise ValueError("no row of a sweep may be named 'start'")


def _own(sweep: Sweep) -> tuple[str, ...]:
    return tuple(sweep.own_start)


def _has_cold_start(base: Config, settings: Settings) -> bool:
    path = settings.get("model.path", base.model.path)
    return not path and int(settings.get("warmup.steps", base.warmup.steps)) > 0


def cold_start(settings: Settings, seed: int, run_dir: pathlib.Path, name: str) -> Cell:
    """The run that does the cold start and nothing else."""
    # Nothing is evaluated, so that the base's evaluation settings would be refused.
    idle = dataclasses.asdict(EvaluationConfig()) | {"prompts": 0}
    flags = {
        "run_dir": run_dir,
        "seed": seed,
        "steps": 0,
        **settings,
        **{f"evaluation.{field}": value for field, value in idle.items()},
        "checkpoint.export": True,
        "logging.report": False,
    }
    return Cell(name, run_dir, flags_of(flags))


def from_model(
    model: pathlib.Path, settings: dict[str, Any], base: Config
) -> dict[str, Any]:
    """The settings of a cell that begins from an exported cold start."""
    shape = {f"model.{field}": getattr(ModelConfig(), field) for field in NEW_MODEL}
    warm = {
        f"warmup.{field}": value
        for field, value in dataclasses.asdict(WarmupConfig()).items()
    }
    # What only a cold start reads has its default, or the run would refuse it.
    unread = shape | warm
    rest = {name: value for name, value in settings.items() if name not in unread}
    changed = {
        name: value
        for name, value in unread.items()
        if getattr(getattr(base, name.partition(".")[0]), name.partition(".")[2])
        != value
    }
    return {**changed, "model.path": model, "warmup.steps": 0, **rest}
