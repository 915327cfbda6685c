"""Reads back a run folder: what `rlvr_jax/train/metrics.py` and the loop wrote."""

import dataclasses
import datetime
import json
import os
import pathlib
from typing import Any

import numpy as np

from rlvr_jax.analysis import catalog


@dataclasses.dataclass(frozen=True)
class Series:
    """One metric over a run, in the order of its steps."""

    steps: np.ndarray
    """[N] int64, rising."""
    values: np.ndarray
    """[N] float64; NaN and infinities as the run wrote them."""

    def last(self, share: float = 0.1) -> float:
        """Mean of the finite values in the last `share` of the records, at least one.

        Example:
          >>> float(Series(np.arange(20), np.arange(20.0)).last())
          18.5
        """
        finite = self.values[np.isfinite(self.values)]
        if not len(finite):
            return float("nan")
        return float(finite[-max(1, round(share * len(finite))) :].mean())


@dataclasses.dataclass(frozen=True)
class Run:
    """A run folder; parts that the run has not written (yet) are empty."""

    name: str
    """In headings and legends: the folder's name."""
    path: pathlib.Path
    metrics: dict[str, Series]
    config: dict[str, Any]
    """The resolved settings (config.json)."""
    versions: dict[str, Any]
    """Commit and package versions (versions.json)."""
    summary: dict[str, Any]
    """Seconds and evaluations (summary.json); empty until the run has stopped."""
    completions: list[dict[str, Any]]
    started: datetime.datetime | None
    seconds: float | None
    """By the run's own count if it has stopped, else from first to last record."""

    @property
    def finished(self) -> bool:
        """Whether all steps were done, rather than stopped before or still running."""
        return bool(self.summary.get("finished", self.summary))

    @property
    def steps(self) -> int:
        """Training steps recorded: evaluations alone do not make one."""
        last = [
            int(series.steps[-1])
            for name, series in self.metrics.items()
            if not name.startswith("evaluation/")
        ]
        return max(last) + 1 if last else 0

    def setting(self, dotted: str, default: Any = None) -> Any:
        """A setting by its dotted name, as "objective.epsilon_high"."""
        value: Any = self.config
        for part in dotted.split("."):
            if not isinstance(value, dict) or part not in value:
                return default
            value = value[part]
        return value


def load_run(run_dir: str | os.PathLike[str]) -> Run:
    """Reads a run folder, finished or still being written.

    Args:
      run_dir: the `run_dir` of a training run. metrics.jsonl must be there; a
        half-written last line, as a killed run leaves it, is passed over.

    Raises:
      ValueError: metrics.jsonl is missing, empty or damaged, or another file of the
        folder is not what it should be; the message names the file and the line.
    """
    path = pathlib.Path(run_dir)
    file = path / "metrics.jsonl"
    if not file.is_file():
        kind = "has no metrics.jsonl" if path.is_dir() else "is not a folder"
        raise ValueError(f"load_run: {path} {kind}; give the run_dir of a training run")
    records = _read_lines(file)
    if not records:
        raise ValueError(
            f"load_run: {file} holds no records; the run stopped before its first step"
        )
    summary = _read_object(path / "summary.json")
    times = [_time(record.get("time")) for record in records]
    known = [time for time in times if time is not None]
    seconds = summary.get("seconds")
    if seconds is None and known:
        seconds = (known[-1] - known[0]).total_seconds()
    return Run(
        name=path.resolve().name,
        path=path,
        metrics=_series(records, file),
        config=_read_object(path / "config.json"),
        versions=_read_object(path / "versions.json"),
        summary=summary,
        completions=_read_lines(path / "completions.jsonl"),
        started=known[0] if known else None,
        seconds=None if seconds is None else float(seconds),
    )


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted name -> leaf of nested settings.

    Example:
      >>> flatten({"seed": 0, "model": {"path": ""}})
      {'seed': 0, 'model.path': ''}
    """
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found |= flatten(value, f"{name}.")
        else:
            found[name] = value
    return found


def _read_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    # Not splitlines(): it would also split at characters inside a text.
    lines = path.read_bytes().split(b"\n")
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            record["step"] = int(record["step"])
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines):
                break  # No line end: the process was killed while it wrote this one.
            raise ValueError(
                f"load_run: {path} line {number} is not a JSON record with a step "
                f"({type(error).__name__}: {error}); remove the line and try again"
            ) from None
        records.append(record)
    return records


def _read_object(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"load_run: {path} is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(
            f"load_run: {path} needs a JSON object, got {type(value).__name__}"
        )
    return value


def _series(records: list[dict[str, Any]], file: pathlib.Path) -> dict[str, Series]:
    """Metric -> series. Lines of one step are merged; the last value counts."""
    merged: dict[str, dict[int, float]] = {}
    for record in records:
        for name, value in record.items():
            if name in ("step", "time"):
                continue
            try:
                number = float("nan") if value is None else float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"load_run: {file} step {record['step']}: metric {name!r} needs a "
                    f"number, got {value!r}"
                ) from None
            if number != 0 or name not in catalog.ZERO_MEANS_NONE:
                merged.setdefault(name, {})[record["step"]] = number
    found = {}
    for name, by_step in merged.items():
        steps = sorted(by_step)
        found[name] = Series(
            np.array(steps, np.int64), np.array([by_step[step] for step in steps])
        )
    return found


def _time(text: Any) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
