"""Sets of real numbers as unions of intervals, with exact ends.

So that x < 3 is (-inf, 3), and [0, 2] without (0, 1) is {0} and [1, 2].
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from rlvr_jax.verifiers.algebra import numeric, tree
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined

_CLOSE = 1e-40
_MAX_PIECES = 200
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


class End(NamedTuple):
    """An end of an interval: its value to 60 digits, the tree, and the side it cuts.

    `side` is 0 just at the value, 1 just after it: [a, b] runs from (a, 0) to (b, 1),
    (a, b) from (a, 1) to (b, 0). So a set is a sorted list of ends, in pairs.
    """

    value: Any
    node: Node
    side: int


_LOWEST = End(float("-inf"), tree.negative(tree.INFINITY), 1)
_HIGHEST = End(float("inf"), tree.INFINITY, 0)

Ends = list[tuple[End, End]]


def same_set(left: Node, right: Node) -> bool | None:
    """Whether two trees are the same set of reals; None if one is no such set."""
    try:
        first, second = ends(left), ends(right)
    except (Undefined, TooLarge):
        return None
    if first is None or second is None:
        return None
    if len(first) != len(second):
        return False
    return all(
        _same_end(one, other)
        for piece, twin in zip(first, second, strict=True)
        for one, other in zip(piece, twin, strict=True)
    )


def is_set(node: Node) -> bool:
    """Whether the tree speaks of a set of reals, by its form."""
    if node.op == "rel":
        return any(sign in ("<", ">", "<=", ">=", "in", "!=") for sign in node.value)
    if node.op == "list":
        return all(is_set(each) for each in node.args)
    if node.op in ("cup", "cap", "setminus") or _without(node):
        return True
    return node.op == "symbol" and node.value == "\\mathbb{R}"


def ends(node: Node) -> Ends | None:
    """The set as sorted, disjoint intervals; None if it is not one."""
    if node.op == "set":
        return _union([_interval(each, each, 0, 1) for each in node.args])
    if node.op == "seq" and node.value is not None and len(node.args) == 2:
        opening, closing = node.value
        low, high = node.args
        return _interval(low, high, int(opening == "("), int(closing == "]"))
    if node.op == "symbol" and node.value == "\\mathbb{R}":
        return [(_LOWEST, _HIGHEST)]
    node = _without(node) or node
    if node.op in ("cup", "cap", "setminus"):
        first, second = ends(node.args[0]), ends(node.args[1])
        if first is None or second is None:
            return None
        if node.op == "cup":
            return _union([first, second])
        return _meet(first, second if node.op == "cap" else _complement(second))
    if node.op == "list":
        return _listed(node)
    return _relation(node) if node.op == "rel" else None


def _without(node: Node) -> Node | None:
    """A - B of sets, which is written with a minus as well."""
    if node.op != "add" or len(node.args) != 2 or node.args[1].op != "neg":
        return None
    left, right = node.args[0], node.args[1].args[0]
    if right.op in ("set", "seq") and is_set(left):
        return Node("setminus", (left, right))
    return None


def _listed(node: Node) -> Ends | None:
    parts = [ends(each) for each in node.args]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts) or len(known) > _MAX_PIECES:
        return None
    if node.value == "or" or any(each.op != "rel" for each in node.args):
        return _union(known)
    result = known[0]
    for part in known[1:]:
        result = _meet(result, part)
    if node.value == "," and not result:  # x < -2, x > 2
        return _union(known)
    return result


def _relation(node: Node) -> Ends | None:
    """x < a, a <= x < b, x in a set: the values of the one variable."""
    sides, signs = node.args, node.value
    if signs == ("in",):
        return ends(sides[1])
    if any(sign not in _FLIPPED for sign in signs):
        return None
    variables = [i for i, side in enumerate(sides) if tree.symbols(side)]
    if len(variables) != 1:
        return None
    at = variables[0]
    if sides[at].op != "symbol":
        plain = _solved(sides, signs, at)
        return plain and ends(plain)
    result: Ends = [(_LOWEST, _HIGHEST)]
    if at > 0:
        result = _meet(result, _half_line(_FLIPPED[signs[at - 1]], sides[at - 1]))
    if at < len(signs):
        result = _meet(result, _half_line(signs[at], sides[at + 1]))
    if at > 1 or at < len(signs) - 1:
        return None
    return result


def _solved(sides: tuple[Node, ...], signs: tuple, at: int) -> Node | None:
    """3 < 2x + 1 <= 5 as 1 < x <= 2, and |x - 1| < 2 as -1 < x < 3."""
    side = sides[at]
    if side.op == "call" and side.value == "abs" and len(sides) == 2:
        sign, bound = signs[0] if at == 0 else _FLIPPED[signs[0]], sides[1 - at]
        return _distance(sign, side.args[0], bound)
    names = tree.symbols(side)
    line = _line(side, names.pop()) if len(names) == 1 else None
    if line is None:
        return None
    name, slope, offset = line
    moved = tuple(_inverted(each, slope, offset) for each in sides)
    moved = (*moved[:at], Node("symbol", (), name), *moved[at + 1 :])
    flipped = tuple(_FLIPPED[sign] for sign in signs) if slope < 0 else signs
    return Node("rel", moved, flipped)


def _distance(sign: str, inner: Node, bound: Node) -> Node | None:
    """|f| < a as -a < f < a, and |f| > a as f < -a or f > a."""
    opposite = tree.negative(bound)
    if sign in ("<", "<="):
        return Node("rel", (opposite, inner, bound), (sign, sign))
    if sign not in (">", ">="):
        return None
    below = Node("rel", (inner, opposite), (_FLIPPED[sign],))
    return Node("list", (below, Node("rel", (inner, bound), (sign,))), "or")


def _inverted(node: Node, slope: Fraction, offset: Fraction) -> Node:
    """The x at which slope * x + offset is the node."""
    difference = Node("add", (node, tree.number(-offset)))
    return Node("div", (difference, tree.number(slope)))


def _line(node: Node, name: str) -> tuple[str, Fraction, Fraction] | None:
    """The variable, slope and offset of what is linear in it; None of anything else."""
    if tree.contains(node, {"call", "pow", "root", "seq", "set", "text", "unit"}):
        return None
    at = [rational(node, {name: Fraction(x)}) for x in (0, 1, 2, 5)]
    if None in at:
        return None
    zero, one, two, five = (Fraction(each or 0) for each in at)
    slope = one - zero
    if not slope or two - one != slope or five - two != 3 * slope:
        return None
    return name, slope, zero


def _half_line(sign: str, bound: Node) -> Ends:
    if sign == "<":
        return _interval(_LOWEST.node, bound, 1, 0)
    if sign == "<=":
        return _interval(_LOWEST.node, bound, 1, 1)
    if sign == ">":
        return _interval(bound, _HIGHEST.node, 1, 0)
    if sign == ">=":
        return _interval(bound, _HIGHEST.node, 0, 0)
    point = _interval(bound, bound, 0, 1)
    return point if sign == "=" else _complement(point)


def _interval(low: Node, high: Node, low_side: int, high_side: int) -> Ends:
    first, last = _end(low, low_side), _end(high, high_side)
    return [(first, last)] if _before(first, last) else []


def _end(node: Node, side: int) -> End:
    if node == tree.INFINITY:
        return _HIGHEST
    if node == tree.negative(tree.INFINITY):
        return _LOWEST
    return End(numeric.value(node), node, side)


def _before(one: End, other: End) -> bool:
    if _same_value(one, other):
        return one.side < other.side
    return one.value < other.value


def _same_value(one: End, other: End) -> bool:
    if float("inf") in (abs(one.value), abs(other.value)):
        return one.value == other.value
    if abs(one.value - other.value) > _CLOSE * max(1, abs(one.value)):
        return False
    exact = rational(one.node), rational(other.node)
    if None not in exact:
        return exact[0] == exact[1]
    return numeric.equal(one.node, other.node) is True


def _same_end(one: End, other: End) -> bool:
    return one.side == other.side and _same_value(one, other)


def _union(parts: Sequence[Ends]) -> Ends:
    pieces = [piece for part in parts for piece in part]
    if len(pieces) > _MAX_PIECES:
        raise TooLarge("a union of too many intervals")
    pieces.sort(key=lambda piece: (piece[0].value, piece[0].side))
    merged: Ends = []
    for low, high in pieces:
        if merged and not _before(merged[-1][1], low):
            if _before(merged[-1][1], high):
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return merged


def _complement(pieces: Ends) -> Ends:
    result: Ends = []
    start = _LOWEST
    for low, high in pieces:
        if _before(start, low):
            result.append((start, low))
        start = high
    if _before(start, _HIGHEST):
        result.append((start, _HIGHEST))
    return result


def _meet(first: Ends, second: Ends) -> Ends:
    """The intersection, as the complement of the union of complements."""
    return _complement(_union([_complement(first), _complement(second)]))
