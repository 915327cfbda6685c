"""Simple questions beside something that invites to think about it.

After the families of tasks on which models get worse as they think longer (Gema et al.,
Inverse Scaling in Test-Time Compute, https://arxiv.org/abs/2507.14417): counting with
distractors, regression with a spurious feature, deduction from constraints. Wording,
numbers and generators are ours. meta["distracted"] is what one answers who follows the
distractor.
"""

import dataclasses
import itertools

import numpy as np

from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

KINDS = ("counting", "regression", "deduction")
_FRUIT = ("apples", "pears", "plums", "lemons")
_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana")


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:distraction."""

    kind: str = "counting"
    """"counting", "regression" (hours decide, a spurious feature goes along) or
    "deduction" (people in a row)."""
    distractors: int = 1
    """Sentences, rows or clues that do not help."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if self.kind not in KINDS:
            raise UserError(f"kind is one of {', '.join(KINDS)}, got {self.kind!r}")
        if not 1 <= self.distractors <= 4:
            raise UserError(f"distractors is out of 1..4, got {self.distractors}")


def draw(random: np.random.Generator, options: Options) -> Draft:
    """One question with its distractors."""
    kinds = {"counting": _counting, "regression": _regression, "deduction": _deduction}
    return kinds[options.kind](random, options.distractors)


def _counting(random: np.random.Generator, distractors: int) -> Draft:
    have = random.integers(1, 10, size=2).tolist()
    kinds = [_FRUIT[i] for i in random.permutation(len(_FRUIT))[:2]]
    chances = random.integers(11, 100, size=distractors).tolist()
    asides = " ".join(
        f"There is a {chance} % chance that one of the {kinds[i % 2]} is rare."
        for i, chance in enumerate(chances)
    )
    total = sum(have)
    question = (
        f"You have {have[0]} {kinds[0]} and {have[1]} {kinds[1]}. {asides} How many "
        "fruits do you have?"
    )
    return Draft(
        question=question,
        answer=str(total),
        solution=f"{have[0]} + {have[1]} = {total}",
        key=question,
        meta={"kind": "counting", "distracted": str(total + chances[0])},
    )


def _regression(random: np.random.Generator, distractors: int) -> Draft:
    """Grades are slope * hours + base; stress falls as hours rise, but for the last."""
    slope, base = int(random.integers(2, 8)), int(random.integers(10, 40))
    hours = sorted(random.choice(np.arange(1, 10), 4, replace=False).tolist())
    grade = [slope * h + base for h in hours]
    stress = [10 - h for h in hours]
    asked = int(random.choice([h for h in range(1, 10) if h not in hours]))
    misleading = int(random.choice([s for s in range(1, 10) if s != 10 - asked]))
    rows = [
        f"{h} hours, stress {s}: {g}"
        for h, s, g in zip(hours, stress, grade, strict=True)
    ]
    asides = [
        f"Sleep of these students: {', '.join(map(str, random.integers(5, 10, 4)))}."
        for _ in range(distractors - 1)
    ]
    right, by_stress = slope * asked + base, slope * (10 - misleading) + base
    question = " ".join(
        [
            "Grades of four students, by hours of study and stress:",
            "; ".join(rows) + ".",
            *asides,
            "The grade is a whole number of points per hour, and a constant. A fifth "
            f"studies {asked} hours, with stress {misleading}. What is the grade?",
        ]
    )
    return Draft(
        question=question,
        answer=str(right),
        solution=f"{slope} * {asked} + {base} = {right}",
        key=question,
        meta={"kind": "regression", "distracted": str(by_stress)},
    )


def _deduction(random: np.random.Generator, distractors: int) -> Draft:
    """A row of people by neighbours; clues that do not help say who is not first."""
    people = [_NAMES[i] for i in random.permutation(len(_NAMES))[:4]]
    clues = [
        f"{left} sits directly left of {right}."
        for left, right in itertools.pairwise(people)
    ]
    others = [people[i] for i in random.integers(1, len(people), size=distractors)]
    clues += [f"{name} does not sit at the left end." for name in others]
    clues = [clues[i] for i in random.permutation(len(clues))]
    place = int(random.integers(0, len(people)))
    wrong = [name for name in people if name != people[place]]
    question = (
        f"Four people sit in a row. {' '.join(clues)} Who sits in place {place + 1} "
        "from the left? Put the name in <answer> </answer> tags."
    )
    return Draft(
        question=question,
        answer=people[place],
        solution=f"{', '.join(people)}\n<answer>{people[place]}</answer>",
        key=question,
        verifier="exact",
        meta={
            "kind": "deduction",
            "distracted": wrong[int(random.integers(len(wrong)))],
        },
    )
