"""The tree that an answer is read into, and its size limits.

A node's `op` says what it is:

    number   value: Fraction; of a decimal, args: significant digits, unit of the last
    symbol   value: the name; also pi, e, i, inf and dots
    add mul  args, any number of them
    neg div pow root(x, n) pm(a, b) mp(a, b)      (a may be absent: pm(b))
    call     value: function name, args
    deg pct  a degree or percent sign after args[0]
    unit     args[0] with value: the words after it
    base     value: (digits, base)
    seq      (a, b], value: the two brackets      set   {a, b}
    list     a, b  with value: the joiner, one of , and or
    groups   a, b; c, d                           ratio a : b
    rel      args with value: the signs between them
    cup cap setminus
    matrix   args: rows, each a seq
    text     value: words that are no mathematics
"""

import math
from collections.abc import Iterator, Set
from fractions import Fraction
from typing import Any, NamedTuple

MAX_CHARACTERS = 4000
"""Of an answer; a longer one is compared as text only."""
MAX_NODES = 1500
MAX_DEPTH = 40
MAX_DIGITS = 2000
"""Of a number as written."""
MAX_BITS = 60_000
"""Of an exact number; 4000! and 1/4000! fit."""


class Node(NamedTuple):
    """A node; see the module's docstring."""

    op: str
    args: tuple["Node", ...] = ()
    value: Any = None


class ParseError(Exception):
    """The text is no mathematics that the grammar knows."""


class TooLarge(Exception):
    """Working this out would take more room or time than an answer deserves."""


class Undefined(Exception):
    """It has no value: a division by zero, or a function outside of its domain."""


def number(value: Fraction | int) -> Node:
    """A number node."""
    return Node("number", (), Fraction(value))


ZERO, ONE, TWO = number(0), number(1), number(2)
INFINITY = Node("symbol", (), "inf")


def negative(node: Node) -> Node:
    """The node with the opposite sign."""
    return Node("neg", (node,))


def walk(node: Node) -> Iterator[Node]:
    """All nodes of a tree."""
    stack = [node]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(each.args)


def symbols(node: Node) -> set[str]:
    """The names of the variables in a tree."""
    constants = ("pi", "e", "i", "inf")
    names = {each.value for each in walk(node) if each.op == "symbol"}
    return names.difference(constants)


def contains(node: Node, ops: Set[str]) -> bool:
    """Whether any node of the tree is one of these."""
    return any(each.op in ops for each in walk(node))


def bits(value: Fraction) -> int:
    """Binary digits of numerator and denominator together."""
    return value.numerator.bit_length() + value.denominator.bit_length()


def power(base: Fraction, exponent: int) -> Fraction:
    """base ** exponent, refused before it is worked out if it would be too large."""
    if base == 0 and exponent < 0:
        raise Undefined("a negative power of zero")
    if base not in (0, 1, -1) and bits(base) * abs(exponent) > 2 * MAX_BITS:
        raise TooLarge("a power with too many digits to work out")
    return base**exponent


def factorial(value: int, step: int = 1) -> int:
    """value!, or value!! with step 2, refused if it would be too large."""
    if value < 0:
        raise Undefined("the factorial of a negative number")
    if value > MAX_BITS or (value > 2 and value * math.log2(value) / step > MAX_BITS):
        raise TooLarge("a factorial too large to work out")
    return math.factorial(value) if step == 1 else math.prod(range(value, 0, -2))


def exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The real root if it is rational, else None."""
    if value < 0:
        if degree % 2 == 0:
            return None
        opposite = exact_root(-value, degree)
        return None if opposite is None else -opposite
    top = _integer_root(value.numerator, degree)
    bottom = _integer_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _integer_root(value: int, degree: int) -> int | None:
    if value in (0, 1):
        return value
    if degree >= value.bit_length():
        return None
    if degree == 2:
        root = math.isqrt(value)
    else:  # Newton from above
        root = 1 << -(-value.bit_length() // degree)
        while True:
            power_below = root ** (degree - 1)
            lower = ((degree - 1) * root + value // power_below) // degree
            if lower >= root:
                break
            root = lower
    return root if root**degree == value else None
