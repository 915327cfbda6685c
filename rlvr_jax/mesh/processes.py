"""What the processes of a run must agree on before they go on."""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from rlvr_jax.errors import UserError


def from_first(tree: Any) -> Any:
    """Host arrays as the first process has them; shapes and types are alike on all.

    What depends on a clock (a verdict that is a timeout here and none there) would
    otherwise make processes learn from different rewards.
    """
    if jax.process_count() == 1:
        return tree
    return multihost_utils.broadcast_one_to_all(tree)


def anywhere(flag: bool) -> bool:
    """Whether any process says so: the same answer on all.

    A signal reaches processes at different steps; one that left alone would leave the
    others waiting in the next program.
    """
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.array(flag)).any())


@contextlib.contextmanager
def failing_together() -> Iterator[None]:
    """An error of the body in one process is one in all: none goes on alone.

    Raises:
      RuntimeError: the body failed in another process, and not in this one.
    """
    failed = None
    try:
        yield
    except Exception as error:
        failed = error
        if (index := jax.process_index()) > 0:  # The first speaks for all otherwise.
            print(f"process {index}: {error}", file=sys.stderr, flush=True)
    if anywhere(failed is not None):
        raise failed or RuntimeError("it failed in another process, which says why")


LOST = 1
"""Exit status of a process that ended because of another one."""


@contextlib.contextmanager
def ending_together(before_exit: Callable[[], None]) -> Iterator[None]:
    """In a run of several processes, an error in the body ends this one at once.

    The others wait in a collective for what will never come: as the connection closes
    they end too. An orderly way out would first wait for them, in vain. A run of one
    process raises as usual.

    Args:
      before_exit: what must not be left undone; it waits for nobody.
    """
    try:
        yield
    except BaseException as error:
        if jax.process_count() == 1:
            raise
        sys.stdout.flush()
        print(_last_words(error), file=sys.stderr, flush=True)
        before_exit()
        if jax.process_index() == 0:
            time.sleep(2)  # It serves the others, which may be about to say the same.
        os._exit(LOST)


def _last_words(error: BaseException) -> str:
    who = f"process {jax.process_index()} of {jax.process_count()}"
    then = (
        "Start the same command again in every process: the run goes on from its "
        "newest checkpoint."
    )
    if _of_a_peer(str(error)):
        first = str(error).strip().splitlines()[0]
        return f"error: {who} lost another one ({first}). {then}"
    text = str(error).strip() or type(error).__name__
    if not isinstance(error, UserError | OSError):
        text = "".join(traceback.format_exception(error)).strip()
    return f"error: {who} ends, and with it the run: {text}\n{then}"


def _of_a_peer(message: str) -> bool:
    """As gloo, NCCL and JAX's coordination service put it."""
    words = ("Gloo", "NCCL", "by peer", "CoordinationService", "heartbeat timeout")
    return any(word in message for word in words)
