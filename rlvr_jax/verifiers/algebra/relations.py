"""Whether two equations or two inequalities say the same."""

from rlvr_jax.verifiers.algebra import numeric, tree
from rlvr_jax.verifiers.algebra.canonical import key
from rlvr_jax.verifiers.algebra.names import EQUALITIES, Element, as_element
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
    if one.name is None or other.name is None:
        return False
    if key(one.name) == key(other.name) or (
        _is_dependent(one) and _is_dependent(other)
    ):
        return None
    return False


def _has_structure(node: Node) -> bool:
    return tree.contains(node, _STRUCTURES)


def _is_dependent(element: Element) -> bool:
    """y and f(x) name what is asked for; x and a name a quantity."""
    name = element.name
    if name is None:
        return False
    return name.op in ("call", "text") or name == Node("symbol", (), "y")


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
