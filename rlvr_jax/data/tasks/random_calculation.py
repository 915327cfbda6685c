"""RandomCalculation: fresh chains of arithmetic that no benchmark contains.

From the study of contaminated benchmarks (Wu et al., Reasoning or Memorization?,
https://arxiv.org/abs/2507.10532): atoms are whole numbers 0..100 and their fractions,
squares and cubes, joined by 1 to 20 operations. The reward falls with the distance of
the answer (verifier `closeness`).
"""

import dataclasses
import operator
from fractions import Fraction

import numpy as np

from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

ATOMS = ("whole", "fraction", "square", "cube")
_APPLY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_TRIES = 1_000


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:random_calculation."""

    min_steps: int = 1
    max_steps: int = 5
    """Operations of a chain; the paper trains on 5 and on 10, and goes to 20."""
    max_number: int = 100
    atoms: str = "whole,fraction,square,cube"
    """Which kinds there are, with commas between."""
    max_value: float = 1e6
    """Of the size of every intermediate result."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if not 1 <= self.min_steps <= self.max_steps <= 20:
            raise UserError(
                "needs 1 <= min_steps <= max_steps <= 20, got "
                f"{self.min_steps} and {self.max_steps}"
            )
        if not self.kinds or set(self.kinds) - set(ATOMS):
            raise UserError(f"atoms are out of {','.join(ATOMS)}, got {self.atoms!r}")
        if self.max_number < 1:
            raise UserError(f"max_number is at least 1, got {self.max_number}")

    @property
    def kinds(self) -> list[str]:
        """The atoms as a list."""
        return [kind.strip() for kind in self.atoms.split(",") if kind.strip()]


def draw(random: np.random.Generator, options: Options) -> Draft:
    """A chain, each operation on the result of those before it.

    Raises:
      UserError: no chain within max_value in many tries.
    """
    steps = int(random.integers(options.min_steps, options.max_steps, endpoint=True))
    for _ in range(_TRIES):
        text, value = _atom(random, options)
        lines = []
        for number in range(steps):
            sign = "+-*/"[random.integers(4)]
            other, by = _atom(random, options)
            if sign == "/" and by == 0:
                break
            value = _APPLY[sign](value, by)
            if abs(value) > options.max_value:
                break
            text = (
                f"{text} {sign} {other}" if number == 0 else f"({text}) {sign} {other}"
            )
            lines.append(f"{text} = {as_decimal(value)}")
        else:
            return _draft(text, value, lines, steps)
    raise UserError(
        f"found no chain of {steps} operations that stays below {options.max_value:g} "
        f"in {_TRIES} tries; raise max_value or lower max_number"
    )


def as_decimal(value: Fraction) -> str:
    """The value to 12 significant digits; whole numbers in full.

    Example:
      >>> as_decimal(Fraction(22, 7)), as_decimal(Fraction(-40))
      ('3.14285714286', '-40')
    """
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.12g}"


def _atom(random: np.random.Generator, options: Options) -> tuple[str, Fraction]:
    kinds, top = options.kinds, options.max_number
    kind = kinds[random.integers(len(kinds))]
    number = int(random.integers(0, top, endpoint=True))
    match kind:
        case "fraction":
            below = int(random.integers(1, top, endpoint=True))
            return f"({number} / {below})", Fraction(number, below)
        case "square":
            return f"{number}^2", Fraction(number**2)
        case "cube":
            return f"{number}^3", Fraction(number**3)
    return str(number), Fraction(number)


def _draft(text: str, value: Fraction, lines: list[str], steps: int) -> Draft:
    answer = as_decimal(value)
    return Draft(
        question=f"Calculate {text}. Put the result, as a decimal number, in <answer> "
        "</answer> tags.",
        answer=answer,
        solution="\n".join([*lines, f"<answer>{answer}</answer>"]),
        key=text,
        verifier="closeness",
        meta={"steps": steps},
    )
