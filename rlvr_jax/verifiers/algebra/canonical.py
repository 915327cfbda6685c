"""A key that trees share when they differ only in the order and spelling of terms.

Equal keys mean equal trees, without working anything out: 2^(10^9) is 2^1000000000,
e^x is exp(x), x + 1 is 1 + x. Unequal keys mean nothing.
"""

from typing import Any

from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined

_UNORDERED = frozenset(["add", "mul", "set", "list", "cup", "cap"])
_DOTS = Node("symbol", (), "dots")
_FLAT = frozenset(["add", "mul", "cup", "cap"])


def key(node: Node) -> Any:
    """A hashable key; equal for trees that say the same."""
    try:
        value = rational(node)
    except (TooLarge, Undefined):
        value = None
    if value is not None:
        return ("number", f"{value.numerator:x}/{value.denominator:x}")
    return _key(node)


def _key(node: Node) -> Any:
    op, args = node.op, node.args
    if op in ("symbol", "base", "text"):
        return (op, node.value)
    if op == "neg":
        return _joined("mul", [("number", "-1/1"), key(args[0])])
    if op == "div":
        return _joined("mul", [key(args[0]), ("inverse", key(args[1]))])
    if op == "root":
        return ("pow", None, key(args[0]), ("inverse", key(args[1])))
    if op == "call" and node.value == "exp":
        return ("pow", None, ("symbol", "e"), key(args[0]))
    keys = [key(each) for each in args]
    if op in _UNORDERED and (op in _FLAT or _DOTS not in args):
        return _joined(op, keys)
    return (op, node.value, *keys)


def _joined(op: str, keys: list[Any]) -> Any:
    flat: list[Any] = []
    for each in keys:
        flat.extend(each[1] if op in _FLAT and each[0] == op else [each])
    return (op, tuple(sorted(flat, key=repr)))
