"""How often each problem was solved, as training saw it: the memory of the rules."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rlvr_jax.errors import UserError

BINS = 10


class PassRates:
    """Counts of N problems; part of every checkpoint.

    Example:
      >>> rates = PassRates(3)
      >>> rates.record(np.array([0, 2]), np.array([[1, 1], [1, 0]]), step=5)
      >>> rates.estimate()
      array([1. , nan, 0.5])
    """

    def __init__(self, num_problems: int):
        """Nothing tried yet."""
        self.correct = np.zeros(num_problems, np.int64)
        self.sampled = np.zeros(num_problems, np.int64)
        self.latest_correct = np.zeros(num_problems, np.int64)
        self.latest_sampled = np.zeros(num_problems, np.int64)
        self.last_step = np.full(num_problems, -1, np.int64)

    def record(
        self,
        indices: Int[np.ndarray, " P"],
        correct: Float[np.ndarray, "P G"] | Int[np.ndarray, "P G"],
        step: int,
    ) -> None:
        """Takes note of one group for each of the problems `indices`.

        Args:
          indices: the problems.
          correct: 1 where a completion was, 0 where not.
          step: when.
        """
        solved = np.asarray(correct).sum(axis=1).astype(np.int64)
        np.add.at(self.correct, indices, solved)
        np.add.at(self.sampled, indices, correct.shape[1])
        self.latest_correct[indices] = solved
        self.latest_sampled[indices] = correct.shape[1]
        self.last_step[indices] = step

    def estimate(
        self,
        *,
        of: str = "latest",
        prior_count: float | int = 0.0,
        prior: Float[np.ndarray, " N"] | None = None,
    ) -> Float[np.ndarray, " N"]:
        r"""The pass rate of each problem.

            (c + m q) / (n + m)

        With c correct of n completions and a prior mean q that counts for m of them:
        the mean of the posterior under Beta(m q, m (1 - q)).

        Args:
          of: "latest": c and n of the last group; "all": of all of them.
          prior_count: m; 0 leaves c / n.
          prior: q of each problem, NaN where unknown (then 0.5).

        Returns:
          Rates, [N]. NaN where nothing was sampled and m is 0, unless q is known.
        """
        if of == "latest":
            c, n = self.latest_correct, self.latest_sampled
        else:
            c, n = self.correct, self.sampled
        q = np.full(len(n), np.nan) if prior is None else prior
        mean = np.where(np.isnan(q), 0.5, q)
        total = n + prior_count
        with np.errstate(invalid="ignore"):
            rates = (c + prior_count * mean) / np.where(total == 0, np.nan, total)
        return np.where(total == 0, q, rates)

    def histogram(self, of: str = "latest") -> Int[np.ndarray, " K"]:
        """Problems by pass rate: [0, .1), [.1, .2), ..., [.9, 1) and exactly 1.

        Those that were never tried are not counted.

        Args:
          of: as in `estimate`.

        Returns:
          Counts, [11].
        """
        latest = of == "latest"
        c = self.latest_correct if latest else self.correct
        n = self.latest_sampled if latest else self.sampled
        tried = n > 0
        # Whole numbers: 3 of 10 is 0.3 exactly, and belongs to [.3, .4).
        return np.bincount(c[tried] * BINS // n[tried], minlength=BINS + 1)

    def state(self) -> dict[str, list[int]]:
        """As JSON values."""
        return {name: values.tolist() for name, values in vars(self).items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Puts back what `state` gave.

        Raises:
          UserError: it was of another number of problems.
        """
        for name in vars(self):
            values = np.array(state[name], np.int64)
            if len(values) != len(self.correct):
                raise UserError(
                    f"curriculum: the checkpoint knows {len(values)} problems and the "
                    f"data has {len(self.correct)}; restore the files of data.train, "
                    "or choose another --config.run_dir"
                )
            setattr(self, name, values)
