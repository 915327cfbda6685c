"""Puts groups of two batches of rollouts together."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.types import Rollouts


def informative_first(
    kept: Bool[np.ndarray, " P"], more_kept: Bool[np.ndarray, " K"]
) -> Int[np.ndarray, " P"]:
    """Which groups of both batches make the new one: those kept first, in their order.

    Example:
      >>> informative_first(np.array([True, False]), np.array([False, True, True]))
      array([0, 3])
    """
    both = np.concatenate([kept, more_kept])
    return np.argsort(~both, kind="stable")[: len(kept)]


class RolloutMerger:
    """Joins groups on the devices; as sampled, so that the train step compiles once."""

    def __init__(self):
        """Compiles nothing yet."""
        self._join: Callable | None = None

    def __call__(
        self, held: Rollouts, more: Rollouts, rows: Int[np.ndarray, " P"]
    ) -> Rollouts:
        """Groups `rows` of both batches, numbered and placed like those of `held`."""
        leaves, structure = jax.tree.flatten(held)
        if self._join is None:
            shardings = [leaf.sharding for leaf in leaves]
            self._join = jax.jit(_joined, out_shardings=shardings)
        found = self._join(leaves, jax.tree.leaves(more), rows)
        merged: Rollouts = jax.tree.unflatten(structure, found)
        return dataclasses.replace(merged, group_id=held.group_id)


def _joined(held, more, rows):
    return [jnp.concatenate([a, b])[rows] for a, b in zip(held, more, strict=True)]


def joined_scores(
    parts: Sequence[Scores], rows: Int[np.ndarray, " K"] | None = None
) -> Scores:
    """Groups of several batches, each copied once; metrics stay those of the first.

    Args:
      parts: at least one.
      rows: which groups, counted through all parts; None: all, in their order.
    """
    first, g = parts[0], parts[0].rewards.shape[1]

    def arrays(name):
        all_of_them = np.concatenate([getattr(part, name) for part in parts])
        return all_of_them if rows is None else all_of_them[rows]

    def lists(name):
        found = [item for part in parts for item in getattr(part, name)]
        if rows is None:
            return found
        return [found[row * g + i] for row in rows.tolist() for i in range(g)]

    return dataclasses.replace(
        first,
        **{name: arrays(name) for name in ("rewards", "correct", "parts")},
        **{name: lists(name) for name in ("texts", "verdicts", "notes")},
    )


def mean_metrics(rounds: list[tuple[dict[str, float], int]]) -> dict[str, float]:
    """Metrics of several batches as those of one.

    Means are weighed by groups, or by what they are means over; counts are added;
    what is over a window is as the last batch left it.

    Example:
      >>> mean_metrics([({"verifier/correct": 0.0}, 6), ({"verifier/correct": 1.0}, 2)])
      {'verifier/correct': 0.25}
      >>> calls = [({"judge/calls": 2.0}, 6), ({"judge/calls": 3.0}, 2)]
      >>> mean_metrics(calls)
      {'judge/calls': 5.0}
    """
    names = dict.fromkeys(name for found, _ in rounds for name in found)
    return {
        name: _merged(name, [each for each in rounds if name in each[0]])
        for name in names
    }


def _merged(name: str, rounds: list[tuple[dict[str, float], int]]) -> float:
    """One metric of the batches that have it."""
    values = [found[name] for found, _ in rounds]
    if name in _OVER_A_WINDOW or len(values) == 1:
        return values[-1]
    if name.startswith("judge/") or name in _COUNTS:
        return sum(values)
    weights: list[float] = [groups for _, groups in rounds]
    if name in _SHARES_OF:
        weights = [
            found[_SHARES_OF[name]] * (1 if _SHARES_OF[name] in _COUNTS else groups)
            for found, groups in rounds
        ]
    pairs = zip(values, weights, strict=True)
    return sum(value * weight for value, weight in pairs) / sum(weights)


_OVER_A_WINDOW = (
    "audit/gap",
    "audit/alarm",
    "audit/false_share",
    "audit/missed_share",
)
_COUNTS = ("audit/completions", "audit/failures")
_SHARES_OF = {
    "audit/accuracy": "audit/completions",
    "audit/strict_accuracy": "audit/completions",
    "noise/paid_correct_share": "noise/paid_share",
    "noise/pattern_advantage": "noise/pattern_share",
}
"""Means over some of the completions -> how many those are, or their share."""
