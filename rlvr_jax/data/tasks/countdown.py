"""Countdown: reach a target with given numbers, each used once, by + - * /.

Defaults as in TinyZero's data set (github.com/Jiayi-Pan/TinyZero): 3 or 4 numbers in
1..100, target in 1..1000, every number used exactly once.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from rlvr_jax.data.tasks.draft import Draft, check_type

MAX_NUMBERS = 6
_TRIES = 1_000


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:countdown."""

    min_numbers: int = 3
    max_numbers: int = 4
    min_number: int = 1
    max_number: int = 100
    min_target: int = 1
    max_target: int = 1000
    operators: str = "+-*/"
    """Those the worked solution may use; an answer may always use all four."""
    wording: str = "question"
    """"question" (a full instruction) or "short" ("3 5 7 -> 22")."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        check_type(self)
        if not 2 <= self.min_numbers <= self.max_numbers <= MAX_NUMBERS:
            raise ValueError(
                f"needs 2 <= min_numbers <= max_numbers <= {MAX_NUMBERS}, got "
                f"{self.min_numbers} and {self.max_numbers}"
            )
        for low, high in (("min_number", "max_number"), ("min_target", "max_target")):
            if not 0 <= getattr(self, low) <= getattr(self, high):
                raise ValueError(
                    f"needs 0 <= {low} <= {high}, got {getattr(self, low)} and "
                    f"{getattr(self, high)}"
                )
        if not self.operators or set(self.operators) - set("+-*/"):
            raise ValueError(f"operators are out of '+-*/', got {self.operators!r}")
        if self.wording not in ("question", "short"):
            raise ValueError(f"wording is 'question' or 'short', got {self.wording!r}")


@dataclasses.dataclass(frozen=True)
class Term:
    """A value, an expression that has it, and the operations that led to it."""

    value: Fraction
    text: str
    steps: tuple[str, ...] = ()


def draw(random: np.random.Generator, options: Options) -> Draft:
    """Numbers and a target that the worked solution reaches.

    The target is made by joining the numbers in random order with random operators
    over whole numbers, so every problem has a solution. Its steps come first in
    `solution`, then the expression in <answer> tags.

    Raises:
      ValueError: no target within the range in many tries.
    """
    for _ in range(_TRIES):
        count = random.integers(options.min_numbers, options.max_numbers, endpoint=True)
        numbers = random.integers(
            options.min_number, options.max_number, size=count, endpoint=True
        ).tolist()
        term = _join_at_random(numbers, options.operators, random)
        if term and options.min_target <= term.value <= options.max_target:
            return _draft(numbers, term, options.wording)
    raise ValueError(
        f"found no target between {options.min_target} and {options.max_target} in "
        f"{_TRIES} tries; widen the range of targets or of numbers"
    )


def solve(numbers: Sequence[int], target: int) -> str | None:
    """Searches all expressions that use each number exactly once.

    Exact (fractions, not floats) and complete for + - * / and parentheses, so None
    means that there is no solution. At most 6 numbers; 4 take some milliseconds, 6
    take minutes.

    Args:
      numbers: whole numbers, at least one.
      target: the value to reach.

    Returns:
      An expression, or None.

    Example:
      >>> solve([3, 3, 8, 8], 24)
      '8 / (3 - 8 / 3)'
      >>> solve([1, 1], 5) is None
      True
    """
    return _search([Term(Fraction(n), str(n)) for n in numbers], Fraction(target))


def _search(terms: list[Term], target: Fraction) -> str | None:
    if len(terms) == 1:
        return terms[0].text if terms[0].value == target else None
    for i, j in itertools.permutations(range(len(terms)), 2):
        rest = [term for k, term in enumerate(terms) if k not in (i, j)]
        for sign in "+-*/":
            if sign in "+*" and i > j:
                continue
            joined = _join(terms[i], sign, terms[j])
            if joined and (found := _search([joined, *rest], target)):
                return found
    return None


def _join_at_random(
    numbers: list[int], operators: str, random: np.random.Generator
) -> Term | None:
    """One term from all numbers; None where a difference or quotient is not whole."""
    terms = [Term(Fraction(number), str(number)) for number in numbers]
    while len(terms) > 1:
        i, j = random.permutation(len(terms))[:2]
        joined = _join(terms[i], operators[random.integers(len(operators))], terms[j])
        if joined is None or joined.value < 0 or joined.value.denominator != 1:
            return None
        terms = [term for k, term in enumerate(terms) if k not in (i, j)]
        terms.append(joined)
    return terms[0]


def _join(left: Term, sign: str, right: Term) -> Term | None:
    """left sign right; None for a division by zero."""
    if sign == "/" and right.value == 0:
        return None
    value = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
    }[sign](left.value, right.value)
    text = f"{_wrap(left.text, sign, False)} {sign} {_wrap(right.text, sign, True)}"
    step = f"{left.value} {sign} {right.value} = {value}"
    return Term(value, text, (*left.steps, *right.steps, step))


def _wrap(text: str, sign: str, is_right: bool) -> str:
    """Puts brackets around an operand where precedence asks for them."""
    if sign == "/" and is_right:
        binding = {"+", "-", "*", "/"}
    elif sign in "*/" or (sign == "-" and is_right):
        binding = {"+", "-"}
    else:
        binding = set()
    return f"({text})" if _top_operators(text) & binding else text


def _top_operators(text: str) -> set[str]:
    """The operators of an expression that no bracket encloses."""
    depth, found = 0, set()
    for token in text.replace("(", "( ").replace(")", " )").split():
        depth += (token == "(") - (token == ")")
        if depth == 0 and token in "+-*/":
            found.add(token)
    return found


def _draft(numbers: list[int], term: Term, wording: str) -> Draft:
    target = int(term.value)
    question = " ".join(map(str, numbers)) + f" -> {target}"
    if wording == "question":
        question = (
            f"Use each of the numbers {', '.join(map(str, numbers))} exactly once, "
            "with +, -, *, / and parentheses, to make an expression equal to "
            f"{target}. Put the expression in <answer> </answer> tags."
        )
    steps = [*term.steps, f"<answer>{term.text}</answer>"]
    return Draft(
        question=question,
        answer={"target": target, "numbers": numbers},
        solution="\n".join(steps),
        key=f"{sorted(numbers)} {target}",
        verifier="countdown",
    )
