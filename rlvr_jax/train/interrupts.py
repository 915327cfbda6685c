"""Ctrl-C and SIGTERM: finish the step, save, leave."""

import contextlib
import signal
from collections.abc import Iterator


class StopRequest:
    """True once somebody asked the run to stop."""

    def __init__(self):
        """No request yet."""
        self.signal_name = ""

    def __bool__(self) -> bool:
        """Whether a signal has come."""
        return bool(self.signal_name)


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turns the first SIGINT or SIGTERM into a request; a second one acts as usual."""
    request = StopRequest()
    usual = {number: signal.getsignal(number) for number in _SIGNALS}

    def on_signal(number, frame):
        request.signal_name = signal.Signals(number).name
        print(
            f"\n{request.signal_name}: finishing this step, then saving. Once more to "
            "stop at once.",
            flush=True,
        )
        for each, handler in usual.items():
            signal.signal(each, handler)

    for number in _SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield request
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
