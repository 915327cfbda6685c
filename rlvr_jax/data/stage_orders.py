"""From a stage to the stream of its problems."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rlvr_jax.data.mix import MixedOrder, parse_mix
from rlvr_jax.data.order import PromptOrder
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.stages import Stage
from rlvr_jax.errors import UserError


@runtime_checkable
class Order(Protocol):
    """An endless stream of problems, cut into steps."""

    def indices(self, step: int) -> np.ndarray:
        """The problems of one step."""
        ...

    def take(self, place: int, count: int) -> np.ndarray:
        """Those at `count` places from `place` on."""
        ...


def stage_parts(
    stage: Stage, problems: Sequence[Problem], mix: str
) -> tuple[list[np.ndarray], list[float | int]]:
    """The problems of a stage by domain, and the domains' weights.

    Args:
      stage: what it keeps and mixes.
      problems: all of the training.
      mix: data.mix, for a stage without a mix of its own.

    Returns:
      Indices of the problems, one array per domain of the mix (one for all without a
      mix), and as many weights.

    Raises:
      UserError: a mix is not of its form, forgets a domain, or nothing is kept.
    """
    kept = np.array([_matches(problem, stage.keep) for problem in problems], bool)
    if not kept.any():
        raise UserError(
            f"curriculum.stages: no problem has the fields of keep={stage.keep!r}; "
            f"there are {', '.join(sorted({k for p in problems for k in p.meta}))}"
        )
    domains = [str(problem.meta.get("domain")) for problem in problems]
    setting = "data.mix" if stage.mix is None else "curriculum.stages"
    weights = parse_mix(
        mix if stage.mix is None else stage.mix, sorted(set(domains)), setting
    )
    if not weights:
        return [np.flatnonzero(kept)], [1.0]
    if stage.mix is None and not stage.keep:
        for name in sorted(set(domains) - set(weights)):
            raise UserError(
                f"data.mix gives no weight to the domain {name!r}; leave its source "
                "out of data.train, or give it one"
            )
    parts = {
        name: np.flatnonzero(kept & np.array([domain == name for domain in domains]))
        for name in weights
    }
    parts = {name: part for name, part in parts.items() if len(part)}
    if not parts:
        raise UserError(f"{setting}: no problem of {', '.join(weights)} is kept")
    return list(parts.values()), [weights[name] for name in parts]


def _matches(problem: Problem, keep: dict[str, list[Any]]) -> bool:
    return all(problem.meta.get(field) in values for field, values in keep.items())


def stage_order(
    parts: Sequence[np.ndarray],
    weights: Sequence[float | int],
    per_step: int,
    seed: int,
    shuffle: bool,
) -> Order:
    """The stream of a stage's problems."""
    if len(parts) > 1:
        return MixedOrder(parts, weights, per_step, seed, shuffle)
    plain = PromptOrder(len(parts[0]), per_step, seed, shuffle)
    return _Subset(plain, parts[0])


class _Subset:
    """An order over some of the problems."""

    def __init__(self, order: PromptOrder, members: np.ndarray):
        self._order, self._members = order, members

    def indices(self, step: int) -> np.ndarray:
        return self._members[self._order.indices(step)]

    def take(self, place: int, count: int) -> np.ndarray:
        return self._members[self._order.take(place, count)]


def mix_weights(
    parts: Sequence[np.ndarray], weights: Sequence[float | int], num_problems: int
) -> np.ndarray:
    """A problem's chance under the mix alone; 0 outside of the stage."""
    found = np.zeros(num_problems)
    for part, weight in zip(parts, weights, strict=True):
        found[part] = weight / len(part)
    return found
