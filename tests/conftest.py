"""Eight virtual CPU devices, and compiled programs kept between test runs."""

import os
import pathlib

# Before JAX is first used: the mesh tests need several devices. On a busy machine one
# of eight may come a minute late to a collective, which by default ends the process.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    " --xla_cpu_collective_call_terminate_timeout_seconds=600"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

_CACHE = os.environ.get("RLVR_CACHE", "~/.cache/rlvr_jax")
jax.config.update(
    "jax_compilation_cache_dir", str(pathlib.Path(_CACHE).expanduser() / "xla-tests")
)
# Also tiny programs: most of the time of these tests is compiling.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
