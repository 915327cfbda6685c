"""The train step as a run calls it: compiled once for each length of completions."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np

from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.train.collect import Batch
from rlvr_jax.train.micro_batches import packing_for
from rlvr_jax.train.state import StepPlan, TrainState
from rlvr_jax.train.step import Extras, train_step


class Learner:
    """Learns from batches; stages of a curriculum may allow different lengths."""

    def __init__(self, plan: StepPlan, put: Callable[[np.ndarray], jax.Array]):
        """Compiles nothing yet.

        Args:
          plan: of the run's longest completions.
          put: places an array of P rows on the devices.
        """
        self._plan, self._put = plan, put
        self._programs: dict[int, Callable] = {}

    def __call__(
        self,
        state: TrainState,
        batch: Batch,
        extras: Extras | None,
        max_completion_tokens: int,
    ) -> tuple[TrainState, dict[str, float]]:
        """The state after one step, in place of the one given, and its metrics."""
        packing, shares = packing_for(self._plan, batch.rollouts)
        state, metrics = self._program(max_completion_tokens)(
            state,
            batch.rollouts,
            self._put(batch.scores.rewards),
            self._put(batch.scores.correct),
            extras,
            packing,
        )
        return state, {n: float(v) for n, v in fetch(metrics).items()} | shares

    def plan(self, max_completion_tokens: int) -> StepPlan:
        """Of the program for completions of that length."""
        return dataclasses.replace(
            self._plan, max_completion_tokens=max_completion_tokens
        )

    def _program(self, max_completion_tokens: int) -> Callable:
        if max_completion_tokens not in self._programs:
            step = functools.partial(train_step, plan=self.plan(max_completion_tokens))
            self._programs[max_completion_tokens] = jax.jit(step, donate_argnums=0)
        return self._programs[max_completion_tokens]
