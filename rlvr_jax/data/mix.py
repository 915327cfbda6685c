"""A mix of domains in given shares: still a pure function of (seed, step)."""

import dataclasses
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Int

from rlvr_jax.data import names
from rlvr_jax.data.order import PromptOrder
from rlvr_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class MixedOrder:
    """Streams of several domains, joined so that each has its share of every stretch.

    The first domain gets place n where floor((n + 1) w) > floor(n w), w being its
    share; the second does the same with the places left over, and so on. So of any n
    places a domain has its share of n to within about one, and a domain's own problems
    come in epochs, as `PromptOrder` has them. There is no state.

    No step holds a problem twice as long as each domain's share of a step is a whole
    number and no larger than the domain.

    Example:
      >>> order = MixedOrder([np.arange(6), np.array([6, 7])], [3, 1], 4, seed=0)
      >>> [int((order.indices(step) >= 6).sum()) for step in range(3)]
      [1, 1, 1]
    """

    domains: Sequence[Int[np.ndarray, " _"]]
    """The problems of each domain; none is empty."""
    weights: Sequence[float | int]
    """Of each domain, above 0; they need not sum to 1."""
    prompts_per_step: int
    seed: int
    shuffle: bool = True

    def indices(self, step: int) -> Int[np.ndarray, " P"]:
        """The problems of one step, counted from 0."""
        return self.take(step * self.prompts_per_step, self.prompts_per_step)

    def take(self, place: int, count: int) -> Int[np.ndarray, " K"]:
        """The problems at places `place` .. `place + count - 1` of the stream."""
        found = np.empty(count, np.int64)
        targets, start = np.arange(count), place
        for number, share in enumerate(self._shares()):
            # Exact: a float would lose places late in a long run.
            until = lambda n, share=share: n * share.numerator // share.denominator
            before, after = until(start), until(start + len(targets))
            mine = np.array(
                [until(start + i + 1) > until(start + i) for i in range(len(targets))],
                bool,
            )
            own = self._order(number).take(before, after - before)
            found[targets[mine]] = self.domains[number][own]
            targets, start = targets[~mine], start - before
        return found

    def _shares(self) -> list[Fraction]:
        """Each domain's share of the places that those before it leave."""
        weights = [Fraction(str(weight)) for weight in self.weights]
        return [weight / sum(weights[i:]) for i, weight in enumerate(weights)]

    def _order(self, number: int) -> PromptOrder:
        size = len(self.domains[number])
        share = Fraction(str(self.weights[number])) / sum(
            Fraction(str(weight)) for weight in self.weights
        )
        per_step = max(1, math.ceil(share * self.prompts_per_step))
        seed = self.seed + 2**32 * (1 + zlib.crc32(str(number).encode()))
        return PromptOrder(size, per_step, seed, self.shuffle)


def parse_mix(mix: str | Mapping, domains: Sequence[str], setting: str) -> dict:
    """Domain -> weight, each known and above 0; {} for no mix.

    Args:
      mix: JSON, or what it holds.
      domains: those that there are problems of.
      setting: its name, for the message.

    Raises:
      UserError: no JSON object of numbers above 0, or an unknown domain.
    """
    try:
        found = json.loads(mix) if isinstance(mix, str) else mix
    except json.JSONDecodeError as error:
        raise UserError(f"{setting} is not JSON ({error}), got {mix!r}") from None
    if not isinstance(found, Mapping) or not all(
        type(weight) in (int, float) and 0 < weight < math.inf
        for weight in found.values()
    ):
        raise UserError(
            f"{setting} needs a weight above 0 for each domain, as "
            f'\'{{"gsm8k": 3, "countdown": 1}}\', got {mix!r}'
        )
    for name in found:
        if name not in domains:
            raise UserError(names.unknown("domain", name, sorted(domains), setting))
    return dict(found)
