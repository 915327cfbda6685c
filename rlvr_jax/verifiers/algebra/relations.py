"""Whether two equations or two inequalities say the same."""

from rlvr_jax.verifiers.algebra import numeric, tree
from rlvr_jax.verifiers.algebra.canonical import key
from rlvr_jax.verifiers.algebra.names import (
    EQUALITIES,
    TRIGONOMETRIC,
    Element,
    as_element,
)
from rlvr_jax.verifiers.algebra.scalars import same_scalar
from rlvr_jax.verifiers.algebra.tree import Node, Undefined

_INEQUALITIES = frozenset(["<", ">", "<=", ">="])
_STRUCTURES = frozenset(
    "seq set list matrix text ratio unit base cup cap setminus".split()
)


def same_relation(gold: Node, answer: Node) -> bool | None:
    """None: both only give names to values, which are to be compared."""
    gold_signs, answer_signs = set(gold.value), set(answer.value)
    if gold_signs <= _INEQUALITIES and answer_signs <= _INEQUALITIES:
        return _same_inequality(gold, answer)
    if gold_signs == answer_signs == {"!="}:
        return numeric.proportional(*map(_difference, (gold, answer))) is not None
    if not (gold_signs | answer_signs) <= EQUALITIES | {"in"}:
        return False
    one, other = as_element(gold), as_element(answer)
    if len(gold.args) == len(answer.args) == 2 and not (
        _has_structure(gold) or _has_structure(answer)
    ):
        if numeric.proportional(*map(_difference, (gold, answer))) is not None:
            return True
        if _solves(gold, one, answer) or _solves(answer, other, gold):
            return True
    if one.name is None or other.name is None:
        return False
    if key(one.name) == key(other.name) or (
        _is_dependent(one) and _is_dependent(other)
    ):
        return None
    return False


def _solves(solved: Node, element: Element, equation: Node) -> bool:
    """Whether y = f is what an equation linear in y says when solved for y."""
    name, value = element.name, element.value
    if name is None or name.op != "symbol" or name.value in tree.symbols(value):
        return False
    if len(solved.args) != 2 or name.value not in tree.symbols(equation):
        return False
    if tree.symbols(equation) != tree.symbols(solved):
        return False
    difference = _difference(equation)
    at = [_at(difference, name, tree.number(value)) for value in (0, 1, 2)]
    bend = Node("add", (at[0], Node("mul", (tree.number(-2), at[1])), at[2]))
    if numeric.equal(bend, tree.ZERO) is not True:
        return False
    if numeric.equal(at[0], at[1]) is not False:
        return False
    return numeric.equal(_at(difference, name, value), tree.ZERO) is True


def _at(node: Node, name: Node, value: Node) -> Node:
    """The tree with a value in place of a variable."""
    if node == name:
        return value
    return node._replace(args=tuple(_at(each, name, value) for each in node.args))


def _has_structure(node: Node) -> bool:
    return tree.contains(node, _STRUCTURES)


def _is_dependent(element: Element) -> bool:
    """y and f(x) name what is asked for; x and a name a quantity."""
    name = element.name
    if name is None:
        return False
    if name.op == "call":
        return name.value not in TRIGONOMETRIC
    return name.op == "text" or name == Node("symbol", (), "y")


def _difference(node: Node) -> Node:
    return Node("add", (node.args[0], tree.negative(node.args[1])))


def _same_inequality(gold: Node, answer: Node) -> bool:
    if len(gold.args) != len(answer.args):
        return False
    if len(gold.args) == 2:
        one, strict = _at_most_zero(gold)
        other, strict_too = _at_most_zero(answer)
        return strict == strict_too and numeric.proportional(one, other) == 1
    for candidate in (answer, _turned(answer)):
        if candidate.value == gold.value:
            pairs = zip(gold.args, candidate.args, strict=True)
            if all(_same_side(one, other) for one, other in pairs):
                return True
    return False


def _at_most_zero(node: Node) -> tuple[Node, bool]:
    """f in f <= 0 or f < 0, and whether it is the latter."""
    sign = node.value[0]
    difference = _difference(node)
    strict = sign in "<>"
    return (difference if sign[0] == "<" else tree.negative(difference)), strict


def _turned(node: Node) -> Node:
    flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    signs = tuple(flipped[sign] for sign in reversed(node.value))
    return Node("rel", tuple(reversed(node.args)), signs)


def _same_side(gold: Node, answer: Node) -> bool:
    try:
        return same_scalar(gold, answer)
    except Undefined:
        return False
