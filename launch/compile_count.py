"""Counts what XLA compiles: a program that compiles twice is a bug."""

from typing import Any

import jax


class CompileCount:
    """How many programs XLA compiled since this was made."""

    def __init__(self):
        """Starts counting."""
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: Any) -> None:
        del duration_secs
        self.count += event == "/jax/core/compile/backend_compile_duration"
