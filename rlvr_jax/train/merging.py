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
    """Metrics of several batches, weighed by their groups; states are the last's.

    Example:
      >>> mean_metrics([({"verifier/correct": 0.0}, 6), ({"verifier/correct": 1.0}, 2)])
      {'verifier/correct': 0.25}
    """
    if len(rounds) == 1:
        return rounds[0][0]
    total = sum(groups for _, groups in rounds)
    last = rounds[-1][0]
    return {
        name: value
        if name.startswith(_STATES)
        else sum(found.get(name, 0.0) * groups for found, groups in rounds) / total
        for name, value in last.items()
    }


_STATES = ("judge/", "audit/")
"""Metrics that already sum over the run or over a window."""
