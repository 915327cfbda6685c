"""Whether two trees are the same answer: lists, tuples, sets, matrices.

`scalars` decides about single expressions, `relations` about equations, `intervals`
about sets of reals. Lists and sets are compared in any order, tuples in theirs.
"""

from rlvr_jax.verifiers.algebra import intervals, matrices, tree
from rlvr_jax.verifiers.algebra.canonical import key
from rlvr_jax.verifiers.algebra.elements import elements
from rlvr_jax.verifiers.algebra.names import Element, is_name, unnamed
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.relations import same_relation
from rlvr_jax.verifiers.algebra.scalars import same_scalar
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined


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
    if first and second and len(first) != len(second):
        if "seq" in (first[0].value.op, second[0].value.op):
            first, second = _one_tuple(first), _one_tuple(second)
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


def _one_tuple(members: list[Element]) -> list[Element]:
    """x = 2, y = 3 and (y, x) = (3, 2) as the tuple (2, 3), by the letters."""
    if len(members) > 1 and _names(members):
        pairs = [(repr(each.name), each.value) for each in members]
    elif len(members) == 1 and (named := _named_tuple(members[0])):
        pairs = named
    else:
        return members
    pairs.sort(key=lambda pair: pair[0])
    values = tuple(value for _, value in pairs)
    return [Element(None, Node("seq", values, ("(", ")")))]


def _named_tuple(element: Element) -> list[tuple[str, Node]]:
    """The names and values of (x, y) = (2, 3)."""
    name, value = element
    if name is None or name.op != "seq" or value.op != "seq":
        return []
    if len(name.args) != len(value.args):
        return []
    return list(zip(map(repr, name.args), value.args, strict=True))


def _single(node: Node, members: list[Element]) -> Node:
    """The one member of a set or list, else the node itself."""
    if node.op in ("set", "list", "groups") or members[0].value.op == "seq":
        return members[0].value
    return node


def _other_variable(gold: Node, answer: Node) -> bool:
    """Both speak of a variable, and not of the same: x > 3 and y > 3."""
    names = [tree.symbols(each) for each in (gold, answer) if each.op == "rel"]
    return len(names) == 2 and names[0] != names[1]


def _set_of(node: Node) -> Node:
    """The set in x in S or S = {...}."""
    if node.op == "rel" and node.value in (("in",), ("=",)) and is_name(node.args[0]):
        return node.args[1]
    return node


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
    if not gold or not answer:
        return not gold and not answer
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


def _same_item(gold: Node, answer: Node) -> bool:
    if key(gold) == key(answer):
        return True
    if gold.op == "rel" and answer.op == "rel":
        verdict = same_relation(gold, answer)
        if verdict is not None:
            return verdict
    gold, answer = unnamed(gold), unnamed(answer)
    if gold.op == "rel" or answer.op == "rel":
        return False
    if gold.op in ("set", "list") or answer.op in ("set", "list"):
        return same(gold, answer)
    gold, answer = matrices.combined(gold), matrices.combined(answer)
    if "matrix" in (gold.op, answer.op):
        return _same_matrix(gold, answer)
    if "seq" in (gold.op, answer.op):
        return _same_sequence(_coordinates(gold), _coordinates(answer))
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


def _same_matrix(gold: Node, answer: Node) -> bool:
    rows = [_rows(each) for each in (gold, answer)]
    if rows[0] is None or rows[1] is None:
        return False
    if "seq" in (gold.op, answer.op):  # a vector's direction is not told by (1, 2)
        rows = [_upright(each) for each in rows if each is not None]
    if [len(row) for row in rows[0]] != [len(row) for row in rows[1]]:
        return False
    return all(
        _same_item(one, other)
        for row, twin in zip(*rows, strict=True)
        for one, other in zip(row, twin, strict=True)
    )


def _upright(rows: list[list[Node]]) -> list[list[Node]]:
    """A matrix of one row as a column; any other as it is."""
    return [[each] for each in rows[0]] if len(rows) == 1 else rows


def _rows(node: Node) -> list[list[Node]] | None:
    """A matrix, or a column vector written as a tuple."""
    if node.op == "matrix":
        return matrices.entries(node)
    if node.op != "seq" or node.value in (("(", "]"), ("[", ")")):
        return None
    if all(each.op == "seq" for each in node.args):
        return [list(each.args) for each in node.args]
    return [[each] for each in node.args]


def _coordinates(node: Node) -> Node:
    """The (1, 2) of a point A(1, 2)."""
    if node.op == "mul" and len(node.args) == 2:
        point, inner = node.args
        if point.op == "symbol" and point.value[0].isupper() and inner.op == "seq":
            return inner
    if node.op == "call" and len(node.args) > 1 and node.value.isupper():
        return Node("seq", node.args, ("(", ")"))  # P is read as a function
    return node


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
    """Digit for digit; the same number in another base is another answer."""
    return gold.op == answer.op and gold.value == answer.value
