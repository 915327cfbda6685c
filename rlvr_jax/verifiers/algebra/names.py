"""Names before a sign of equality, and what is worth the value after it."""

from typing import NamedTuple

from rlvr_jax.verifiers.algebra import numeric, tree
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.scalars import decimal, same_scalar
from rlvr_jax.verifiers.algebra.tree import Node, Undefined

EQUALITIES = frozenset(["=", "~"])


_KNOWN = frozenset(
    "sin cos tan cot sec csc asin acos atan ln log lg exp floor ceil max min gcd lcm "
    "factorial factorial2 binomial sinh cosh tanh asinh".split()
)


TRIGONOMETRIC = frozenset("sin cos tan cot sec csc".split())


class Element(NamedTuple):
    """A member of a list, with the name it was given, as x in x = 3."""

    name: Node | None
    value: Node


def as_element(node: Node) -> Element:
    """The name and the value of x = 3, 3 = x or x in S; no name for anything else."""
    if node.op == "rel" and set(node.value) <= EQUALITIES | {"in"}:
        if is_name(node.args[0]):
            rest = node.args[1:]
            if len(rest) == 1:
                return Element(node.args[0], rest[0])
            chain = Node("rel", rest, node.value[1:])
            return Element(node.args[0], chained(chain))
        left, right = node.args[0], node.args[-1]
        equal = set(node.value) <= EQUALITIES and len(node.args) == 2
        if equal and right.op == "symbol" and not tree.symbols(left):
            return Element(right, left)  # 5 = x
    return Element(None, node)


def unnamed(node: Node) -> Node:
    """What is left when the name before = or in is taken away."""
    if node.op != "rel" or not set(node.value) <= EQUALITIES | {"in"}:
        return node
    element = as_element(node)
    if element.name is not None:
        return element.value
    if not tree.symbols(node):
        return chained(node)
    return node


def chained(node: Node) -> Node:
    """The value of a chain a = b ~ c whose steps hold.

    Raises:
      Undefined: a step does not hold, so that the chain says several things.
    """
    for left, right, sign in zip(node.args, node.args[1:], node.value, strict=False):
        holds = same_scalar(left, right)
        if not holds and sign == "~":
            holds = _approximately(left, right)
        if not holds:
            raise Undefined("an equation that does not hold")
    return node.args[0]


def _approximately(left: Node, right: Node) -> bool:
    """Whether the right side is the left side, rounded or cut off where it ends."""
    written = decimal(right)
    value = rational(right)
    if value is None:
        return False
    unit = written.unit if written else 1
    try:
        return abs(numeric.value(left) - float(value)) < float(unit)
    except Undefined:
        return False


def is_name(node: Node) -> bool:
    """Whether it can stand before = as the name of what comes after."""
    if node.op == "symbol":
        return node.value not in ("pi", "e", "inf", "dots")
    if node.op == "text":
        return True
    if node.op == "call":
        if node.value in TRIGONOMETRIC:  # tan A = 3/4 answers what tan A is
            return all(each.op == "symbol" and is_name(each) for each in node.args)
        return node.value not in _KNOWN and all(map(_is_argument, node.args))
    if node.op in ("seq", "ratio", "mul", "div"):
        return all(map(is_name, node.args))
    return False


def _is_argument(node: Node) -> bool:
    return not tree.contains(node, {"rel"})
