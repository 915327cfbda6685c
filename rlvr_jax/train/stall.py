"""Says when the held-out score has stopped rising."""

import math
from typing import Any


class Stall:
    """Counts evaluations in a row without a new best score.

    Example:
      >>> stall = Stall(2)
      >>> [stall(step, score) for step, score in enumerate([0.2, 0.3, 0.3, 0.1, 0.1])]
      [False, False, False, True, False]
    """

    def __init__(self, patience: int):
        """Stalls after `patience` evaluations; 0 never stalls."""
        self._patience = patience
        self._best, self._waited, self._seen = -math.inf, 0, -1
        self.last = -1
        """The step of the last stall."""

    def __call__(self, step: int, score: float) -> bool:
        """Notes the score of a step; True where the run stalls, and counting restarts.

        A step that was noted before is not noted again: a run that resumes evaluates
        its first step a second time. After a stall only what beats the score there
        counts as a new best.
        """
        if self._patience == 0 or step <= self._seen:
            return False
        self._seen = step
        if score > self._best:
            self._best, self._waited = score, 0
            return False
        self._waited += 1
        if self._waited < self._patience:
            return False
        self._best, self._waited, self.last = score, 0, step
        return True

    def state(self) -> dict[str, Any]:
        """For a checkpoint; `restore` takes it. The best may be none yet."""
        best = self._best if math.isfinite(self._best) else None
        return {
            "best": best,
            "waited": self._waited,
            "seen": self._seen,
            "last": self.last,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on where `state` was taken."""
        best = state["best"]
        self._best = -math.inf if best is None else best
        self._waited, self._seen = state["waited"], state["seen"]
        self.last = state.get("last", -1)
