"""Sums, differences and products of whole numbers: "6 + 4 =", "What is 2 + 3 * 4?"."""

import dataclasses
import operator
from typing import Any

import numpy as np

from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

_APPLY = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:arithmetic."""

    operators: str = "+-"
    """Any of + - *, each drawn with equal chance."""
    min_operand: int = 0
    max_operand: int = 99
    terms: int = 2
    """Numbers per question; * is done before + and -."""
    guesses: int = 0
    """Of ten solutions to imitate in a cold start, how many are bare guesses instead of
    the worked solution: a base model with a bad habit and a rarer good one, for RL to
    choose from."""
    guess_error: int = 5
    """How far a bare guess is off at most; every error up to it is as likely."""
    twice: int = 0
    """Of ten, how many work it out and then once more: longer, and no better."""
    boxed: bool = False
    r"""Worked solutions, but no guesses, end in \boxed{}: the form comes with the right
    way, as a format reward can find."""
    wording: str = "equation"
    """"equation" ("6 + 4 =") or "question" ("What is 6 + 4?")."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if not self.operators or set(self.operators) - set(_APPLY):
            raise UserError(f"operators are out of '+-*', got {self.operators!r}")
        if not 0 <= self.min_operand <= self.max_operand:
            raise UserError(
                "needs 0 <= min_operand <= max_operand, got "
                f"{self.min_operand} and {self.max_operand}"
            )
        if not 0 <= self.guesses <= 10:
            raise UserError(f"guesses is out of 0..10, got {self.guesses}")
        if self.guess_error < 0:
            raise UserError(f"guess_error is at least 0, got {self.guess_error}")
        if not 0 <= self.twice <= 10 - self.guesses:
            raise UserError(
                f"guesses + twice is out of 0..10, got {self.guesses} + {self.twice}"
            )
        if self.terms < 2:
            raise UserError(f"terms is at least 2, got {self.terms}")
        if self.wording not in ("equation", "question"):
            raise UserError(
                f"wording is 'equation' or 'question', got {self.wording!r}"
            )


def draw(random: np.random.Generator, options: Options) -> Draft:
    """One expression, its value, and the value worked out one operation a line.

    The last line of the solution is the value alone: "2 + 12", "14" for 2 + 3 * 4.
    """
    numbers = random.integers(
        options.min_operand, options.max_operand, size=options.terms, endpoint=True
    ).tolist()
    signs = [
        options.operators[i]
        for i in random.integers(len(options.operators), size=options.terms - 1)
    ]
    text = _text(numbers, signs)
    steps = work_out(numbers, signs)
    question = f"{text} =" if options.wording == "equation" else f"What is {text}?"
    meta: dict[str, Any] = {"operators": "".join(signs)}
    ending = f"\\boxed{{{steps[-1]}}}" if options.boxed else steps[-1]
    worked = "\n".join([*steps[:-1], ending])
    if options.guesses or options.twice:
        far = options.guess_error
        off = random.integers(-far, far, size=options.guesses, endpoint=True).tolist()
        guessed = [str(int(steps[-1]) + by) for by in off]
        again = [f"{worked}\n{worked}"] * options.twice
        once = [worked] * (10 - options.guesses - options.twice)
        meta["solutions"] = [*guessed, *again, *once]
    return Draft(
        question=question,
        answer=steps[-1],
        solution=worked,
        key=_key(numbers, signs),
        meta=meta,
    )


def work_out(numbers: list[int], signs: list[str]) -> list[str]:
    """The expression after each operation, products first, then left to right."""
    numbers, signs, steps = list(numbers), list(signs), []
    while signs:
        place = signs.index("*") if "*" in signs else 0
        value = _APPLY[signs.pop(place)](numbers[place], numbers[place + 1])
        numbers[place : place + 2] = [value]
        steps.append(_text(numbers, signs))
    return steps


def _text(numbers: list[int], signs: list[str]) -> str:
    parts = [str(numbers[0])]
    for sign, number in zip(signs, numbers[1:], strict=True):
        parts += [sign, str(number)]
    return " ".join(parts)


def _key(numbers: list[int], signs: list[str]) -> str:
    """The expression with operands sorted where their order does not matter."""
    if set(signs) in ({"+"}, {"*"}):
        numbers = sorted(numbers)
    return _text(numbers, signs)
