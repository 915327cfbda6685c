"""Eight virtual CPU devices, and compiled programs kept between test runs."""

import os
import pathlib

# Before JAX is first used: the mesh tests need several devices. Beside other work one
# of eight may come a minute late to a collective, which by default ends the process.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    " --xla_cpu_collective_call_terminate_timeout_seconds=600"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from launch.virtual_devices import give_virtual_devices_threads

give_virtual_devices_threads()

_CACHE = os.environ.get("RLVR_CACHE", "~/.cache/rlvr_jax")
jax.config.update(
    "jax_compilation_cache_dir", str(pathlib.Path(_CACHE).expanduser() / "xla-tests")
)
# Also tiny programs: most of the time of these tests is compiling.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="module", autouse=True)
def _programs_of_one_module():
    """Lets go of a module's compiled programs.

    Each takes several memory maps, of which Linux gives a process 65,530; a few
    thousand tests in one process use them up, and then XLA's compiler crashes.
    """
    yield
    jax.clear_caches()
