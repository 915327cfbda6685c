"""The members of lists and sets, with the alternatives of +- written out."""

from collections.abc import Sequence

from rlvr_jax.verifiers.algebra import tree
from rlvr_jax.verifiers.algebra.names import Element, as_element
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge

_MAX_ELEMENTS = 100


_MAX_ALTERNATIVES = 64


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
        element = as_element(node)
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
        element = as_element(node)
        name = element.name or name
        plain = element.name is None and node.op != "rel"
        found.append(element._replace(name=name) if plain else element)
    return found


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
