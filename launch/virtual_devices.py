"""Threads for the virtual devices that XLA can make of one CPU."""

import os
import re
from collections.abc import MutableMapping

THREADS_PER_DEVICE = 16
_COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def give_virtual_devices_threads(
    environment: MutableMapping[str, str] | None = None,
) -> None:
    """Sets NPROC, the threads of XLA's CPU client, before JAX starts it.

    By default virtual devices share as many threads as there are devices or cores.
    A device that has two independent collectives at hand may start either, and waits
    in a thread for the others: where some start the one and some the other, all
    threads wait for threads that are not there. Without this the train step on 8
    devices of 2 cores hung within 2,500 steps; with 3 threads a device, never in 3,600.

    Args:
      environment: os.environ unless given. An NPROC that is set already stays.
    """
    environment = os.environ if environment is None else environment
    found = _COUNT.search(environment.get("XLA_FLAGS", ""))
    if found and int(found[1]) > 1:
        environment.setdefault("NPROC", str(THREADS_PER_DEVICE * int(found[1])))
