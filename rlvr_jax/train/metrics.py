"""What a run writes as it goes: metrics.jsonl, completions.jsonl, events, summary.json.

Each record is one line, appended by one `os.write`, so a killed run leaves at most
one half-written line; the next `RunWriter` on that folder cuts it off. The names,
formulas and units of the metrics are listed in docs/metrics.md.
"""

import datetime
import json
import math
import os
import pathlib
import time
from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat

import tensorboardX

from rlvr_jax.errors import UserError

RESERVED = ("step", "time")


class RunWriter:
    """Appends the records of a run; one process of a run writes.

    Args:
      run_dir: the run's folder; made if missing.
      tensorboard: also write TensorBoard events, under run_dir/events.
      resume_step: the first step that this process will write. Records of that step
        and later, left by a process that got further than its last checkpoint, are
        removed: they will be written again. 0 for a new run.
      writes: False on the processes whose records go nowhere, all but the first.

    Raises:
      UserError: a line in the middle of an existing file is not a JSON record.

    Example:
      >>> import tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> with RunWriter(folder, tensorboard=False, resume_step=0) as writer:
      ...     writer.metrics(0, {"reward/mean": 0.25, "loss/total": float("nan")})
      >>> record = json.loads((folder / "metrics.jsonl").read_text())
      >>> record["step"], record["reward/mean"], record["loss/total"]
      (0, 0.25, 'NaN')
    """

    def __init__(
        self,
        run_dir: str | os.PathLike[str],
        *,
        tensorboard: bool,
        resume_step: int,
        writes: bool = True,
    ) -> None:
        """Opens the files and removes what is about to be written again."""
        self._writes = writes
        if not writes:
            return
        folder = pathlib.Path(run_dir)
        folder.mkdir(parents=True, exist_ok=True)
        self._metrics = _LineFile(folder / "metrics.jsonl", resume_step)
        self._completions = _LineFile(folder / "completions.jsonl", resume_step)
        self._events = None
        if tensorboard:
            self._events = tensorboardX.SummaryWriter(
                str(folder / "events"),
                # TensorBoard drops what earlier files hold of these steps.
                purge_step=resume_step,
                max_queue=1000,
                flush_secs=1,
                # tensorboardX names files by the second: a quick restart would
                # overwrite the file of the process before it.
                filename_suffix=f".{time.time_ns()}",
            )

    def metrics(self, step: int, values: Mapping[str, SupportsFloat]) -> None:
        """Appends one line {"step", "time", name: value, ...} and the same as events.

        A step may be written more than once (training, then an evaluation); readers
        merge its lines. Values that are not finite become the strings "NaN",
        "Infinity" and "-Infinity", since JSON has no such numbers; `float` reads them
        back. Leave out a mean over nothing rather than writing NaN.

        Raises:
          ValueError: a metric is named "step" or "time", or is not a single number.
        """
        if not self._writes:
            return
        now = datetime.datetime.now(datetime.UTC)
        numbers = {name: _number(name, value) for name, value in values.items()}
        stamp = now.isoformat(timespec="milliseconds")
        self._metrics.append({"step": int(step), "time": stamp, **numbers})
        if self._events is not None:
            for name, number in numbers.items():
                if math.isfinite(number):
                    self._events.add_scalar(
                        # Tags allow no "@": pass@1 is pass_at_1 there.
                        name.replace("@", "_at_"),
                        number,
                        int(step),
                        walltime=now.timestamp(),
                    )

    def completions(self, step: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends one line {"step", **row} per sampled completion.

        The display and the report read, where present: prompt, completion, answer,
        reference, verdict, detail (texts), reward, advantage (numbers), tokens (int),
        truncated (bool). Other keys are kept.
        """
        for row in rows if self._writes else ():
            self._completions.append({**row, "step": int(step)})

    def close(self) -> None:
        """Flushes the events and closes the files; closing twice is harmless."""
        if not self._writes:
            return
        self._metrics.close()
        self._completions.close()
        if self._events is not None:
            self._events.close()
            self._events = None

    def __enter__(self) -> "RunWriter":
        """The writer itself; `close` is called at the end of the block."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Closes the writer."""
        self.close()


def write_summary(run_dir: str | os.PathLike[str], summary: Mapping[str, Any]) -> None:
    """Writes run_dir/summary.json: the whole file or, if killed, the one before it.

    The report reads `{"seconds": s, "eval": {"before": {"pass@1": [mean, low, high],
    "pass@8": [...]}, "after": {...}}}`; other keys are kept.
    """
    write_json(pathlib.Path(run_dir) / "summary.json", summary)


def write_json(path: str | os.PathLike[str], value: Mapping[str, Any]) -> None:
    """Replaces a JSON file in one move, so no reader ever sees half of it."""
    text = json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"
    _replace(pathlib.Path(path), text.encode())


def steps_recorded(path: pathlib.Path) -> int:
    """Steps that metrics.jsonl holds, complete lines alone; 0 without a file."""
    if not path.exists():
        return 0
    *lines, _ = path.read_bytes().split(b"\n")
    found = (_step_of(line, path, i) for i, line in enumerate(lines, 1) if line.strip())
    return 1 + max(found, default=-1)


class _LineFile:
    """A file of one JSON record per line, open for appending."""

    def __init__(self, path: pathlib.Path, resume_step: int) -> None:
        _cut(path, resume_step)
        self._path = path
        self._file: int | None = os.open(
            path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
        )

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes the record and its line end in one call."""
        if self._file is None:
            raise ValueError(f"RunWriter: {self._path} is closed")
        line = json.dumps(_plain(record), allow_nan=False).encode() + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(
                f"RunWriter: only {written} of {len(line)} bytes went to {self._path}; "
                "is the disk full?"
            )

    def close(self) -> None:
        """Closes the file; closing twice is harmless."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _cut(path: pathlib.Path, resume_step: int) -> None:
    """Removes records of `resume_step` and later, and a half-written last line."""
    if not path.exists():
        return
    old = path.read_bytes()
    *lines, rest = old.split(b"\n")
    kept = []
    for number, line in enumerate(lines, 1):
        if line.strip() and _step_of(line, path, number) < resume_step:
            kept.append(line + b"\n")
    if rest:
        try:  # Only the line end may be missing: then the record is whole.
            whole = _step_of(rest, path, len(lines) + 1) < resume_step
        except ValueError:
            whole = False
        if whole:
            kept.append(rest + b"\n")
    new = b"".join(kept)
    if new != old:
        _replace(path, new)


def _step_of(line: bytes, path: pathlib.Path, number: int) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"RunWriter: {path} line {number} is not a JSON record with a step "
            f"({error}); remove the line, or set run_dir to a new folder"
        ) from None


def _replace(path: pathlib.Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _number(name: str, value: SupportsFloat) -> float:
    if name in RESERVED:
        raise ValueError(f"RunWriter: a metric may not be named {name!r}")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"RunWriter: metric {name!r} needs a single number, got "
            f"{type(value).__name__} ({error})"
        ) from None


def _plain(value: Any) -> Any:
    """The value in JSON's own types; numbers that JSON lacks become strings."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "tolist"):  # NumPy and JAX arrays and scalars
        inner = value.tolist()
        return inner if inner is value else _plain(inner)
    if isinstance(value, float):
        return value if math.isfinite(value) else _spelled(value)
    return str(value)


def _spelled(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
