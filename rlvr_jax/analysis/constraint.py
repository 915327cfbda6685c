"""Is the base model what binds? Three lines of evidence that have to agree.

"RL amplifies; it does not conjure" makes three predictions, each of another experiment:
RL gains more after the base was taught a behaviour than before; a reward that knows
nothing still raises what the base already tends to, and nothing else; and over several
bases the gain of one and the same RL follows how often each shows the behaviour.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rlvr_jax.analysis.correlation import rank_correlation
from rlvr_jax.analysis.hypotheses import (
    AGAINST,
    SUPPORTED,
    UNCLEAR,
    UNTESTED,
    Verdict,
)
from rlvr_jax.analysis.seeds import difference_interval

_ALL_ORDERS = 8
"""Families up to which every order is looked at."""


def binding_constraint(
    *,
    primed: Sequence[float] = (),
    unprimed: Sequence[float] = (),
    spurious_likely: Sequence[float] = (),
    spurious_unlikely: Sequence[float] = (),
    families: Mapping[str, tuple[float, float]] | None = None,
) -> list[Verdict]:
    """The three predictions and what was seen of each.

    A line speaks for or against at the 95 % level; what lies between is "open", and
    fewer than two seeds in an arm, or four families, are "not tested".

    Args:
      primed: gain of RL, one per seed, from a base that was shown the behaviour.
      unprimed: of the same RL from the same base as it was.
      spurious_likely: gain under rewards that read nothing, where the base tends to
        the right way (a family with the behaviour, a benchmark it has seen).
      spurious_unlikely: the same where it does not.
      families: name -> (rate of the behaviour in the base, gain of RL).

    Returns:
      one row each.

    References:
      Gandhi et al. 2025. https://arxiv.org/abs/2503.01307
      Spurious Rewards. https://arxiv.org/abs/2506.10947
      SimpleRL-Zoo. https://arxiv.org/abs/2503.18892

    Example:
      >>> rows = binding_constraint(primed=[0.5, 0.6, 0.5], unprimed=[0.0, 0.02, 0.1])
      >>> [row.verdict for row in rows]
      ['supported', 'not tested', 'not tested']
    """
    return [
        _contrast("priming: RL gains more once it is shown", unprimed, primed),
        _contrast(
            "spurious rewards: only what is likely gains",
            spurious_unlikely,
            spurious_likely,
        ),
        _across(families or {}),
    ]


def _contrast(name: str, less: Sequence[float], more: Sequence[float]) -> Verdict:
    if min(len(less), len(more)) < 2:
        return Verdict(name, UNTESTED, "needs two seeds or more in each arm")
    mean, low, high = difference_interval(less, more)
    if low is None or high is None:
        return Verdict(name, UNCLEAR, f"{mean:+.3f}; the seeds have no spread")
    seen = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
    if low > 0:
        return Verdict(name, SUPPORTED, seen)
    return Verdict(name, AGAINST if high < 0 else UNCLEAR, seen)


def _across(families: Mapping[str, tuple[float, float]]) -> Verdict:
    name = "families: the gain follows the base's rate"
    if len(families) < 4:
        return Verdict(name, UNTESTED, "needs four families or more")
    rates, gains = np.array(list(families.values()), np.float64).T
    together = rank_correlation(rates, gains)
    if together is None:
        return Verdict(name, UNCLEAR, "all rates or all gains are equal")
    chance = _chance(rates, gains, abs(together))
    seen = f"rank correlation {together:+.2f}, p {chance:.3f} of {len(families)}"
    if chance > 0.05:
        return Verdict(name, UNCLEAR, seen)
    return Verdict(name, SUPPORTED if together > 0 else AGAINST, seen)


def _chance(rates: np.ndarray, gains: np.ndarray, at_least: float) -> float:
    """Of a correlation so far from 0 on one side, where the order means nothing."""
    if len(rates) > _ALL_ORDERS:
        return math.erfc(at_least * math.sqrt((len(rates) - 1) / 2)) / 2
    found = [
        rank_correlation(rates, np.array(order)) or 0.0
        for order in itertools.permutations(gains)
    ]
    return sum(each >= at_least - 1e-9 for each in found) / len(found)
