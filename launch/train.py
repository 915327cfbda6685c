"""Trains a policy: `python -m launch.train --config configs/quickstart.py`.

Any setting of the recipe can be changed: `--config.objective.epsilon_high=0.28`. The
same command continues a run that was stopped or killed. On a pod or cluster it is
started once per host (docs/pods.md).
"""

import os
import pathlib

import jax
from absl import flags as absl_flags

from launch import flags
from launch.processes import CHOICES, start_processes
from launch.virtual_devices import give_virtual_devices_threads
from rlvr_jax.config import Config
from rlvr_jax.errors import UserError
from rlvr_jax.rollout.scoring import VerifierFailure
from rlvr_jax.train.lock import LockLost
from rlvr_jax.train.loop import run as run_training

_DISTRIBUTED = absl_flags.DEFINE_enum(
    "distributed", "auto", CHOICES, "Whether this is one process of several."
)


def main(config: Config) -> int:
    """Runs the recipe; 0 when it finished or was stopped on request."""
    give_virtual_devices_threads()
    start_processes(_DISTRIBUTED.value)
    use_compilation_cache()
    try:
        run_training(config)
    except (OSError, VerifierFailure, LockLost) as error:
        raise UserError(str(error)) from error
    return 0


def use_compilation_cache() -> None:
    """Keeps compiled programs between runs, under $RLVR_CACHE or ~/.cache/rlvr_jax.

    Those that took more than a second, or JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS.
    """
    cache = os.environ.get("RLVR_CACHE", "~/.cache/rlvr_jax")
    folder = pathlib.Path(cache).expanduser() / "xla"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


if __name__ == "__main__":
    flags.run(main)
