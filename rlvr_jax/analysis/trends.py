"""Is a logged curve still moving? Slopes with their errors, and whether it rises."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Real
from scipy.optimize import isotonic_regression


class Slope(NamedTuple):
    """A straight line's slope per step, and its standard error."""

    value: float
    error: float

    @property
    def grows(self) -> bool:
        """Above 0 by more than two standard errors."""
        return self.value > 2 * self.error

    @property
    def flat(self) -> bool:
        """Within two standard errors of 0."""
        return abs(self.value) <= 2 * self.error


def slope(steps: Float[np.ndarray, " N"], values: Float[np.ndarray, " N"]) -> Slope:
    r"""Least squares through the points: value +- error per step.

    The error takes the points as independent; where neighbours of a curve move
    together it is too small, and thinning the curve first is the honest thing to do.

    Args:
      steps: where.
      values: what was logged there.

    Returns:
      the slope, in the unit of `values` per step.

    Raises:
      ValueError: fewer than three points, or all at one step.

    Example:
      >>> print(slope(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])).value)
      2.0
    """
    if len(steps) < 3 or np.ptp(steps) == 0:
        raise ValueError(
            f"slope: needs at least 3 points at different steps, got {len(steps)}."
        )
    centred = steps - steps.mean()
    squares = (centred**2).sum()
    value = (centred * values).sum() / squares
    rest = values - values.mean() - value * centred
    error = np.sqrt((rest**2).sum() / (len(steps) - 2) / squares)
    return Slope(float(value), float(error))


class Rise(NamedTuple):
    """A curve's best fit that never falls."""

    fitted: list[float]
    explained: float
    """Share of the curve's variance; 1: it never falls, 0: all of its fit is flat."""
    p: float
    """Share of the orders of the same values whose fit explains as much or more."""


ORDERS = 2000
"""Of the values that a curve is compared with at most."""


def rise(values: Float[np.ndarray, " N"]) -> Rise:
    r"""Does a curve rise? Least squares under f_1 <= f_2 <= ... <= f_N.

        explained = 1 - sum (v - f)^2 / sum (v - mean v)^2

    No form is assumed beside the order, so a curve that saturates counts as one that
    goes on. `p` is a permutation test: over every order of the values where there are
    at most ORDERS, so that three points cannot have one below 1/6, else over the
    curve's own and ORDERS - 1 that are drawn.

    Args:
      values: in the order of steps, of compute or of thinking tokens.

    Raises:
      ValueError: fewer than three values.

    Example:
      >>> found = rise(np.array([0.1, 0.3, 0.2, 0.6]))
      >>> [round(value, 2) for value in found.fitted], round(found.explained, 3)
      ([0.1, 0.25, 0.25, 0.6], 0.964)
      >>> found.p  # of 24 orders: the sorted one, this one and one more as good
      0.125
    """
    if len(values) < 3:
        raise ValueError(f"rise: needs at least 3 values, got {len(values)}.")
    fitted, explained = _rising_fit(values)
    if math.factorial(len(values)) <= ORDERS:
        orders = [np.array(order) for order in itertools.permutations(values)]
    else:
        draws = np.random.default_rng(0)
        orders = [values, *(draws.permutation(values) for _ in range(ORDERS - 1))]
    # Rounding aside: an order that fits as well is as good.
    as_good = [_rising_fit(order)[1] >= explained - 1e-12 for order in orders]
    return Rise(fitted.tolist(), explained, float(np.mean(as_good)))


def in_words(found: Rise) -> str:
    """For reports.

    Example:
      >>> in_words(rise(np.array([0.1, 0.3, 0.2, 0.6])))
      'a curve that never falls explains 96 % of it (p = 0.1250)'
    """
    share = 100 * found.explained
    return f"a curve that never falls explains {share:.0f} % of it (p = {found.p:.4f})"


def _rising_fit(values):
    """The fit, and the share of the variance that it explains."""
    fitted = isotonic_regression(values).x
    spread = ((values - values.mean()) ** 2).sum()
    rest = ((values - fitted) ** 2).sum()
    return fitted, float(1 - rest / spread) if spread > 0 else 0.0


def length_after_the_plateau(
    steps: Float[np.ndarray, " N"],
    reward: Float[np.ndarray, " N"],
    length_wrong: Float[np.ndarray, " N"],
    length_correct: Float[np.ndarray, " N"],
) -> dict[str, Slope]:
    """The slopes of the second half of a run: reward, and length by outcome.

    Under the sequence mean with the group's std, wrong answers may go on growing after
    the reward has flattened ("reward" is flat, "wrong" grows): then the loss rewards
    rambling, not thinking.

    Args:
      steps: where the metrics were logged.
      reward: `reward/mean` or the like.
      length_wrong: `completion/length_wrong`.
      length_correct: `completion/length_correct`.

    Returns:
      slopes by name: "reward", "wrong", "correct".

    References:
      Dr. GRPO, sec. 3.2. https://arxiv.org/abs/2503.20783
    """
    late = steps >= np.median(steps)
    curves = {"reward": reward, "wrong": length_wrong, "correct": length_correct}
    return {name: slope(steps[late], curve[late]) for name, curve in curves.items()}


def steps_to(
    steps: Real[np.ndarray, " N"], values: Float[np.ndarray, " N"], level: float
) -> float | None:
    """The first step at which a curve is at `level` or above; None if it never is.

    Two methods are compared by the steps that each takes to one level, as the final
    score of the slower. Smooth a noisy curve first, or take its mean over seeds: a
    single lucky step counts here.

    Args:
      steps: increasing.
      values: what was logged there.
      level: in the unit of `values`.

    Example:
      >>> curve = np.array([0.1, 0.3, 0.2, 0.6])
      >>> steps_to(np.array([0.0, 10.0, 20.0, 30.0]), curve, 0.3)
      10.0
    """
    reached = np.flatnonzero(values >= level)
    return float(steps[reached[0]]) if len(reached) else None
