"""What a program can see of this machine: Python, the system's libraries, numpy.

Other installed packages stay out of sight: among them may be a benchmark with its
tests. `RLVR_JAX_CODE_PACKAGES=numpy,sympy` names those that programs may import.
"""

import dataclasses
import functools
import glob
import os
import sys
import sysconfig

PACKAGES = "RLVR_JAX_CODE_PACKAGES"
_DEFAULT_PACKAGES = "numpy"
_SYSTEM = ("/bin", "/lib", "/lib64")
_INSTALLED = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
WRITABLE = ("/tmp", "/dev/shm")
"""Private and small; the second is where multiprocessing keeps its locks."""


@dataclasses.dataclass(frozen=True)
class View:
    """Paths, each at the same place in a cell as outside."""

    directories: list[str]
    """Shown read-only."""
    links: dict[str, str]
    """System directories that are links: /lib to usr/lib."""
    hidden: list[str]
    """Within the directories, and empty in a cell: where packages are installed."""
    packages: list[str]
    """Shown read-only on top of that."""

    def search_path(self) -> list[str]:
        """Where Python finds the packages."""
        return list(dict.fromkeys(os.path.dirname(path) for path in self.packages))


@functools.cache
def of_this_machine() -> View:
    """What programs may see here. Must be asked in the verifier's own Python."""
    directories = _directories()
    return View(
        directories=directories,
        links={path: os.readlink(path) for path in _SYSTEM if os.path.islink(path)},
        hidden=_hidden(directories),
        packages=_packages(),
    )


def _directories() -> list[str]:
    wanted = ["/usr", *_SYSTEM]
    wanted += [os.path.join(sys.base_prefix, name) for name in ("bin", "lib")]
    wanted.append(os.path.dirname(os.__file__))
    wanted.append(sysconfig.get_config_var("DESTSHARED") or "/usr/lib")
    found: list[str] = []
    for path in wanted:
        if os.path.isdir(path) and not _within(os.path.realpath(path), found):
            found.append(path)
    return found


def _hidden(directories: list[str]) -> list[str]:
    prefixes = dict.fromkeys(["/usr", "/usr/local", sys.base_prefix])
    found = [
        path
        for prefix in prefixes
        for pattern in _INSTALLED
        for path in glob.glob(os.path.join(prefix, pattern))
    ]
    return [path for path in found if _within(path, directories)]


def _packages() -> list[str]:
    names = os.environ.get(PACKAGES, _DEFAULT_PACKAGES).split(",")
    sites = dict.fromkeys(sysconfig.get_path(key) for key in ("purelib", "platlib"))
    candidates = [
        os.path.join(site, name.strip() + suffix)
        for site in sites
        for name in names
        if name.strip()
        for suffix in ("", ".libs", ".py")
    ]
    return [path for path in candidates if os.path.exists(path)]


def _within(path: str, directories: list[str]) -> bool:
    return any(path.startswith(other + "/") for other in directories)
