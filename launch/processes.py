"""Joining the processes of a pod or cluster into one run."""

import os
import sys
from collections.abc import Mapping

import jax

from rlvr_jax.validate import ConfigError

CHOICES = ("auto", "yes", "no")
OWN = ("RLVR_COORDINATOR", "RLVR_NUM_PROCESSES", "RLVR_PROCESS_ID")
"""host:port of process 0, how many there are, and which one this is."""


def start_processes(choice: str, environment: Mapping[str, str] | None = None) -> int:
    """Starts `jax.distributed` where there are several processes; returns which one
    this is. Only process 0 prints.

    Args:
      choice: "auto" (as the environment says), "yes" (JAX finds out: on Cloud TPU VMs,
        from their metadata server) or "no".
      environment: os.environ unless given.

    Raises:
      ConfigError: the variables of OWN are incomplete, or JAX finds no cluster.
    """
    environment = os.environ if environment is None else environment
    own = {name: environment.get(name, "") for name in OWN}
    if choice == "no":
        return 0
    if any(own.values()):
        missing = [name for name, value in own.items() if not value]
        if missing:
            raise ConfigError(
                f"launch: {', '.join(missing)} must be set too; a run of several "
                f"processes needs {', '.join(OWN)} in each."
            )
        coordinator, count, index = own.values()
        jax.distributed.initialize(coordinator, int(count), int(index))
    elif choice == "yes" or several(environment):
        try:
            jax.distributed.initialize()
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"launch: JAX found no cluster to join ({error}). Set "
                f"{', '.join(OWN)}, or --distributed=no for a run on this host alone."
            ) from error
    else:
        return 0
    if jax.process_index() > 0:
        sys.stdout = open(os.devnull, "w")
    return jax.process_index()


def several(environment: Mapping[str, str]) -> bool:
    """Whether the environment is that of one process of many.

    SLURM and Open MPI give the number of tasks, GKE the hosts of a TPU slice or the
    number of slices.
    """

    def count(name: str) -> int:
        value = environment.get(name, "")
        return int(value) if value.isdigit() else 0

    names = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "MEGASCALE_NUM_SLICES")
    hosts = [h for h in environment.get("TPU_WORKER_HOSTNAMES", "").split(",") if h]
    return len(hosts) > 1 or any(count(name) > 1 for name in names)
