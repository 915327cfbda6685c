"""Makes cells: a small process without tests in it, forked for each of them.

Starting Python takes longer than most programs run. This process has done that once;
a cell is a fork of it that goes behind its walls. It never runs a program itself.
"""

import bisect  # noqa: F401  (what programs often import is here already)
import collections  # noqa: F401
import copy  # noqa: F401
import functools  # noqa: F401
import gc
import heapq  # noqa: F401
import itertools  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import os
import random  # noqa: F401
import re  # noqa: F401
import resource
import signal
import socket
import string  # noqa: F401
import typing  # noqa: F401
from typing import Any

from rlvr_jax.verifiers.code import cell, wire


def main(seen: dict[str, Any], connection: int) -> None:
    """Serves the verifier's process until that closes the line or ends.

    Args:
      seen: what programs may see, the fields of a `View`.
      connection: descriptor of the line.
    """
    line = socket.socket(fileno=connection)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for cells here
    # The limit of the worker that started this process is for one sample.
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
    gc.freeze()
    while True:
        mark, descriptors, _, _ = socket.recv_fds(line, 1, 2)
        if not mark:
            return
        message = wire.receive(line)
        if not os.fork():
            try:
                line.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                if message["scratch"]:
                    os.chdir(message["scratch"])
                    os.environ["HOME"] = os.environ["TMPDIR"] = message["scratch"]
                cell.main(seen, message["isolation"], *descriptors)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
