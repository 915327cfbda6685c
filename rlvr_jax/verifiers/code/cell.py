"""The first process of a cell: starts guests, one after another, and clears up.

It holds no tests. It is started by `sandbox` with a socket, over which it gets programs
and the descriptors that are to be theirs. When the socket closes it ends, and with it,
by the kernel's hand, every process in the cell.
"""

import contextlib
import os
import resource
import select
import signal
import socket
import sys
from typing import Any

from rlvr_jax.verifiers.code import guest, namespaces, wire
from rlvr_jax.verifiers.code.view import View

KILL, START = b"k", b"s"
SCRATCH_MB = 32


def main(
    seen: dict[str, Any], isolation: str, control: int, done: int | None = None
) -> None:
    """Enters the isolation asked for, says so, and serves.

    Args:
      seen: the fields of a `View`.
      isolation: "bubblewrap" (already inside), "namespaces" or "rlimits".
      control: descriptor of the socket to the verifier.
      done: descriptor of a pipe that closes when nothing is left of the cell.
    """
    connection = socket.socket(fileno=control)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored by a first process
    sys.path += View(**seen).search_path()
    try:
        _prefer_for_oom()
        if isolation == "namespaces":
            namespaces.enter(View(**seen), SCRATCH_MB)
            _leave_to_child(connection, done)
            namespaces.guard_first_process()
        elif isolation == "bubblewrap":
            if os.geteuid() == 0:
                namespaces.become_nobody()
            namespaces.guard_first_process()
        else:
            if os.geteuid() == 0:
                if not namespaces.python_is_public():
                    raise OSError("this Python is for root alone; use another user")
                namespaces.become_nobody()
            namespaces.adopt_orphans()
            namespaces.die_with_parent()
    except (OSError, AttributeError) as error:  # AttributeError: not this libc
        wire.send(connection, {"refused": f"{error}"})
        return
    wire.send(connection, {"ready": os.getpid()})
    ours = [control] if done is None or isolation == "namespaces" else [control, done]
    while (request := _next(connection)) is not None:
        message, descriptors = request
        ending = _run(connection, message, descriptors, ours)
        with contextlib.suppress(wire.Closed):
            wire.send(connection, {"ended": ending})


def _prefer_for_oom() -> None:
    """If memory runs out, programs under test go first."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _leave_to_child(connection: socket.socket, done: int | None) -> None:
    """The child is process 1 of the new namespace; this one only waits for it."""
    child = os.fork()
    if child:
        connection.close()
        namespaces.die_with_parent()
        os.waitpid(child, 0)
        os._exit(0)
    if done is not None:
        os.close(done)


def _next(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next program and its descriptors; None when the verifier is gone."""
    connection.settimeout(None)
    mark = KILL
    descriptors: list[int] = []
    while mark == KILL:  # meant for a guest that had already ended
        try:
            mark, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        except OSError:
            return None
    if mark != START:
        return None
    try:
        return wire.receive(connection), descriptors
    except wire.Closed:
        return None


def _run(
    connection: socket.socket,
    message: dict[str, Any],
    descriptors: list[int],
    ours: list[int],
) -> int:
    """Runs one guest to its end, or until the verifier wants it killed.

    The guest gets the descriptors and not those that are ours.
    """
    child = os.fork()
    if not child:
        try:
            for descriptor in ours:
                os.close(descriptor)
            _become_guest(message, descriptors)
        finally:
            os._exit(70)
    for descriptor in descriptors:
        os.close(descriptor)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([connection, ended], [], [])
    os.close(ended)
    if ended not in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    _clear(child)
    return os.waitstatus_to_exitcode(status)


def _become_guest(message: dict[str, Any], descriptors: list[int]) -> None:
    os.setsid()
    for name, value in message["limits"].items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))
    if message["stdio"]:
        stdin, stdout = descriptors
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(stdin)
        os.close(stdout)
        guest.run_program(message["sources"])
    guest.serve_calls(socket.socket(fileno=descriptors[0]), message["sources"])


def _clear(child: int) -> None:
    """Ends whatever the guest has left running."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while orphans := _children():
        for orphan in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _children() -> list[int]:
    """Without a process namespace: orphans of the guest, adopted by this process."""
    found = []
    for entry in os.scandir("/proc") if os.path.exists("/proc") else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError), open(f"{entry.path}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    found.append(int(entry.name))
    return found
