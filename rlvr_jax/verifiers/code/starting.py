"""Starts the first process of a cell, with or without bubblewrap."""

import atexit
import contextlib
import dataclasses
import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable

from rlvr_jax.verifiers.code import cell, view, wire

_END_TIMEOUT_S = 5.0
_PACKAGE = pathlib.Path(__file__).parent
_MARK = "RLVR_JAX_VERIFIER"
"""By which the pool finds what one of its workers has started."""
_BOOT = (
    "import json, sys; sys.path.insert(0, sys.argv[1])\n"
    "from rlvr_jax.verifiers.code import {module}; del sys.path[0]\n"
    "{module}.main(json.loads(sys.argv[2]), {arguments})"
)


def start(isolation: str) -> tuple[socket.socket, Callable[[], None]]:
    """Starts a cell.

    Returns:
      The line to its first process, and what waits until no process of the cell is
      left. When the line is closed the cell ends.

    Raises:
      OSError: it cannot be started.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            if isolation == "bubblewrap":
                return ours, _Wrapped(theirs.fileno()).wait
            return ours, _mint().make(isolation, theirs.fileno()).wait
    except BaseException:
        ours.close()
        raise


class _Wrapped:
    """A cell made by bubblewrap."""

    def __init__(self, control: int):
        boot = _BOOT.format(module="cell", arguments="'bubblewrap', int(sys.argv[3])")
        self._process = subprocess.Popen(
            [*_bubblewrap(), *_python(boot, control)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(control,),
            cwd="/",
            env=_environment(),
        )

    def wait(self) -> None:
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Mint:
    """The process of `mint`, one for each process that verifies."""

    def __init__(self) -> None:
        boot = _BOOT.format(module="mint", arguments="int(sys.argv[3])")
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                _python(boot, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                env=_environment(),
            )

    def make(self, isolation: str, control: int) -> "_Forked":
        """A new cell that listens on `control`."""
        scratch = tempfile.mkdtemp(prefix="cell-") if isolation == "rlimits" else None
        if scratch is not None:
            os.chmod(scratch, 0o777)
        end, done = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._line, [cell.START], [control, done])
                wire.send(self._line, {"isolation": isolation, "scratch": scratch})
        except wire.Closed as error:
            os.close(end)
            raise OSError(f"the process that makes cells is gone: {error}") from error
        except OSError:
            os.close(end)
            raise
        finally:
            os.close(done)
        return _Forked(self, end, scratch)

    @property
    def alive(self) -> bool:
        """It runs, and is ours: a fork of this process needs its own."""
        return self.owner == os.getpid() and self._process.poll() is None

    def close(self) -> None:
        """Ends it and all its cells."""
        if self.owner == os.getpid():
            self._line.close()
            self._process.kill()
            self._process.wait()


class _Forked:
    """A cell that the mint has forked."""

    def __init__(self, mint: _Mint, end: int, scratch: str | None):
        self._mint = mint
        self._end = end
        self._scratch = scratch

    def wait(self) -> None:
        ready, _, _ = select.select([self._end], [], [], _END_TIMEOUT_S)
        os.close(self._end)
        if not ready:
            self._mint.close()  # its cells die with it; the next one gets a new mint
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


_mints: list[_Mint] = []
_lock = threading.Lock()


def _mint() -> _Mint:
    with _lock:
        if not (_mints and _mints[-1].alive):
            _close_mints()
            _mints.append(_Mint())
        return _mints[-1]


@atexit.register
def _close_mints() -> None:
    while _mints:
        with contextlib.suppress(OSError):
            _mints.pop().close()


def _python(boot: str, connection: int) -> list[str]:
    """Python without site packages; those that programs may import are in the view."""
    python = os.path.realpath(sys.executable)
    seen = json.dumps(dataclasses.asdict(view.of_this_machine()))
    arguments = [str(_PACKAGE.parents[2]), seen, str(connection)]
    return [python, "-S", "-s", "-P", "-B", "-c", boot, *arguments]


def _bubblewrap() -> list[str]:
    """Its command line; descriptors that are open stay open inside."""
    program = shutil.which("bwrap")
    if program is None:
        raise FileNotFoundError("bwrap is not installed")
    command = [program, "--as-pid-1", "--die-with-parent", "--new-session"]
    if os.geteuid() == 0:  # the cell itself goes on as another user
        command += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-all"]
    command += ["--perms", "0755", "--dir", "/dev"]
    for path in view.WRITABLE:
        size = str(cell.SCRATCH_MB * 2**20)
        command += ["--perms", "1777", "--size", size, "--tmpfs", path]
    seen = view.of_this_machine()
    for path in seen.directories:
        command += _shown(path)
    for path in seen.hidden:
        command += ["--perms", "0755", "--tmpfs", path]
    for path in [*seen.packages, str(_PACKAGE)]:
        command += _shown(path)
    for path in seen.hidden:
        command += ["--remount-ro", path]
    for path, target in seen.links.items():
        command += ["--symlink", target, path]
    for path in view.DEVICES:
        command += ["--dev-bind", path, path]
    return [*command, "--remount-ro", "/", "--chdir", "/tmp"]


def _shown(path: str) -> list[str]:
    arguments = []
    for parent in reversed(pathlib.Path(path).parents[:-1]):
        arguments += ["--perms", "0755", "--dir", str(parent)]
    return [*arguments, "--ro-bind", path, path]


def _environment() -> dict[str, str]:
    """Nothing of ours but the mark."""
    marks = {name: text for name, text in os.environ.items() if name == _MARK}
    return marks | {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",  # the same program, the same verdict
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
