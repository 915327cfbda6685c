"""The walls of a cell, by Linux system calls, where bubblewrap is not installed.

A new root holds nothing but Python and the system's libraries, read-only, and a small
private /tmp. Namespaces for users, processes, network, IPC and host name do the rest.
"""

import ctypes
import os
import platform
import signal
import stat
import sysconfig

from rlvr_jax.verifiers.code import view
from rlvr_jax.verifiers.code.view import View

_NEW_MOUNTS, _NEW_HOST_NAME, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT = 1, 2, 4, 32
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SUBREAPER, _NO_NEW_PRIVILEGES = 1, 4, 36, 38
_CAPABILITIES_VERSION = 0x20080522
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
_FLAGS_TO_KEEP = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""From statvfs to mount: a user namespace may not take these away."""

_UNUSED_USERS = range(30_000, 60_000)


def enter(seen: View, scratch_mb: int) -> None:
    """Moves this process behind the walls, for good; its children are inside.

    Args:
      seen: what stays visible.
      scratch_mb: the size of the private /tmp, where the process then is.

    Raises:
      OSError: the kernel, or a container's rules, do not allow it.
    """
    here = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
    try:
        _enter_mounts(here)
        _build_root(seen, scratch_mb)
        if os.geteuid() == 0:
            become_nobody()
        _enter_users(
            here,
            _NEW_USERS | _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC | _NEW_HOST_NAME,
        )
    finally:
        os.close(here)


def become_nobody() -> None:
    """From root to a user who owns nothing and is no other cell's either.

    The limit on processes counts those of a user, and never root's.
    """
    user = _UNUSED_USERS[int.from_bytes(os.urandom(4)) % len(_UNUSED_USERS)]
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    _control(_SET_DUMPABLE, 1)  # or /proc/self/uid_map would still be root's


def python_is_public() -> bool:
    """Whether any user may read the standard library."""
    path = os.path.realpath(sysconfig.get_path("stdlib"))
    while path != "/":
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


def guard_first_process() -> None:
    """Within the new namespaces: no rights, no way in, and death with the parent."""
    die_with_parent()
    _control(_SET_DUMPABLE, 0)
    _control(_NO_NEW_PRIVILEGES, 1)
    drop_capabilities()


def die_with_parent() -> None:
    """Has the kernel kill this process when its parent ends."""
    _control(_SET_DEATH_SIGNAL, signal.SIGKILL)


def adopt_orphans() -> None:
    """What loses its parent below this process becomes its own child."""
    _control(_SET_SUBREAPER, 1)


def drop_capabilities() -> None:
    """Gives up what root of a user namespace may do."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    _check(_libc().capset(header, (ctypes.c_uint32 * 6)()), "capset")


def _enter_mounts(here: int) -> None:
    try:
        _unshare(_NEW_MOUNTS)
    except PermissionError:  # not root: first become root of a user namespace
        _enter_users(here, _NEW_USERS | _NEW_MOUNTS)


def _enter_users(here: int, namespaces: int) -> None:
    user, group = os.geteuid(), os.getegid()
    _unshare(namespaces)
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        file = os.open(name, os.O_WRONLY, dir_fd=here)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)


def _build_root(seen: View, scratch_mb: int) -> None:
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    shown = [*seen.directories, *seen.packages]
    root = _mount_point(shown)
    sources = {path: os.open(path, os.O_PATH) for path in [*shown, *view.DEVICES]}
    _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=1m")
    for path, target in seen.links.items():
        os.symlink(target, root + path)
    for path in view.WRITABLE:
        os.makedirs(root + path)
        options = f"mode=1777,size={scratch_mb}m,nr_inodes=4096"
        _mount("tmpfs", root + path, "tmpfs", _NO_SUID | _NO_DEVICES, options)
    for path in seen.directories:
        _bind(sources[path], root + path)
    for path in seen.hidden:
        _mount("tmpfs", root + path, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m")
    for path in [*seen.packages, *view.DEVICES]:
        _bind(sources[path], root + path, read_only=path not in view.DEVICES)
    for source in sources.values():
        os.close(source)
    _change_root(root)


def _mount_point(directories: list[str]) -> str:
    for path in ("/mnt", "/tmp", "/run", "/var"):
        if os.path.isdir(path) and not any(
            name == path or name.startswith(path + "/") for name in directories
        ):
            return path
    raise OSError("no directory to mount a new root on")


def _bind(source: int, target: str, read_only: bool = True) -> None:
    """Shows an open file or directory in the new root too."""
    path = f"/proc/{os.getpid()}/fd/{source}"
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(path, target, "", _BIND | _RECURSIVE)
    if read_only:
        present = os.statvfs(target).f_flag
        kept = sum(flag for bit, flag in _FLAGS_TO_KEEP.items() if present & bit)
        _mount("none", target, "", _BIND | _REMOUNT | _READ_ONLY | _NO_SUID | kept)


def _change_root(root: str) -> None:
    os.chdir(root)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root has no known number on {platform.machine()}")
    _check(_libc().syscall(number, b".", b"."), "pivot_root")
    _check(_libc().umount2(b".", _DETACH), "umount2")
    flags = _BIND | _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES
    _mount("none", "/", "", flags)
    os.chdir("/tmp")


def _unshare(namespaces: int) -> None:
    _check(_libc().unshare(namespaces), "unshare")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() or None)
    number = ctypes.c_ulong(flags)
    result = _libc().mount(*arguments, number, options.encode() or None)
    _check(result, f"mount {target}")


def _control(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    result = _libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero)
    _check(result, f"prctl {option}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
