"""One worker process as the pool sees it: start, ask, kill."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any

from rlvr_jax.verifiers import protocol

_WORKER = "rlvr_jax.verifiers.worker"
_MARK = "RLVR_JAX_VERIFIER"
_SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


_lifelines: set[int] = set()
"""Descriptors whose closing ends a worker; a fork of the trainer must not hold them."""


class StartError(RuntimeError):
    """A worker could not be started; the message holds what it wrote."""


class WorkerProcess:
    """A started worker."""

    command = (sys.executable, "-P", "-m", _WORKER)

    def __init__(self, directory: str, memory_limit_mb: int, start_timeout_s: float):
        """Starts the process and waits until it serves.

        Args:
          directory: where it runs; relative names of users' files start there.
          memory_limit_mb: its address space.
          start_timeout_s: how long it may take.

        Raises:
          StartError: it died or did not answer in time.
        """
        self.loaded: dict[str, str] = {}
        """Verifiers imported so far, and what each reads."""
        self._requests = 0
        self._mark = uuid.uuid4().hex
        self._lifeline = -1
        with contextlib.ExitStack() as opened:
            try:
                stderr = opened.enter_context(tempfile.TemporaryFile())
                self._connection, theirs = socket.socketpair()
                self._start(directory, theirs, stderr)
            except OSError as error:
                raise StartError(f"cannot start {sys.executable}: {error}") from error
            self._shake_hands(memory_limit_mb, start_timeout_s, stderr)

    def _start(self, directory: str, theirs: socket.socket, stderr: Any) -> None:
        read_end = -1
        try:
            read_end, self._lifeline = os.pipe()
            _lifelines.add(self._lifeline)
            self._process = subprocess.Popen(
                [*self.command, str(read_end)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=(read_end,),
                cwd=directory,
                env=_environment(self._mark),
                start_new_session=True,
            )
        except OSError:
            self._close()
            raise
        finally:
            theirs.close()
            if read_end >= 0:
                os.close(read_end)

    def _shake_hands(self, memory_limit_mb: int, timeout_s: float, stderr: Any) -> None:
        deadline = time.monotonic() + timeout_s
        settings = {"parent": os.getpid(), "memory_limit_mb": memory_limit_mb}
        try:
            protocol.send(self._connection, settings, deadline)
            protocol.receive(self._connection, deadline)
        except (protocol.Closed, TimeoutError) as error:
            late = isinstance(error, TimeoutError)
            how = f"said nothing for {timeout_s:g} s" if late else self.ending()
            self.kill()
            stderr.seek(0)
            wrote = stderr.read()[-2000:].decode(errors="replace").strip()
            raise StartError(f"{how}. It wrote: {wrote or 'nothing'}") from error

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Sends a request and waits for its answer.

        Raises:
          TimeoutError: no answer within `timeout_s`; the worker must be killed.
          protocol.Closed: the worker is gone or wrote nonsense; the same.
        """
        deadline = time.monotonic() + timeout_s
        self._requests += 1
        protocol.send(self._connection, request | {"id": self._requests}, deadline)
        answer = protocol.receive(self._connection, deadline)
        if answer.get("id") != self._requests:
            raise protocol.Closed("an answer to another request")
        return answer

    def ending(self) -> str:
        """How the process ended, in words."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "the worker closed its connection"
        if code >= 0:
            return f"the worker exited with code {code}"
        named = -code in set(signal.Signals)  # those of real time have numbers alone
        name = signal.Signals(-code).name if named else f"signal {-code}"
        return f"the worker was killed by {name}"

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self._process.poll() == -signal.SIGKILL

    def interrupt(self) -> None:
        """Kills the worker's process group; `kill` must still follow."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Ends the worker and everything it started, also what left its group."""
        self.interrupt()
        self._process.wait()
        _kill_marked(self._mark)
        self._close()

    def _close(self) -> None:
        self._connection.close()
        if self._lifeline in _lifelines:
            _lifelines.remove(self._lifeline)
            os.close(self._lifeline)


def _let_go_of_lifelines() -> None:
    while _lifelines:
        os.close(_lifelines.pop())


os.register_at_fork(after_in_child=_let_go_of_lifelines)


def _environment(mark: str) -> dict[str, str]:
    """The trainer's environment and import path, one thread, no accelerator."""
    environment = dict(os.environ)
    environment |= dict.fromkeys(_SINGLE_THREADED, "1")
    environment["PYTHONPATH"] = os.pathsep.join(
        path or os.getcwd() for path in sys.path
    )
    environment["JAX_PLATFORMS"] = "cpu"
    environment[_MARK] = mark
    return environment


def _kill_marked(mark: str, rounds: int = 20) -> None:
    """Kills processes that carry the worker's mark in their environment.

    A verifier's child may have moved to a group of its own and lost its parent; the
    environment it was born with still names the worker.
    """
    needle = f"{_MARK}={mark}".encode()
    for _ in range(rounds):
        found = False
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if needle in entry.read_bytes():
                    os.kill(int(entry.parent.name), signal.SIGKILL)
                    found = True
        if not found:
            return
        time.sleep(0.01)
