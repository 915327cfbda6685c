"""Sums and products of small matrices, entry by entry, as trees."""

from rlvr_jax.verifiers.algebra.tree import Node, ParseError, TooLarge

_MAX_ENTRIES = 100
_MAX_DETERMINANT = 4
"""Rows; 24 products."""


def combined(node: Node) -> Node:
    """The tree with sums and products of matrices worked out where sizes fit.

    Raises:
      TooLarge: a product of many entries.
    """
    if node.op not in ("add", "mul", "neg", "div"):
        return node
    args = tuple(combined(each) for each in node.args)
    if not any(each.op == "matrix" for each in args):
        return node
    if node.op == "neg":
        return _mapped(args[0], lambda entry: Node("neg", (entry,)))
    if node.op == "div":
        return _mapped(args[0], lambda entry: Node("div", (entry, args[1])))
    result = args[0]
    for each in args[1:]:
        result = _sum(result, each) if node.op == "add" else _product(result, each)
    return result


def entries(node: Node) -> list[list[Node]]:
    """The rows of a matrix node."""
    return [list(row.args) for row in node.args]


def determinant(node: Node) -> Node:
    """The determinant of a small matrix, as a tree; by its first row.

    Raises:
      ParseError: it is not square, or too large.
    """
    rows = entries(node)
    if len(rows) > _MAX_DETERMINANT or len(rows) != len(rows[0]):
        raise ParseError("no determinant of this shape")
    return _determinant(rows)


def _determinant(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        rest = [row[:column] + row[column + 1 :] for row in rows[1:]]
        term = Node("mul", (entry, _determinant(rest)))
        terms.append(Node("neg", (term,)) if column % 2 else term)
    return Node("add", tuple(terms))


def _built(rows: list[list[Node]]) -> Node:
    if sum(map(len, rows)) > _MAX_ENTRIES:
        raise TooLarge("a matrix of too many entries")
    return Node("matrix", tuple(Node("seq", tuple(row)) for row in rows))


def _mapped(node: Node, function) -> Node:
    if node.op != "matrix":
        return function(node)
    return _built([[function(entry) for entry in row] for row in entries(node)])


def _sum(left: Node, right: Node) -> Node:
    plain = Node("add", (left, right))
    if left.op != "matrix" or right.op != "matrix":
        return plain
    first, second = entries(left), entries(right)
    if len(first) != len(second) or len(first[0]) != len(second[0]):
        return plain
    return _built(
        [
            [Node("add", pair) for pair in zip(row, other, strict=True)]
            for row, other in zip(first, second, strict=True)
        ]
    )


def _product(left: Node, right: Node) -> Node:
    if left.op != "matrix":
        return _mapped(right, lambda entry: Node("mul", (left, entry)))
    if right.op != "matrix":
        return _mapped(left, lambda entry: Node("mul", (entry, right)))
    first, second = entries(left), entries(right)
    if len(first[0]) != len(second):
        return Node("mul", (left, right))
    if len(first) * len(second) * len(second[0]) > _MAX_ENTRIES * 10:
        raise TooLarge("a product of large matrices")
    columns = list(zip(*second, strict=True))
    return _built(
        [
            [
                Node(
                    "add",
                    tuple(Node("mul", pair) for pair in zip(row, column, strict=True)),
                )
                for column in columns
            ]
            for row in first
        ]
    )
