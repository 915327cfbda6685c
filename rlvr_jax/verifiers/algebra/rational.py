"""Exact values: what a tree is worth if it is a rational number.

Size is estimated before anything is worked out, so 9!!! costs as little as 9.
"""

import functools
import math
from collections.abc import Mapping
from fractions import Fraction

from rlvr_jax.verifiers.algebra import tree
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined

Point = Mapping[str, Fraction]
_NOWHERE: Point = {}


def rational(node: Node, point: Point = _NOWHERE) -> Fraction | None:
    """The value of a tree, or None if it is no rational number as far as is seen.

    Sees through + - * / powers, roots that come out, factorials, binomials, floors.
    That sin(pi/6) is 1/2 is left to `numeric`.

    Args:
      node: the tree.
      point: values of its variables; without one, a variable has no value.

    Raises:
      tree.TooLarge: the exact value has too many digits.
      tree.Undefined: a division by zero, or the like.
    """
    value = _value(node, point)
    if value is not None and tree.bits(value) > tree.MAX_BITS:
        raise TooLarge("a number of too many digits")
    return value


def _value(node: Node, point: Point) -> Fraction | None:
    op, args = node.op, node.args
    if op == "number":
        return node.value
    if op == "symbol":
        return point.get(node.value)
    if op in ("text", "base", "set", "seq", "list"):
        return None
    if op == "pow":
        return _power(args[0], args[1], point)
    values = []
    for each in args:
        value = rational(each, point)
        if value is None:
            return None
        values.append(value)
    if op == "add":
        return sum(values, Fraction(0))
    if op == "mul":
        return functools.reduce(_times, values)
    if op == "neg":
        return -values[0]
    if op == "div":
        if values[1] == 0:
            raise Undefined("a division by zero")
        return values[0] / values[1]
    if op == "root":
        return _root(values[0], values[1])
    if op == "pct":
        return values[0] / 100
    if op == "call":
        return _call(node.value, values)
    return None


def _times(left: Fraction, right: Fraction) -> Fraction:
    if tree.bits(left) + tree.bits(right) > tree.MAX_BITS:
        raise TooLarge("a product of too many digits")
    return left * right


def _power(base_node: Node, exponent_node: Node, point: Point) -> Fraction | None:
    exponent = rational(exponent_node, point)
    base = rational(base_node, point)
    if base is None or exponent is None:
        return None
    if exponent.denominator == 1:
        return tree.power(base, exponent.numerator)
    root = _root(base, Fraction(exponent.denominator))
    if root is None or base < 0:  # (-8)^(1/3) has three values; none is meant
        return None
    return tree.power(root, exponent.numerator)


def _root(value: Fraction, degree: Fraction) -> Fraction | None:
    if degree.denominator != 1 or degree < 1:
        return None
    return tree.exact_root(value, degree.numerator)


def _call(name: str, values: list[Fraction]) -> Fraction | None:
    first = values[0] if values else Fraction(0)
    whole = all(value.denominator == 1 for value in values)
    if name == "abs" and len(values) == 1:
        return abs(first)
    if name in ("floor", "ceil") and len(values) == 1:
        return Fraction(getattr(math, name)(first))
    if name in ("factorial", "factorial2"):
        if not whole:
            return None
        return Fraction(tree.factorial(int(first), 2 if name == "factorial2" else 1))
    if name == "binomial" and whole and len(values) == 2:
        return _binomial(int(first), int(values[1]))
    if name in ("max", "min") and values:
        return max(values) if name == "max" else min(values)
    if name in ("gcd", "lcm") and whole:
        return Fraction(getattr(math, name)(*map(int, values)))
    return None


def _binomial(n: int, k: int) -> Fraction | None:
    if n < 0 or k < 0:
        return None
    smaller = min(k, n - k)
    if smaller > 0 and smaller * n.bit_length() > tree.MAX_BITS:
        raise TooLarge("a binomial coefficient too large to work out")
    return Fraction(math.comb(n, k))
