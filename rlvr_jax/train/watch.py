"""A thread that notices a step that hangs, and writes down where every thread is."""

import contextlib
import faulthandler
import pathlib
import statistics
import threading
import time
from collections.abc import Iterator

LEAST_STEPS = 3
"""Steps before the median means something: the first one also compiles."""


class HangWatch:
    """Watches steps; one that takes too long has its stacks dumped, once.

    Args:
      folder: where stacks go, as process_INDEX_step_N.txt.
      factor: times the median of earlier steps that is too long; 0 watches nothing.
      floor_s: a shorter step is never too long.
      process_index: of this process, which on a pod names the slow host.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        factor: float,
        floor_s: float = 30.0,
        process_index: int = 0,
    ):
        """Starts no thread before there are steps to compare with."""
        self._folder, self._factor, self._floor = folder, factor, floor_s
        self._process = process_index
        self._seconds: list[float] = []

    @property
    def limit_s(self) -> float | None:
        """Seconds after which a step is too long; None while nothing is known."""
        if self._factor == 0 or len(self._seconds) < LEAST_STEPS:
            return None
        return max(self._floor, self._factor * statistics.median(self._seconds))

    @contextlib.contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Watches the body of one step."""
        limit, begun = self.limit_s, time.perf_counter()
        timer = None
        if limit is not None:
            timer = threading.Timer(limit, self._dump, (number, limit))
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
        self._seconds.append(time.perf_counter() - begun)

    def _dump(self, number: int, limit: float) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"process_{self._process}_step_{number}.txt"
        with path.open("w") as file:
            file.write(
                f"step {number} has taken {limit:.1f} s, the median is "
                f"{statistics.median(self._seconds):.1f} s; where each thread is:\n"
            )
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
        print(
            f"step {number} on process {self._process} takes longer than "
            f"{limit:.1f} s (logging.slow_step_factor={self._factor:g} times the "
            f"median); stacks of all threads are in {path}",
            flush=True,
        )
