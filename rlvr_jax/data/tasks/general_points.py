"""GeneralPoints: four cards make 24, and the rule for J, Q and K may change.

Chu et al., SFT Memorizes, RL Generalizes (https://arxiv.org/abs/2501.17161): trained
with J = Q = K = 10 and tested with 11, 12, 13. The hand decides what is held out, under
either rule, so an evaluation with the other rule has hands that training never had.
"""

import dataclasses
import functools

import numpy as np

from rlvr_jax.data.tasks import countdown
from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

NAMES = {1: "A", 11: "J", 12: "Q", 13: "K"}
RULES = {
    "ten": "J, Q and K each count as 10",
    "rank": "J, Q and K count as 11, 12 and 13",
}
_TRIES = 1_000


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:general_points."""

    faces: str = "ten"
    """What J, Q and K count: "ten", or "rank" (11, 12, 13)."""
    only_faces: bool = False
    """Only hands with at least one of J, Q, K: those that the rule matters for."""
    cards: int = 4
    target: int = 24

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if self.faces not in RULES:
            raise UserError(f"faces is 'ten' or 'rank', got {self.faces!r}")
        if not 2 <= self.cards <= 4:
            raise UserError(f"cards is 2, 3 or 4, got {self.cards}")


def draw(random: np.random.Generator, options: Options) -> Draft:
    """A hand that has a solution under the rule.

    The question says the rule; the reference is that of the verifier `countdown`.

    Raises:
      UserError: no hand with a solution in many tries.
    """
    for _ in range(_TRIES):
        ranks = random.integers(1, 13, size=options.cards, endpoint=True).tolist()
        if options.only_faces and max(ranks) <= 10:
            continue
        numbers = values(ranks, options.faces)
        solution = _solve(tuple(sorted(numbers)), options.target)
        if solution is not None:
            return _draft(ranks, numbers, solution, options)
    raise UserError(
        f"found no hand of {options.cards} cards that makes {options.target} in "
        f"{_TRIES} tries; choose another target"
    )


def values(ranks: list[int], faces: str) -> list[int]:
    """What cards of ranks 1..13 count.

    Example:
      >>> values([1, 7, 11, 13], "ten"), values([1, 7, 11, 13], "rank")
      ([1, 7, 10, 10], [1, 7, 11, 13])
    """
    return [min(rank, 10) for rank in ranks] if faces == "ten" else list(ranks)


@functools.cache
def _solve(numbers: tuple[int, ...], target: int) -> str | None:
    return countdown.solve(numbers, target)


def _draft(
    ranks: list[int], numbers: list[int], solution: str, options: Options
) -> Draft:
    cards = [NAMES.get(rank, str(rank)) for rank in ranks]
    question = (
        f"Your cards are {', '.join(cards)}. An ace (A) counts as 1; "
        f"{RULES[options.faces]}. Use the value of each card exactly once, with +, -, "
        f"*, / and parentheses, to make {options.target}. Put the expression in "
        "<answer> </answer> tags."
    )
    return Draft(
        question=question,
        answer={"target": options.target, "numbers": numbers},
        solution=f"The cards count as {', '.join(map(str, numbers))}.\n"
        f"<answer>{solution}</answer>",
        key=f"{sorted(ranks)} {options.target}",
        verifier="countdown",
        meta={"cards": cards, "faces": options.faces},
    )
