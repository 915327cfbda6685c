"""Whether two trees are the same answer: lists, tuples, sets, relations, matrices.

`scalars` decides about single expressions, `intervals` about sets of reals. Lists and
sets are compared in any order, tuples in theirs.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rlvr_jax.verifiers.algebra import intervals, matrices, numeric, tree
from rlvr_jax.verifiers.algebra.canonical import key
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.scalars import decimal, same_scalar
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined

_MAX_ELEMENTS = 100
_MAX_ALTERNATIVES = 64
_INEQUALITIES = frozenset(["<", ">", "<=", ">="])
_EQUALITIES = frozenset(["=", "~"])


class Element(NamedTuple):
    """A member of a list, with the name it was given, as x in x = 3."""

    name: Node | None
    value: Node


def same(gold: Node, answer: Node) -> bool:
    """Whether an answer says what the reference says.

    Raises:
      tree.TooLarge: it takes too much to find out.
      tree.Undefined: one has no value, as 1/0.
    """
    if key(gold) == key(answer):
        return _is_defined(gold)
    if intervals.is_set(gold) or intervals.is_set(answer):
        if _other_variable(gold, answer):
            return False
        verdict = intervals.same_set(_set_of(gold), _set_of(answer))
        if verdict is not None:
            return verdict
    first, second = elements(gold), elements(answer)
    if len(first) == len(second) == 1:
        return _same_item(_single(gold, first), _single(answer, second))
    return _same_elements(first, second, gold, answer)


def _is_defined(node: Node) -> bool:
    """No division by zero in it, as far as that is cheap to see."""
    try:
        rational(node)
    except TooLarge:
        pass
    return True


def _single(node: Node, members: list[Element]) -> Node:
    """The one member of a set or list, else the node itself."""
    if node.op in ("set", "list", "groups"):
        return members[0].value
    return node


def _other_variable(gold: Node, answer: Node) -> bool:
    """Both speak of a variable, and not of the same: x > 3 and y > 3."""
    names = [tree.symbols(each) for each in (gold, answer) if each.op == "rel"]
    return len(names) == 2 and names[0] != names[1]


def _set_of(node: Node) -> Node:
    """The set in x in S or S = {...}."""
    if node.op == "rel" and node.value in (("in",), ("=",)) and _is_name(node.args[0]):
        return node.args[1]
    return node


# Lists.


def elements(node: Node) -> list[Element]:
    """The members of a list or set, alternatives of +- written out; else the one.

    Raises:
      TooLarge: there are too many.
    """
    if node.op == "groups":
        members = [_tuple_of(group) for group in node.args]
        found = [Element(None, member) for member in members]
    elif node.op in ("list", "set"):
        found = _named(node.args)
        found = _records(found) if node.op == "list" else found
    else:
        element = _element(node)
        inner = element.value
        if inner.op in ("set", "list"):
            found = [each._replace(name=element.name) for each in elements(inner)]
        else:
            found = [element]
    spread = [
        element._replace(value=value)
        for element in found
        for value in alternatives(element.value)
    ]
    if len(spread) > _MAX_ELEMENTS:
        raise TooLarge("a list of too many members")
    return spread


def _named(nodes: Sequence[Node]) -> list[Element]:
    """k = 1, 2, 3 names all three."""
    found: list[Element] = []
    name = None
    for node in nodes:
        element = _element(node)
        name = element.name or name
        plain = element.name is None and node.op != "rel"
        found.append(element._replace(name=name) if plain else element)
    return found


def _element(node: Node) -> Element:
    if node.op == "rel" and set(node.value) <= _EQUALITIES | {"in"}:
        if _is_name(node.args[0]):
            rest = node.args[1:]
            if len(rest) == 1:
                return Element(node.args[0], rest[0])
            chain = Node("rel", rest, node.value[1:])
            return Element(node.args[0], chained(chain))
        left, right = node.args[0], node.args[-1]
        if len(node.args) == 2 and right.op == "symbol" and not tree.symbols(left):
            return Element(right, left)  # 5 = x
    return Element(None, node)


def _records(found: list[Element]) -> list[Element]:
    """p = 5, q = 2, p = 7, q = 2 are two records of p and q."""
    names = [element.name for element in found]
    period = next((i for i in range(1, len(names)) if names[i] == names[0]), 0)
    if period < 2 or None in names or len(names) % period:
        return found
    rows = [found[i : i + period] for i in range(0, len(found), period)]
    if any([each.name for each in row] != names[:period] for row in rows):
        return found
    return [Element(None, _record(row)) for row in rows]


def _record(row: list[Element]) -> Node:
    ordered = sorted(row, key=lambda element: repr(element.name))
    return Node("seq", tuple(each.value for each in ordered), ("(", ")"))


def _tuple_of(group: Node) -> Node:
    """One group of 1,2; 3,4; 5,6 as a tuple."""
    members = _named(group.args if group.op == "list" else (group,))
    if all(member.name is not None for member in members):
        return _record(members)
    return Node("seq", tuple(member.value for member in members), ("(", ")"))


def alternatives(node: Node) -> list[Node]:
    """The values that +- stands for; each +- on its own, unless -+ ties them.

    Raises:
      TooLarge: there are too many.
    """
    if not tree.contains(node, {"pm", "mp"}):
        return [node]
    if tree.contains(node, {"mp"}):
        return [_with_sign(node, 1), _with_sign(node, -1)]
    results: list[tuple[Node, ...]] = [()]
    for each in node.args:
        results = [(*sofar, value) for sofar in results for value in alternatives(each)]
        if len(results) > _MAX_ALTERNATIVES:
            raise TooLarge("too many alternatives")
    if node.op != "pm":
        return [node._replace(args=args) for args in results]
    return [_signed(args, sign) for args in results for sign in (1, -1)]


def _with_sign(node: Node, sign: int) -> Node:
    args = tuple(_with_sign(each, sign) for each in node.args)
    if node.op in ("pm", "mp"):
        return _signed(args, sign if node.op == "pm" else -sign)
    return node._replace(args=args)


def _signed(args: tuple[Node, ...], sign: int) -> Node:
    last = args[-1] if sign > 0 else tree.negative(args[-1])
    return Node("add", (args[0], last)) if len(args) == 2 else last


def _same_elements(
    gold: list[Element], answer: list[Element], gold_node: Node, answer_node: Node
) -> bool:
    dots = Node("symbol", (), "dots")
    if any(element.value == dots for element in (*gold, *answer)):
        return _same_in_order(gold, answer)
    gold_names, answer_names = _names(gold), _names(answer)
    if gold_names and answer_names:
        if sorted(gold_names) != sorted(answer_names):
            return False
        answer = [answer[answer_names.index(name)] for name in gold_names]
        return _same_in_order(gold, answer)
    if gold_names or answer_names:
        return _same_in_order(gold, answer)
    return _same_in_any_order(
        [element.value for element in gold],
        [element.value for element in answer],
        counted=gold_node.op != "set" and answer_node.op != "set",
    )


def _names(found: list[Element]) -> list[str]:
    """The names of a list whose members all have one of their own, else nothing."""
    names = [repr(key(each.name)) for each in found if each.name is not None]
    return names if len(set(names)) == len(found) > 1 else []


def _same_in_order(gold: list[Element], answer: list[Element]) -> bool:
    return len(gold) == len(answer) and all(
        _same_item(one.value, other.value)
        for one, other in zip(gold, answer, strict=True)
    )


def _same_in_any_order(gold: list[Node], answer: list[Node], counted: bool) -> bool:
    """As sets; of a reference that repeats a value, the answer repeats it as often."""
    matches = [[_same_quietly(one, other) for other in answer] for one in gold]
    if not all(any(row) for row in matches):
        return False
    if not all(any(column) for column in zip(*matches, strict=True)):
        return False
    if not counted or len(answer) >= len(gold):
        return True
    distinct: list[Node] = []
    for one in gold:
        if not any(_same_quietly(one, other) for other in distinct):
            distinct.append(one)
    return len(distinct) == len(gold)


def _same_quietly(gold: Node, answer: Node) -> bool:
    try:
        return _same_item(gold, answer)
    except Undefined:
        return False


# Single answers.


def _same_item(gold: Node, answer: Node) -> bool:
    if key(gold) == key(answer):
        return True
    if gold.op == "rel" and answer.op == "rel":
        verdict = _same_relation(gold, answer)
        if verdict is not None:
            return verdict
    gold, answer = _value(gold), _value(answer)
    if gold.op == "rel" or answer.op == "rel":
        return False
    if gold.op in ("set", "list") or answer.op in ("set", "list"):
        return same(gold, answer)
    gold, answer = matrices.combined(gold), matrices.combined(answer)
    if "matrix" in (gold.op, answer.op):
        return _same_matrix(gold, answer)
    if "seq" in (gold.op, answer.op):
        return _same_sequence(gold, answer)
    if "ratio" in (gold.op, answer.op):
        return _same_ratio(gold, answer)
    if "base" in (gold.op, answer.op):
        return _same_base(gold, answer)
    if tree.contains(gold, {"text"}) or tree.contains(answer, {"text"}):
        return _same_words(gold, answer)
    return same_scalar(gold, answer)


def _same_words(gold: Node, answer: Node) -> bool:
    if gold.op != "text" or answer.op != "text":
        return False
    return gold.value.casefold() == answer.value.casefold()


def _value(node: Node) -> Node:
    """What is left when the name before = or in is taken away."""
    if node.op != "rel" or not set(node.value) <= _EQUALITIES | {"in"}:
        return node
    element = _element(node)
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


def _is_name(node: Node) -> bool:
    """Whether it can stand before = as the name of what comes after."""
    if node.op == "symbol":
        return node.value not in ("pi", "e", "inf", "dots")
    if node.op == "text":
        return True
    if node.op == "call":
        return node.value not in _KNOWN and all(map(_is_argument, node.args))
    if node.op in ("seq", "ratio", "mul", "div"):
        return all(map(_is_name, node.args))
    return False


def _is_argument(node: Node) -> bool:
    return not tree.contains(node, {"rel"})


_KNOWN = frozenset(
    "sin cos tan cot sec csc asin acos atan ln log lg exp floor ceil max min gcd lcm "
    "factorial factorial2 binomial sinh cosh tanh asinh".split()
)


# Relations.


def _same_relation(gold: Node, answer: Node) -> bool | None:
    """None: both only give names to values, which are to be compared."""
    gold_signs, answer_signs = set(gold.value), set(answer.value)
    if gold_signs <= _INEQUALITIES and answer_signs <= _INEQUALITIES:
        return _same_inequality(gold, answer)
    if gold_signs == answer_signs == {"!="}:
        return numeric.proportional(*map(_difference, (gold, answer))) is not None
    if not (gold_signs | answer_signs) <= _EQUALITIES | {"in"}:
        return False
    one, other = _element(gold), _element(answer)
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
    ops = {
        "seq",
        "set",
        "list",
        "matrix",
        "text",
        "ratio",
        "unit",
        "base",
        "cup",
        "cap",
    }
    return tree.contains(node, ops)


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
            if all(_same_quietly(one, other) for one, other in pairs):
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


# Structures.


def _same_matrix(gold: Node, answer: Node) -> bool:
    rows = [_rows(each) for each in (gold, answer)]
    if rows[0] is None or rows[1] is None:
        return False
    if [len(row) for row in rows[0]] != [len(row) for row in rows[1]]:
        return False
    return all(
        _same_item(one, other)
        for row, twin in zip(*rows, strict=True)
        for one, other in zip(row, twin, strict=True)
    )


def _rows(node: Node) -> list[list[Node]] | None:
    """A matrix, or a column vector written as a tuple."""
    if node.op == "matrix":
        return matrices.entries(node)
    if node.op != "seq":
        return None
    if all(each.op == "seq" for each in node.args):
        return [list(each.args) for each in node.args]
    return [[each] for each in node.args]


def _same_sequence(gold: Node, answer: Node) -> bool:
    if gold.op != answer.op or len(gold.args) != len(answer.args):
        return False
    if len(gold.args) == 2 and gold.value != answer.value:
        return False
    return all(map(_same_item, gold.args, answer.args))


def _same_ratio(gold: Node, answer: Node) -> bool:
    if gold.op != answer.op or len(gold.args) != len(answer.args):
        return False
    first, other = gold.args[0], answer.args[0]
    return all(
        same_scalar(Node("mul", (each, other)), Node("mul", (twin, first)))
        for each, twin in zip(gold.args, answer.args, strict=True)
    )


def _same_base(gold: Node, answer: Node) -> bool:
    if gold.op != answer.op:
        return False
    values = [_in_base(*each.value) for each in (gold, answer)]
    return values[0] is not None and values[0] == values[1]


def _in_base(digits: str, base: int) -> int | None:
    try:
        return int(digits, base) if len(digits) < tree.MAX_DIGITS else None
    except ValueError:
        return None
