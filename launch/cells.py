"""Runs the cells of a sweep as processes of their own, several at a time."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from rlvr_jax.sweeps import Cell, Plan

_LINES_SHOWN = 5


def command(recipe: str, cell: Cell) -> list[str]:
    """The command line of a cell; the same one by hand gives the same run."""
    program = [sys.executable, "-m", "launch.train"]
    return [*program, f"--config={recipe}", *cell.flags]


def is_finished(run_dir: pathlib.Path) -> bool:
    """Whether a run went to its end; one that was stopped or killed did not."""
    path = run_dir / "summary.json"
    if not path.is_file():
        return False
    try:
        return bool(json.loads(path.read_text(encoding="utf8")).get("finished"))
    except ValueError:
        return False


def run_all(recipe: str, plan: Plan, processes: int) -> list[str]:
    """Runs what is not finished, and says so line by line.

    A cell waits for its cold start. On Ctrl-C or SIGTERM the running cells save and
    stop, and no other begins.

    Returns:
      Names of the cells that are not finished.
    """
    runner = _Runner(recipe, len(plan.cells))
    before = signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    try:
        with concurrent.futures.ThreadPoolExecutor(processes) as pool:
            jobs = _submitted(pool, runner, plan, processes)
            try:
                results = {name: job.result() for name, job in jobs.items()}
            except KeyboardInterrupt:
                runner.stop()
                results = {name: job.result() for name, job in jobs.items()}
    finally:
        signal.signal(signal.SIGTERM, before)
    failed = [cell.name for cell in plan.cells if not results[cell.name]]
    if failed:
        shown = ", ".join(failed[:_LINES_SHOWN])
        more = f" and {len(failed) - _LINES_SHOWN} more" * (len(failed) > _LINES_SHOWN)
        print(f"not finished: {shown}{more}; the same command tries them again")
    return failed


def _submitted(
    pool: concurrent.futures.Executor, runner: "_Runner", plan: Plan, processes: int
) -> dict[str, concurrent.futures.Future]:
    """All jobs in order; cold starts come some cells before they are needed."""
    jobs: dict[str, concurrent.futures.Future] = {}
    waiting = list(plan.starts)

    def submit_starts(until: int) -> None:
        while waiting and len(plan.starts) - len(waiting) < until:
            name = waiting.pop(0)
            jobs[name] = pool.submit(runner.run, plan.starts[name])

    for cell in plan.cells:
        if cell.start:
            number = list(plan.starts).index(cell.start) + 1
            submit_starts(number + processes - 1)
        jobs[cell.name] = pool.submit(runner.run, cell, jobs.get(cell.start))
    return jobs


class _Runner:
    """Starts processes, and ends them when asked to."""

    def __init__(self, recipe: str, total: int):
        self.recipe, self.total, self.done = recipe, total, 0
        self.stopped = False
        self.live: set[subprocess.Popen] = set()
        self.lock = threading.Lock()

    def stop(self) -> None:
        """Lets the running cells save and end; begins no other."""
        self.stopped = True
        for process in tuple(self.live):
            process.terminate()

    def run(self, cell: Cell, start: concurrent.futures.Future | None = None) -> bool:
        """Whether the cell is finished, before or now."""
        is_start = cell.name.startswith("start/")
        if start is not None and not start.result():
            if self.stopped:
                return False
            self._say(f"{cell.name}: left out, as {cell.start} is not finished")
            return False
        if is_finished(cell.run_dir):
            self._say(f"{cell.name}: finished before", counts=not is_start)
            return True
        if self.stopped:
            return False
        began = time.monotonic()
        log = cell.run_dir.with_suffix(".log")
        code = self._process(command(self.recipe, cell), log)
        seconds = time.monotonic() - began
        if code == 0 and is_finished(cell.run_dir):
            self._say(f"{cell.name}: finished, {seconds:.0f} s", counts=not is_start)
            return True
        if self.stopped:
            self._say(f"{cell.name}: stopped")
            return False
        self._say(f"{cell.name}: FAILED with status {code}, see {log}{_end_of(log)}")
        return False

    def _process(self, arguments: Sequence[str], log: pathlib.Path) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as output:
            # A copy of the environment: a wide terminal keeps tables in the log whole.
            process = subprocess.Popen(
                arguments,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"COLUMNS": "120"},
            )
            self.live.add(process)
            if self.stopped:
                process.terminate()
            try:
                return process.wait()
            finally:
                self.live.discard(process)

    def _say(self, words: str, *, counts: bool = False) -> None:
        with self.lock:
            self.done += counts
            print(f"[{self.done}/{self.total}] {words}", flush=True)


def _end_of(log: pathlib.Path) -> str:
    lines = log.read_text(encoding="utf8", errors="replace").strip().splitlines()
    return "".join(f"\n    {line}" for line in lines[-_LINES_SHOWN:])
