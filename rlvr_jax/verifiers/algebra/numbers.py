"""Numbers as written: decimals with their digits, recurring ones, bases."""

import re
from fractions import Fraction

from rlvr_jax.verifiers.algebra import lexer
from rlvr_jax.verifiers.algebra.tree import Node, ParseError, number


def number_node(text: str) -> Node:
    """A number node; one written as a decimal remembers its significant digits."""
    value = lexer.value_of(text)
    grouped = text.count("{,}") and not re.fullmatch(r"\d+(\{,\}\d{3})+", text)
    if "." not in text and not grouped:
        return number(value)
    written, _, exponent = text.replace("{,}", ".").lower().partition("e")
    places = len(written.partition(".")[2]) - int(exponent or 0)
    digits = len(written.replace(".", "").lstrip("0"))
    return Node("number", (number(digits), number(Fraction(10) ** -places)), value)


def recurring(start: str, period: str) -> Node:
    r"""The number 0.1\overline{6}, of its start 0.1 and its period 6.

    Raises:
      tree.ParseError: the period is no number.
    """
    if not period.isdigit() or len(period) > 50:
        raise ParseError("a period that is no number")
    whole, _, fixed = start.partition(".")
    first = Fraction(int(whole + fixed or 0), 10 ** len(fixed))
    repeated = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
    return number(first + repeated)


def plain(node: Node) -> str:
    """The text of a small tree, for subscripts, periods and bases."""
    if node.op == "number":
        return str(node.value)
    if node.op == "symbol":
        return node.value
    if node.op == "neg":
        return "-" + plain(node.args[0])
    if node.op == "mul":
        return "".join(map(plain, node.args))
    return repr(node)
