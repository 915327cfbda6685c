"""Runs verifiers in processes that can be killed, with a deadline for each sample.

The processes are started anew with `subprocess`: a fork of a process that runs JAX can
deadlock, and multiprocessing would import the user's main module again. They talk JSON
over sockets. One thread of the pool owns each process.
"""

import concurrent.futures
import dataclasses
import json
import os
import queue
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from rlvr_jax.errors import UserError
from rlvr_jax.verifiers import protocol
from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.process import StartError, WorkerProcess

_START_TIMEOUT_S = 120.0
"""For a worker to start, and for a verifier to be imported: a cold disk may be slow."""


@dataclasses.dataclass
class _Task:
    """A sample to verify, or (sample None) a verifier to import."""

    verifier: str
    sample: dict[str, Any] | None
    is_retried: bool = False
    """A worker was killed with SIGKILL over it, once."""
    result: concurrent.futures.Future = dataclasses.field(
        default_factory=concurrent.futures.Future
    )


class VerifierPool:
    """Checks samples in `workers` processes; a context manager, safe from threads.

    A sample whose verifier runs past the deadline gets the status timeout, one whose
    worker dies the status crash; the worker is killed with everything it started, and
    a fresh one takes its place. Other samples never notice. A worker ended by kill -9
    (an operator, a machine out of memory) says nothing about its sample, which is
    verified once more. No process outlives the pool, nor the program, even after
    kill -9.

    Example:
      >>> with VerifierPool(workers=1, timeout_s=5.0) as pool:
      ...     print(pool.verify([Sample("exact", "So it is \\\\boxed{yes}", "Yes")]))
      [Verdict(status=<Status.CORRECT: 'correct'>, score=1.0, detail="'yes' = 'yes'")]
    """

    def __init__(
        self,
        workers: int = 0,
        timeout_s: float = 5.0,
        *,
        memory_limit_mb: int = 4096,
        max_tasks_per_worker: int = 5000,
        preload: Iterable[str] = (),
    ):
        """Starts the workers and returns at once; they warm up in the background.

        Args:
          workers: processes; 0 takes the number of cores, at most 8.
          timeout_s: wall-clock seconds for each sample.
          memory_limit_mb: address space of each worker, in MiB.
          max_tasks_per_worker: samples after which a worker is replaced, so that a
            verifier that leaks cannot fill the memory.
          preload: verifiers each worker imports at its start; others are imported at
            their first sample, outside of its deadline.

        Raises:
          UserError: a number is out of range.
        """
        if workers < 0 or timeout_s <= 0 or max_tasks_per_worker < 1:
            raise UserError(
                "VerifierPool needs workers >= 0, timeout_s > 0 and "
                f"max_tasks_per_worker >= 1, got {workers}, {timeout_s} and "
                f"{max_tasks_per_worker}"
            )
        self.workers = workers or min(8, os.cpu_count() or 1)
        self.timeout_s = timeout_s
        self._memory_limit_mb = memory_limit_mb
        self._max_tasks = max_tasks_per_worker
        self._preload = tuple(preload)
        self._directory = os.getcwd()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._processes: dict[threading.Thread, WorkerProcess] = {}
        self._threads = [
            threading.Thread(target=self._serve, name=f"verifier-{i}", daemon=True)
            for i in range(self.workers)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "VerifierPool":
        """The pool itself; leaving the block closes it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Closes the pool."""
        self.close()

    def verify(self, samples: Sequence[Sample]) -> list[Verdict]:
        """Checks the samples and returns their verdicts in the same order.

        Any number of samples; several threads may call at once.

        Raises:
          RuntimeError: the pool is closed, or its workers cannot be started.
        """
        refused = [_not_json(sample) for sample in samples]
        tasks = [
            _Task(sample.verifier, dataclasses.asdict(sample))
            for sample, verdict in zip(samples, refused, strict=True)
            if verdict is None
        ]
        judged = iter(self._run(tasks))
        return [next(judged) if verdict is None else verdict for verdict in refused]

    def check(self, verifiers: Iterable[str]) -> dict[str, str]:
        """Imports verifiers in a worker, as a run will, before the run needs them.

        Returns:
          What each reads of a completion: {"math": "answer", ...}.

        Raises:
          UserError: one cannot be found or imported; the message says which and why.
          RuntimeError: as in `verify`.
        """
        names = list(dict.fromkeys(verifiers))
        answers = self._run([_Task(name, None) for name in names])
        for answer in answers:
            if "error" in answer:
                raise UserError(answer["error"])
        return {
            name: answer["reads"] for name, answer in zip(names, answers, strict=True)
        }

    def close(self) -> None:
        """Kills the workers. Calls of `verify` still waiting raise RuntimeError."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            for _ in self._threads:
                self._tasks.put(None)
            for process in self._processes.values():
                process.interrupt()
        for thread in self._threads:
            thread.join()
        self._refuse_waiting()

    def _run(self, tasks: list[_Task]) -> list[Any]:
        with self._lock:
            if self._closed.is_set():
                raise _closed_error()
            for task in tasks:
                self._tasks.put(task)
        return [task.result.result() for task in tasks]

    def _refuse_waiting(self) -> None:
        """Ends what is still queued once no thread is there to serve it."""
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return
            if task is not None:
                task.result.set_exception(_closed_error())

    def _serve(self) -> None:
        """A thread's life: keep one worker, feed it tasks, replace it when it dies."""
        while not self._closed.is_set():
            try:
                worker = self._start()
            except StartError as error:
                self._fail_one(error)
                continue
            self._feed(worker)
            self._end(worker)

    def _start(self, attempts: int = 3) -> WorkerProcess:
        try:
            worker = WorkerProcess(
                self._directory, self._memory_limit_mb, _START_TIMEOUT_S
            )
        except StartError:
            if attempts == 1 or self._closed.wait(0.3):
                raise
            return self._start(attempts - 1)
        with self._lock:
            self._processes[threading.current_thread()] = worker
            if self._closed.is_set():
                worker.interrupt()
        for name in self._preload:
            outcome = _do(worker, _Task(name, None), self.timeout_s)
            if outcome.worker_is_lost and not self._closed.is_set():
                self._end(worker)  # its first sample will say why
                self._preload = ()
                return self._start()
        return worker

    def _end(self, worker: WorkerProcess) -> None:
        with self._lock:
            del self._processes[threading.current_thread()]
        worker.kill()

    def _fail_one(self, error: StartError) -> None:
        """Hands a failed start to whoever waits, then lets the thread try again."""
        task = self._tasks.get()
        if task is not None:
            command = " ".join(WorkerProcess.command)
            message = (
                f"no verifier worker can be started: {error} (the pool runs "
                f"`{command}` with {self._memory_limit_mb} MiB of address space)"
            )
            task.result.set_exception(RuntimeError(message))

    def _feed(self, worker: WorkerProcess) -> None:
        """Gives tasks to one worker until it is lost, worn out or no longer wanted."""
        for _ in range(self._max_tasks):
            task = self._tasks.get()
            if task is None:
                return
            outcome = _do(worker, task, self.timeout_s)
            if self._closed.is_set():
                task.result.set_exception(_closed_error())
                return
            if outcome.was_killed and not task.is_retried:
                task.is_retried = True
                self._tasks.put(task)
                return
            task.result.set_result(outcome.value)
            if outcome.worker_is_lost:
                return


@dataclasses.dataclass
class _Outcome:
    value: Any
    worker_is_lost: bool = False
    was_killed: bool = False
    """From outside, by SIGKILL."""


def _do(worker: WorkerProcess, task: _Task, timeout_s: float) -> _Outcome:
    """Runs one task; whatever goes wrong becomes its outcome."""
    limit_s = _START_TIMEOUT_S
    try:
        if task.verifier not in worker.loaded:
            answer = worker.ask({"load": task.verifier}, limit_s)
            if "error" in answer:
                return _failed(task, Status.CRASH, str(answer["error"]), lost=False)
            worker.loaded[task.verifier] = str(answer["reads"])
        if task.sample is None:
            return _Outcome({"reads": worker.loaded[task.verifier]})
        limit_s = timeout_s
        request = {"sample": task.sample, "timeout_s": timeout_s}
        return _Outcome(_verdict(worker.ask(request, timeout_s)))
    except TimeoutError:
        problem = f"no verdict within {limit_s:g} s"
        return _failed(task, Status.TIMEOUT, problem, seconds=limit_s)
    except protocol.Closed:
        outcome = _failed(task, Status.CRASH, worker.ending())
        return dataclasses.replace(outcome, was_killed=worker.was_killed)
    except Exception as error:  # whatever it is, somebody waits for an outcome
        return _failed(task, Status.CRASH, f"the worker wrote nonsense: {error!r}")


def _failed(
    task: _Task, status: Status, problem: str, lost: bool = True, seconds: float = 0.0
) -> _Outcome:
    if task.sample is None:
        return _Outcome({"error": problem}, lost)
    return _Outcome(Verdict(status, 0.0, problem, seconds), lost)


def _verdict(answer: dict[str, Any]) -> Verdict:
    return Verdict(
        Status(answer["status"]),
        float(answer["score"]),
        str(answer["detail"]),
        float(answer["seconds"]),
    )


def _not_json(sample: Sample) -> Verdict | None:
    """The verdict on a sample that cannot be sent; None if it can."""
    if isinstance(sample.answer, str | int | float | None) and not sample.meta:
        return None
    try:
        json.dumps([sample.answer, sample.meta])
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"the sample is not JSON: {error}"
        return Verdict(Status.BAD_REFERENCE, 0.0, problem)
    return None


def _closed_error() -> RuntimeError:
    return RuntimeError("the verifier pool is closed")
