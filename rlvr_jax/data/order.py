"""Which problems a step trains on: a pure function of (seed, step)."""

import dataclasses
import math

import numpy as np
from jaxtyping import Int

from rlvr_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class PromptOrder:
    """An endless stream of epochs, each a permutation of all problems, cut into steps.

    Step s takes places s * prompts_per_step onwards. An epoch need not divide into
    steps: a step may take the end of one epoch and the start of the next. There is no
    state: a resumed run asks for step s and gets what the uninterrupted run got.

    Every epoch holds each problem once, and no step holds a problem twice, unless
    there are fewer problems than prompts per step.

    Raises:
      UserError: a count below 1, or a negative seed.

    Example:
      >>> order = PromptOrder(num_problems=5, prompts_per_step=2, seed=0)
      >>> sorted(np.concatenate([order.indices(s) for s in range(5)]).tolist())
      [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """

    num_problems: int
    prompts_per_step: int
    seed: int
    shuffle: bool = True
    """False keeps the order 0, 1, ... in every epoch."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if min(self.num_problems, self.prompts_per_step) < 1 or self.seed < 0:
            raise UserError(
                "PromptOrder: needs at least 1 problem, batch.prompts_per_step of at "
                "least 1 and a seed of at least 0, got "
                f"{self.num_problems}, {self.prompts_per_step} and {self.seed}"
            )

    def indices(self, step: int) -> Int[np.ndarray, " P"]:
        """The problems of one step.

        Args:
          step: counted from 0.

        Returns:
          prompts_per_step indices into the problems, int64.

        Raises:
          ValueError: `step` is negative.
        """
        if step < 0:
            raise ValueError(f"PromptOrder: step is counted from 0, got {step}")
        return self.take(step * self.prompts_per_step, self.prompts_per_step)

    def take(self, place: int, count: int) -> Int[np.ndarray, " K"]:
        """The problems at places `place` .. `place + count - 1` of the stream."""
        epoch, place = divmod(place, self.num_problems)
        parts: list[np.ndarray] = [np.empty(0, np.int64)]
        while count:
            parts.append(self._epoch(epoch)[place : place + count])
            count -= len(parts[-1])
            epoch, place = epoch + 1, 0
        return np.concatenate(parts)

    def _epoch(self, epoch: int) -> Int[np.ndarray, " N"]:
        """One epoch, its start rearranged against the step it shares with the last.

        The rearrangement touches the first prompts_per_step places only. So with two
        steps or more to an epoch, the end of the epoch before is its plain permutation
        and one look back is enough; with fewer we look back to the last epoch that
        began with a step of its own, at most prompts_per_step epochs ago.
        """
        size, per_step = self.num_problems, self.prompts_per_step
        if size < per_step:
            return self._permutation(epoch)
        aligned = epoch - epoch % (per_step // math.gcd(size, per_step))
        first = aligned if size < 2 * per_step else max(aligned, epoch - 1)
        order = self._permutation(first)
        for later in range(first + 1, epoch + 1):
            # Places of the shared step that the epoch before has filled.
            filled = later * size % per_step
            taken = order[size - filled :]
            order = self._permutation(later)
            start = order[:per_step]
            clash = np.isin(start, taken)
            order[:per_step] = np.concatenate([start[~clash], start[clash]])
        return order

    def _permutation(self, epoch: int) -> Int[np.ndarray, " N"]:
        if not self.shuffle:
            return np.arange(self.num_problems)
        # Sorting raw bits, not Generator.permutation: numpy promises that the bits of
        # a seeded Philox never change, so old runs resume under a newer numpy.
        bits = np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=(epoch,)))
        return np.argsort(bits.random_raw(self.num_problems), kind="stable")
