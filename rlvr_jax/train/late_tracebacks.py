"""An error that a run tells about is told once."""

import functools
import inspect
import logging
import sys


@functools.cache
def without_late_tracebacks() -> None:
    """What we raise ourselves is not printed a second time by those who noticed it.

    Where one array cannot be read or written, Orbax's threads log a traceback, asyncio
    and Python one for each of the other arrays that nobody waits for, and TensorStore
    hands Python another as it comes too late for the event loop.
    """
    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    shown = sys.unraisablehook

    def hook(unraisable):
        unawaited = inspect.iscoroutine(unraisable.object)
        if not unawaited and str(unraisable.exc_value) != "Event loop is closed":
            shown(unraisable)

    sys.unraisablehook = hook
