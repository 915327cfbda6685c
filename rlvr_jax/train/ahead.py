"""Batches that are sampled while earlier ones are learned from, at a bounded age.

With staleness s, the batch of step t comes from the policy of step max(0, t - s): its
sampling and verifying start before the updates of steps t - s to t - 1 and run beside
them. A batch is a function of (seed, step, those weights) and of what the collector
remembers, so a resumed run samples what was under way again, bit for bit.
"""

import collections
import concurrent.futures
import dataclasses
from collections.abc import Callable
from typing import Any

from flax import nnx

from rlvr_jax.train.collect import Batch, Tally
from rlvr_jax.train.policy import copied

Collect = Callable[[nnx.State, int], tuple[Batch, Tally]]


@dataclasses.dataclass
class _Snapshot:
    """State of the collector; filled when its batch begins."""

    state: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class UnderWay:
    """A batch that is being collected, and what it is collected from."""

    weights: nnx.State
    before: _Snapshot
    result: concurrent.futures.Future[tuple[Batch, Tally]]


class Ahead:
    """The batches of a run, collected up to `staleness` steps before their turn."""

    def __init__(
        self,
        collect: Collect,
        state: Callable[[], dict[str, Any]],
        *,
        staleness: int,
        steps: int,
    ):
        """Starts nothing yet.

        Args:
          collect: (weights, step) -> batch; called by one thread, in order of steps.
          state: of the collector, changed by `collect` alone.
          staleness: s; 0 collects when asked.
          steps: of the run; no batch is collected beyond.
        """
        self._collect, self._state = collect, state
        self._staleness, self._steps = staleness, steps
        self._waiting: collections.deque[UnderWay] = collections.deque()
        self._next = 0
        self._failed: dict[str, Any] | None = None
        # One thread: batches follow each other, as the curriculum learns from them.
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1)

    def __call__(
        self, weights: nnx.State, step: int
    ) -> tuple[Batch, Tally, nnx.State, int]:
        """The batch of a step, what it took, its weights, and the age of those.

        Args:
          weights: of the policy of this step.
          step: its number; called once for each, in order.
        """
        if self._staleness == 0:
            return *self._collect_now(weights, step), weights, 0
        if not self._waiting:
            self._next = step
        weights = copied(weights)  # the update donates its own
        while self._next < min(step + self._staleness + 1, self._steps):
            self._start(weights)
        first = self._waiting[0]
        found = first.result.result()  # One that fails stays, for `state`.
        self._waiting.popleft()
        return *found, first.weights, min(step, self._staleness)

    def _collect_now(self, weights: nnx.State, step: int) -> tuple[Batch, Tally]:
        before = self._state()
        try:
            return self._collect(weights, step)
        except Exception:
            self._failed = before
            raise

    def _start(self, weights: nnx.State) -> None:
        step, self._next = self._next, self._next + 1
        before = _Snapshot()

        def run():
            before.state = self._state()
            return self._collect(weights, step)

        self._waiting.append(UnderWay(weights, before, self._thread.submit(run)))

    def behaviour(self, weights: nnx.State) -> tuple[nnx.State, ...]:
        """Weights of the batches under way, oldest first, for a checkpoint.

        Args:
          weights: of the policy now; stands in where less is under way.
        """
        # Where the first has failed there is one more, begun by the policy of now.
        held = [each.weights for each in self._waiting][: self._staleness]
        return tuple([*held, *[weights] * (self._staleness - len(held))])

    def state(self) -> dict[str, Any]:
        """State of the collector before the batch that failed or is first under way."""
        if not self._waiting:
            return self._state() if self._failed is None else self._failed
        first = self._waiting[0]
        concurrent.futures.wait([first.result])
        return first.before.state

    def resume(self, behaviour: tuple[nnx.State, ...] | None, step: int) -> None:
        """Starts again what was under way before step `step`."""
        self._next = step
        for weights in behaviour or ():
            if self._next < self._steps:
                self._start(weights)

    def close(self) -> None:
        """Waits for the batch under way and drops the others."""
        self._thread.shutdown(wait=True, cancel_futures=True)
