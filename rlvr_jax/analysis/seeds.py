"""What several seeds say: is a step of an ablation larger than the luck of a seed?"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special


def difference_interval(
    before: Sequence[float], after: Sequence[float], level: float = 0.95
) -> tuple[float, float | None, float | None]:
    """Mean of `after` less mean of `before` with Welch's interval.

    Args:
      before: the score of each seed.
      after: of the other arm; not paired.
      level: of the interval.

    Returns:
      (difference, low, high); no ends (None) where no arm has any spread: equal
      scores of a few seeds do not say how far a further one would be.

    Raises:
      ValueError: an arm with fewer than two seeds: one run has no spread.

    Example:
      >>> found = difference_interval([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
      >>> print(tuple(round(value, 2) for value in found))
      (1.0, -1.27, 3.27)
    """
    one, two = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if min(len(one), len(two)) < 2:
        raise ValueError(
            "difference_interval: needs at least 2 seeds in each arm, got "
            f"{len(one)} and {len(two)}."
        )
    parts = one.var(ddof=1) / len(one), two.var(ddof=1) / len(two)
    difference, variance = float(two.mean() - one.mean()), sum(parts)
    if variance == 0:
        return difference, None, None
    freedom = variance**2 / sum(
        part**2 / (len(arm) - 1) for part, arm in zip(parts, (one, two), strict=True)
    )
    half = float(special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance))
    return difference, difference - half, difference + half


def increments(arms: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Each arm of an ablation against the one before it.

    Args:
      arms: name -> the score of each seed, in the order of the ablation.

    Returns:
      one row per arm after the first: "name", "increment" [difference, low, high],
      "seed_range" (largest less smallest score within either arm), and
      "within_seed_range": the increment is no larger than what two seeds of one arm
      differ by.
    """
    rows = []
    for (_, before), (name, after) in itertools.pairwise(arms.items()):
        found = difference_interval(before, after)
        spread = float(max(np.ptp(np.asarray(before)), np.ptp(np.asarray(after))))
        rows.append(
            {
                "name": name,
                "increment": list(found),
                "seed_range": spread,
                "within_seed_range": bool(abs(found[0]) <= spread),
            }
        )
    return rows


def main_effects(
    switches: Float[np.ndarray, "R S"], scores: Float[np.ndarray, " R"]
) -> Float[np.ndarray, " S"]:
    """Of a factorial of on/off switches: mean score with each on less with it off.

    Args:
      switches: 0 or 1, one row per run, all combinations equally often.
      scores: of the runs.

    Returns:
      one effect per switch.

    Raises:
      ValueError: a combination is missing or comes more often, so effects would mix.
    """
    rows, times = np.unique(switches, axis=0, return_counts=True)
    of_two = np.isin(switches, (0, 1)).all() and len(rows) == 2 ** switches.shape[1]
    if not of_two or np.ptp(times) > 0:
        raise ValueError(
            "main_effects: needs every combination of the switches, each 0 or 1, "
            f"equally often; got {len(switches)} runs of {len(rows)} combinations of "
            f"{switches.shape[1]} switches."
        )
    return 2 * ((2 * switches - 1).T @ scores) / len(scores)
