"""Countdown: reach a target with given numbers, each used once, by + - * /.

Defaults as in TinyZero's data set (github.com/Jiayi-Pan/TinyZero): 3 or 4 numbers in
1..100, target in 1..1000, every number used exactly once.
"""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

MAX_NUMBERS = 6
_TRIES = 1_000

_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_WHOLE = _EXACT | {"/": operator.floordiv}
_BRACKETED_ON_THE_RIGHT_OF = {
    "+": frozenset(),
    "-": frozenset("+-"),
    "*": frozenset("+-"),
    "/": frozenset("+-*/"),
}


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
        if not 2 <= self.min_numbers <= self.max_numbers <= MAX_NUMBERS:
            raise UserError(
                f"needs 2 <= min_numbers <= max_numbers <= {MAX_NUMBERS}, got "
                f"{self.min_numbers} and {self.max_numbers}"
            )
        for low, high in (("min_number", "max_number"), ("min_target", "max_target")):
            if not 0 <= getattr(self, low) <= getattr(self, high):
                raise UserError(
                    f"needs 0 <= {low} <= {high}, got {getattr(self, low)} and "
                    f"{getattr(self, high)}"
                )
        if not self.operators or set(self.operators) - set("+-*/"):
            raise UserError(f"operators are out of '+-*/', got {self.operators!r}")
        if self.wording not in ("question", "short"):
            raise UserError(f"wording is 'question' or 'short', got {self.wording!r}")


class Node(NamedTuple):
    """A value and how it came about: a given number, or left sign right."""

    value: Fraction | int
    sign: str = ""
    left: "Node | None" = None
    right: "Node | None" = None


def draw(random: np.random.Generator, options: Options) -> Draft:
    """Numbers and a target that the worked solution reaches.

    The target is made by joining the numbers in random order with random operators
    over whole numbers, so every problem has a solution. Its steps come first in
    `solution`, then the expression in <answer> tags.

    Raises:
      UserError: no target within the range in many tries.
    """
    for _ in range(_TRIES):
        count = random.integers(options.min_numbers, options.max_numbers, endpoint=True)
        numbers = random.integers(
            options.min_number, options.max_number, size=count, endpoint=True
        ).tolist()
        node = _join_at_random(numbers, options.operators, random)
        if node and options.min_target <= node.value <= options.max_target:
            return _draft(numbers, node, options.wording)
    raise UserError(
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
    node = _search([Node(Fraction(number)) for number in numbers], Fraction(target))
    return node and text_of(node)


def text_of(node: Node) -> str:
    """The expression, with brackets only where precedence asks for them."""
    if node.left is None or node.right is None:
        return str(node.value)
    left, right = text_of(node.left), text_of(node.right)
    if node.sign in "*/" and node.left.sign in {"+", "-"}:
        left = f"({left})"
    if node.right.sign in _BRACKETED_ON_THE_RIGHT_OF[node.sign]:
        right = f"({right})"
    return f"{left} {node.sign} {right}"


def steps_of(node: Node) -> list[str]:
    """The operations in the order in which they can be done: "3 * 4 = 12"."""
    if node.left is None or node.right is None:
        return []
    step = f"{node.left.value} {node.sign} {node.right.value} = {node.value}"
    return [*steps_of(node.left), *steps_of(node.right), step]


def _search(nodes: list[Node], target: Fraction) -> Node | None:
    if len(nodes) == 1:
        return nodes[0] if nodes[0].value == target else None
    for i, j in itertools.permutations(range(len(nodes)), 2):
        left, right = nodes[i], nodes[j]
        rest = [node for k, node in enumerate(nodes) if k not in (i, j)]
        for sign, apply in _EXACT.items():
            if (sign in "+*" and i > j) or (sign == "/" and right.value == 0):
                continue
            joined = Node(apply(left.value, right.value), sign, left, right)
            if found := _search([joined, *rest], target):
                return found
    return None


def _join_at_random(
    numbers: list[int], operators: str, random: np.random.Generator
) -> Node | None:
    """One node from all numbers; None where a value is negative or not whole."""
    nodes = [Node(number) for number in numbers]
    while len(nodes) > 1:
        random.shuffle(nodes)
        right, left = nodes.pop(), nodes.pop()
        sign = operators[random.integers(len(operators))]
        if sign == "/" and (right.value == 0 or left.value % right.value):
            return None
        value = _WHOLE[sign](left.value, right.value)
        if value < 0:
            return None
        nodes.append(Node(value, sign, left, right))
    return nodes[0]


def _draft(numbers: list[int], node: Node, wording: str) -> Draft:
    target = int(node.value)
    question = " ".join(map(str, numbers)) + f" -> {target}"
    if wording == "question":
        question = (
            f"Use each of the numbers {', '.join(map(str, numbers))} exactly once, "
            "with +, -, *, / and parentheses, to make an expression equal to "
            f"{target}. Put the expression in <answer> </answer> tags."
        )
    steps = [*steps_of(node), f"<answer>{text_of(node)}</answer>"]
    return Draft(
        question=question,
        answer={"target": target, "numbers": numbers},
        solution="\n".join(steps),
        key=f"{sorted(numbers)} {target}",
        verifier="countdown",
    )
