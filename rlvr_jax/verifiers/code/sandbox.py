"""Cells in which programs run: which kinds this machine offers, start, watch, end."""

import contextlib
import dataclasses
import functools
import os
import select
import socket
import time
from typing import Any

from rlvr_jax.verifiers.code import cell, starting, wire

SETTING = "RLVR_JAX_CODE_ISOLATION"
ISOLATIONS = ("bubblewrap", "namespaces", "rlimits")
"""From the strongest; the last only where `SETTING` asks for it."""
_START_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0
_PROCESSES = 16
_OPEN_FILES = 64
_FILE_BYTES = 16 * 2**20
_OUTPUT_BYTES = 2**20


class Refused(RuntimeError):
    """No cell can be had; says what was tried and what to set."""


class Gone(BaseException):
    """The program ended, hung or broke the protocol; no test may catch this."""


class Lost(Gone):
    """The cell itself is gone, which is no fault of the program."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one program may use."""

    time_limit_s: float = 1.5
    """Wall-clock time of one call or one run."""
    total_time_limit_s: float = 4.0
    """Wall-clock time for all tests of one program."""
    memory_mb: int = 512
    """Address space of each of its processes."""

    def of_processes(self) -> dict[str, int]:
        """The limits of the operating system, by their names."""
        return {
            "AS": self.memory_mb * 2**20,
            "CORE": 0,
            "CPU": int(self.total_time_limit_s) + 1,
            "FSIZE": _FILE_BYTES,
            "NOFILE": _OPEN_FILES,
            "NPROC": _PROCESSES,
        }


@dataclasses.dataclass(frozen=True)
class Output:
    """What one run of a program wrote, and how it ended."""

    stdout: bytes
    ending: int
    """Its exit code; negative, the signal that ended it."""


class Cell:
    """An isolated place for the runs of one program; a context manager."""

    def __init__(self, isolation: str, limits: Limits):
        """Starts it.

        Raises:
          Refused: this kind of isolation is not to be had here.
        """
        self.isolation = isolation
        self.limits = limits
        try:
            self._control, self._wait = starting.start(isolation)
        except OSError as error:
            raise Refused(f"{isolation}: {error}") from error
        try:
            deadline = time.monotonic() + _START_TIMEOUT_S
            answer = wire.receive(self._control, deadline)
        except (TimeoutError, wire.Closed) as error:
            answer = {"refused": f"it did not start ({error})"}
        if "refused" in answer:
            self.close()
            raise Refused(f"{isolation}: {answer['refused']}")
        self._deadline = time.monotonic() + limits.total_time_limit_s

    def __enter__(self) -> "Cell":
        """The cell itself; leaving the block ends all that runs in it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Closes the cell."""
        self.close()

    def close(self) -> None:
        """Ends every process in the cell, and waits until none is left."""
        self._control.close()
        self._wait()

    def start_calls(self, sources: list[str]) -> socket.socket:
        """Starts the program as a server of calls; returns the line to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._start(sources, [theirs.fileno()], stdio=False)
        return ours

    def run(self, sources: list[str], stdin: bytes) -> Output:
        """Runs the program once, from its standard input to its standard output.

        Raises:
          Gone: it ran out of time or wrote too much.
        """
        their_input, our_input = os.pipe()
        our_output, their_output = os.pipe()
        with open(our_input, "wb", 0) as source, open(our_output, "rb", 0) as sink:
            try:
                self._start(sources, [their_input, their_output], stdio=True)
            finally:
                os.close(their_input)
                os.close(their_output)
            try:
                stdout = _converse(source, sink, stdin, self.call_deadline())
            finally:
                ending = self.end()
        return Output(stdout, ending)

    def call_deadline(self) -> float:
        """The monotonic time at which a call that starts now must have ended."""
        now = time.monotonic()
        if now >= self._deadline:
            raise Gone(f"no time left of {self.limits.total_time_limit_s:g} s")
        return min(now + self.limits.time_limit_s, self._deadline)

    def _start(self, sources: list[str], descriptors: list[int], stdio: bool) -> None:
        message = {
            "sources": sources,
            "stdio": stdio,
            "limits": self.limits.of_processes(),
        }
        try:
            self._control.settimeout(_END_TIMEOUT_S)
            socket.send_fds(self._control, [cell.START], descriptors)
            wire.send(self._control, message, time.monotonic() + _END_TIMEOUT_S)
        except (OSError, wire.Closed) as error:
            raise Lost(f"the cell is gone: {error}") from error

    def end(self) -> int:
        """Kills the program if it goes on; how it ended, as in `Output`.

        Raises:
          Lost: the cell does not answer.
        """
        try:
            self._control.sendall(cell.KILL)
            deadline = time.monotonic() + _END_TIMEOUT_S
            return int(wire.receive(self._control, deadline)["ended"])
        except (OSError, wire.Closed) as error:
            raise Lost(f"the cell is gone: {error}") from error


def describe(ending: int) -> str:
    """How a program ended, in words.

    Example:
      >>> describe(3), describe(-9)
      ('exited with code 3', 'was ended by signal 9')
    """
    how = "was ended by signal" if ending < 0 else "exited with code"
    return f"{how} {abs(ending)}"


def isolation() -> str:
    """The kind of cell that programs get on this machine.

    Raises:
      Refused: there is none, and nobody has asked for less.
    """
    wanted = os.environ.get(SETTING)
    if wanted is None:
        return _best()
    if wanted not in ISOLATIONS:
        raise Refused(f"{SETTING}={wanted!r} is none of {', '.join(ISOLATIONS)}")
    return wanted


@functools.cache
def _best() -> str:
    problems = []
    for kind in ISOLATIONS[:2]:
        try:
            Cell(kind, Limits()).close()
            return kind
        except Refused as error:
            problems.append(str(error))
    raise Refused(
        "programs are not run, since this machine offers no isolation "
        f"({'; '.join(problems)}). Install bubblewrap, or allow user namespaces; or "
        f"set {SETTING}=rlimits to run them with limits on time and memory alone: "
        "they can then read and change what their user can"
    )


def _converse(source: Any, sink: Any, stdin: bytes, deadline: float) -> bytes:
    """Writes all of the input and reads all of the output, whichever can go on."""
    os.set_blocking(source.fileno(), False)
    stdout = bytearray()
    unsent = memoryview(stdin)
    while True:
        try:
            seconds = wire.left(deadline)
        except TimeoutError:
            raise Gone("ran out of time") from None
        writers = [] if source.closed else [source]
        readable, writable, _ = select.select([sink], writers, [], seconds)
        if writable:
            with contextlib.suppress(BlockingIOError):
                try:
                    unsent = unsent[os.write(source.fileno(), unsent[:65536]) :]
                except BrokenPipeError:
                    unsent = unsent[:0]
            if not unsent:
                source.close()
        if readable:
            part = os.read(sink.fileno(), 65536)
            if not part:
                return bytes(stdout)
            stdout += part
            if len(stdout) > _OUTPUT_BYTES:
                raise Gone(f"wrote more than {_OUTPUT_BYTES} bytes")
