"""The process that runs verifiers: `python -m rlvr_jax.verifiers.worker`, by the pool.

Requests come on the socket that is file descriptor 0 at the start; see `protocol`.
Whatever the verifier does to its standard streams, its memory or its time costs the
sample it was given and no other.
"""

import contextlib
import fcntl
import gc
import os
import resource
import socket
import sys
import time
import traceback
from typing import Any

from rlvr_jax.verifiers import base, protocol, registry

_CPU_GRACE_S = 5


def main() -> None:
    """Serves requests until the pool closes the socket."""
    connection, lifeline = _take_over_streams()
    settings = protocol.receive(connection)
    _die_with(settings["parent"], lifeline)
    _limit(settings["memory_limit_mb"])
    sys.addaudithook(_refuse_signals_outside)
    protocol.send(connection, {"ready": os.getpid()})
    _discard_output()
    while True:
        try:
            request = protocol.receive(connection)
        except protocol.Closed:
            os._exit(0)
        protocol.send(connection, _answer(request) | {"id": request["id"]})


def _take_over_streams() -> tuple[socket.socket, int]:
    """Moves the pool's socket away from descriptor 0, where user code may write."""
    connection = socket.socket(fileno=os.dup(0))
    lifeline = int(sys.argv[1])
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    os.set_inheritable(lifeline, False)
    return connection, lifeline


def _discard_output() -> None:
    """Start-up is over: from here on a verifier's prints and warnings go nowhere."""
    os.dup2(1, 2)


def _die_with(parent: int, lifeline: int) -> None:
    """Has the kernel end this process and what it started when the trainer dies.

    The lifeline is a pipe that nobody writes to. When the trainer's end closes, the
    kernel sends SIGIO, which ends a process, to the whole process group, even while a
    loop in C holds the interpreter. (PR_SET_PDEATHSIG would end this process alone,
    and with it the group's subscription to the pipe.)
    """
    with contextlib.suppress(OSError):  # elsewhere a closed socket has to do
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgid(0))
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if os.getppid() != parent:  # it died before the lines above
        os._exit(1)


def _limit(memory_limit_mb: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # macOS has no RLIMIT_AS
        size = memory_limit_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _limit_cpu(timeout_s: float) -> None:
    """Ends a busy worker even if nobody is left to watch its deadline."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(ValueError, OSError):
        limit = int(time.process_time() + timeout_s) + _CPU_GRACE_S
        resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _refuse_signals_outside(event: str, arguments: tuple) -> None:
    """An audit hook: a verifier may signal itself and what it started, nobody else."""
    if event == "os.kill" and not _is_inside(arguments[0]):
        raise PermissionError("a verifier may only signal processes that it started")
    if event == "os.killpg" and arguments[0] != 0 and not _is_inside(arguments[0]):
        raise PermissionError("a verifier may only signal processes that it started")


def _is_inside(process: int) -> bool:
    own = os.getpid()
    if process in (0, own, -own):
        return True
    if process < 0:
        return False
    try:
        if os.getsid(process) == own:
            return True
        with open(f"/proc/{process}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return False
    return parent == own


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if "load" in request:
        return _load(request["load"])
    _limit_cpu(request["timeout_s"])
    start = time.perf_counter()
    try:
        sample = base.Sample(**request["sample"])
        verdict = base.apply(registry.resolve(sample.verifier), sample)
    except MemoryError:
        gc.collect()
        verdict = base.Verdict(base.Status.CRASH, 0.0, "MemoryError: out of memory")
    except BaseException as error:
        verdict = base.Verdict(base.Status.CRASH, 0.0, _describe(error))
    return {
        "status": str(verdict.status),
        "score": verdict.score,
        "detail": verdict.detail[:2000],
        "seconds": time.perf_counter() - start,
    }


def _load(name: str) -> dict[str, Any]:
    """Imports a verifier and whatever it wants warm, outside of any deadline."""
    try:
        verifier = registry.resolve(name)
        getattr(verifier, "warm_up", lambda: None)()
        return {"reads": base.reads_of(verifier)}
    except ValueError as error:
        return {"error": str(error)}
    except BaseException as error:
        return {"error": f"verifier {name!r}: {_describe(error)}"}


def _describe(error: BaseException) -> str:
    where = ""
    if frames := traceback.extract_tb(error.__traceback__):
        where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})"
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    return f"{type(error).__name__}: {text:.500}{where}"


if __name__ == "__main__":
    main()
