"""One process writes to a run folder at a time."""

import contextlib
import dataclasses
import json
import os
import pathlib
import socket
import threading
import time
import uuid

import jax

from rlvr_jax.mesh.processes import anywhere
from rlvr_jax.validate import ConfigError

BEAT_S = 5.0
"""How often a live process renews its lock."""
SILENCE_S = 30.0
"""A lock of another machine that is not renewed for so long belongs to nobody."""


class LockLost(RuntimeError):
    """Another process took the folder over, as this one was silent for too long."""


@dataclasses.dataclass(frozen=True)
class Holder:
    """Who holds a lock, and how often it was renewed."""

    token: str
    machine: str
    """Of the kernel and its process numbers: two containers are two machines."""
    host: str
    pid: int
    began: str
    """When the process started, as the kernel counts: numbers are used again."""
    beats: int = 0


class RunLock:
    """Holds `folder`/lock for the body of a `with`.

    A lock left by a dead process of this machine is taken over at once. Whether one
    of another machine lives is seen by its being renewed: no clocks are compared and
    nothing but files is needed, so it works on a shared disk. Of several processes of
    one run the first holds it, and all of them are refused together.

    Args:
      folder: of the run.
      beat_s: seconds between renewals.
      silence_s: how long another machine's lock is watched.

    Raises:
      ConfigError: on entering, when another process is at work in the folder.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        beat_s: float = BEAT_S,
        silence_s: float = SILENCE_S,
    ):
        """Takes nothing yet."""
        self._folder, self._path = folder, folder / "lock"
        self._beat_s, self._silence_s = beat_s, silence_s
        self._holder = Holder(
            token=uuid.uuid4().hex,
            machine=_machine(),
            host=socket.gethostname(),
            pid=os.getpid(),
            began=_began(os.getpid()),
        )
        self._aside = folder / f"lock.{self._holder.token}"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._holds = self._lost = False

    def __enter__(self) -> "RunLock":
        """Takes the lock; waits at most `silence_s` for that of another machine."""
        refusal = None
        if jax.process_index() == 0:
            refusal = self._take()
        if anywhere(refusal is not None):
            raise ConfigError(
                refusal or f"run_dir={self._folder}: locked; process 0 says by whom."
            )
        return self

    def __exit__(self, *exception: object) -> None:
        """Gives the folder back."""
        self.release()

    def release(self) -> None:
        """Gives the folder back, unless it is lost; twice is harmless."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._is_ours(_read(self._path)):
            self._path.unlink(missing_ok=True)

    def check(self) -> None:
        """Raises a LockLost once another process has taken the folder over.

        Looks at the file itself: a process that was suspended may come here before its
        thread has.
        """
        self._look()
        if self._lost:
            raise LockLost(
                f"run_dir={self._folder}: process {_who(_read(self._path))} took it "
                f"over, as this one was silent for more than {self._silence_s:g} s. "
                "This one stops; what was saved is whole."
            )

    def _take(self) -> str | None:
        """None once the lock is ours, else why it cannot be."""
        while not self._create():
            found = _read(self._path)
            if self._lives(found):
                return (
                    f"run_dir={self._folder}: process {_who(found)} is at work in it. "
                    "Wait for it or stop it, or choose another --config.run_dir."
                )
            self._remove(found)
        self._holds = True
        self._thread.start()
        return None

    def _create(self) -> bool:
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        with open(file, "w") as opened:
            opened.write(_text(self._holder))
        return True

    def _lives(self, holder: Holder | None) -> bool:
        if holder is not None and holder.machine == self._holder.machine:
            return _began(holder.pid) == holder.began != ""
        print(
            f"run_dir={self._folder}: locked by process {_who(holder)}; watching it "
            f"for up to {self._silence_s:g} s to see whether it lives",
            flush=True,
        )
        deadline = time.monotonic() + self._silence_s
        while time.monotonic() < deadline:
            time.sleep(min(1.0, self._silence_s / 10))
            if _read(self._path) != holder:
                # Renewed by somebody, unless it was given back meanwhile.
                return self._path.exists()
        return False

    def _remove(self, stale: Holder | None) -> None:
        """Removes a stale lock, unless somebody was faster and it is a new one."""
        try:
            self._path.rename(self._aside)
        except FileNotFoundError:
            return
        if _read(self._aside) != stale and not self._path.exists():
            self._aside.rename(self._path)
            return
        self._aside.unlink()
        print(f"run_dir={self._folder}: {_who(stale)} is gone, taken over", flush=True)

    def _renew(self) -> None:
        while not self._done.wait(self._beat_s):
            with contextlib.suppress(OSError):  # A full disk: perhaps the next time.
                if not self._look():
                    continue
                beats = self._holder.beats + 1
                self._holder = dataclasses.replace(self._holder, beats=beats)
                self._aside.write_text(_text(self._holder))
                self._aside.replace(self._path)

    def _look(self) -> bool:
        """Whether the lock is ours; it is lost if it is another's, or gone."""
        found = _read(self._path)
        ours = self._is_ours(found)
        if not ours and self._holds and (found is not None or not self._path.exists()):
            self._lost = True
        return ours

    def _is_ours(self, found: Holder | None) -> bool:
        return found is not None and found.token == self._holder.token


def _text(holder: Holder) -> str:
    return json.dumps(dataclasses.asdict(holder))


def _read(path: pathlib.Path) -> Holder | None:
    """The holder; None where there is no lock, or one that says nothing (yet)."""
    try:
        return Holder(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _who(holder: Holder | None) -> str:
    return "of unknown name" if holder is None else f"{holder.pid} on {holder.host}"


def _machine() -> str:
    try:
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # Not Linux: its name, and process numbers alone.
        return socket.gethostname()


def _began(pid: int) -> str:
    """When process `pid` of this machine started; "" where there is none."""
    if not pathlib.Path("/proc/self/stat").exists():
        return _exists(pid)
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The name in brackets may hold anything; state is field 3, start time field 22.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _exists(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "some time"
