"""How long a run has taken, over all the processes that worked on it in turn."""

import json
import pathlib
import time

from rlvr_jax.train.metrics import write_json

WRITE_EVERY_S = 5.0


class RunClock:
    """Wall-clock seconds of a run so far, kept in `folder`/clock.json.

    A killed process loses at most WRITE_EVERY_S and the step under way. The time
    between two processes does not count.

    Args:
      folder: of the run.
      writes: False on the processes of a run that do not write records.
    """

    def __init__(self, folder: pathlib.Path, *, writes: bool = True):
        """Starts to count on top of what earlier processes took."""
        self._path, self._writes = folder / "clock.json", writes
        self._began = self._written = time.monotonic()
        found = _read(self._path)
        self._before = found.get("seconds", 0.0)
        self.processes = found.get("processes", 0) + 1
        """Processes, one after the other, this one included."""
        self.write()

    @property
    def here(self) -> float:
        """Seconds of this process."""
        return time.monotonic() - self._began

    @property
    def seconds(self) -> float:
        """Seconds of all of them."""
        return self._before + self.here

    def note(self) -> None:
        """Called now and then: writes the time down where it is due."""
        if time.monotonic() - self._written >= WRITE_EVERY_S:
            self.write()

    def write(self) -> None:
        """Writes the time down."""
        self._written = time.monotonic()
        if self._writes:
            found = {"seconds": round(self.seconds, 2), "processes": self.processes}
            write_json(self._path, found)


def _read(path: pathlib.Path) -> dict:
    try:
        found = json.loads(path.read_text())
        return {"seconds": float(found["seconds"]), "processes": found["processes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
