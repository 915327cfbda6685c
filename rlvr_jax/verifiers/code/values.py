"""Plain values as JSON and back, with their exact types.

What arrives from a program was written by that program, so reading it can only build
plain values: no pickle, no subclass, no method of the program's own, nothing that
costs much more to build or to compare than to send.
"""

import collections
import datetime
import decimal
import fractions
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

MAX_DEPTH = 200
MAX_ITEMS = 100_000
"""How far an iterator is followed."""
MAX_RANGE = 1_000_000
MAX_INT_DIGITS = 100_000
"""Hexadecimal digits."""
MAX_FRACTION_DIGITS = 10_000
MAX_EXPONENT = 10_000
"""Of a Decimal."""
MAX_EQUAL_HASHES = 50
_PLAIN_INT = 2**53


class Unsendable(TypeError):
    """A value that is no plain data."""


class Match:
    """Stands for a `re.Match`, which is true and has groups."""

    def __init__(self, start: int, end: int, groups: list[str | None]):
        """`groups` begins with the text of the whole match."""
        self._span = (int(start), int(end))
        self._groups = tuple(groups)

    def span(self) -> tuple[int, int]:
        """Where it starts and ends."""
        return self._span

    def group(self, number: int = 0) -> str | None:
        """The text of a group; 0 is the whole match."""
        return self._groups[number]

    def groups(self) -> tuple[str | None, ...]:
        """The texts of all groups but the whole match."""
        return self._groups[1:]


class Reference:
    """Names an object that stays on the other side."""

    def __init__(self, number: int, type_name: str):
        """`number` counts the objects of one program."""
        self.number = number
        self.type_name = type_name


Refer = Callable[[Any], Reference]
Resolve = Callable[[int, str], Any]


def encode(value: Any, refer: Refer | None = None, depth: int = 0) -> Any:
    """The value as JSON; types are exact, so a list's subclass is no plain data.

    Args:
      value: anything.
      refer: what to do with a value that is no plain data; None refuses it.
      depth: how deep it lies in another.

    Raises:
      Unsendable: it holds something else, or is nested too deeply.

    Example:
      >>> encode([1, (2.5, None)])
      [1, {'tuple': [2.5, None]}]
      >>> decode(encode({"a": {1, 2}}))
      {'a': {1, 2}}
    """
    kind = type(value)
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()  # a scalar of numpy stands for the number it is
        kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if abs(value) < _PLAIN_INT else {"int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if depth > MAX_DEPTH:
        raise Unsendable(f"a value nested more than {MAX_DEPTH} deep")
    if kind is list:
        return [encode(item, refer, depth + 1) for item in value]
    if kind in _AS_TEXT:
        return {kind.__name__: _AS_TEXT[kind](value)}
    if kind in _AS_PAIRS:
        return {_AS_PAIRS[kind]: _all(map(list, value.items()), refer, depth)}
    if kind in _AS_ITEMS:
        return {_AS_ITEMS[kind]: _all(value, refer, depth)}
    if kind is type and value in _TYPES.values():
        return {"type": value.__name__}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {"tuple": _all(tuple.__iter__(value), refer, depth)}
    if hasattr(kind, "__next__") and hasattr(kind, "__iter__"):
        return {"iterator": _all(value, refer, depth)}
    if kind is not Reference:
        if refer is None:
            raise Unsendable(f"a value of type {kind.__name__}, which is no plain data")
        value = refer(value)
    return {"reference": [value.number, value.type_name]}


def _all(values: Iterable[Any], refer: Refer | None, depth: int) -> list[Any]:
    items = []
    for value in values:
        if len(items) >= MAX_ITEMS:
            raise Unsendable(f"more than {MAX_ITEMS} items")
        items.append(encode(value, refer, depth + 1))
    return items


def decode(data: Any, resolve: Resolve | None = None) -> Any:
    """The value that `encode` was given.

    Args:
      data: JSON from the other side.
      resolve: from a reference's number and type name to what stands for it here.

    Raises:
      ValueError, TypeError, KeyError, ArithmeticError: the data is not what `encode`
        writes, or beyond the limits above.
    """
    if isinstance(data, list):
        return [decode(item, resolve) for item in data]
    if not isinstance(data, dict):
        return data
    ((name, inside),) = data.items()
    if name == "reference" and resolve is not None:
        number, type_name = inside
        return resolve(int(number), str(type_name))
    if name in _FROM_TEXT:
        return _FROM_TEXT[name](inside)
    items = [decode(item, resolve) for item in inside]
    if name in _HASHED:
        _refuse_equal_hashes(items, name in _KEYED)
    return _FROM_ITEMS[name](items)


def _refuse_equal_hashes(items: list[Any], keyed: bool) -> None:
    """Thousands of different keys of one hash would take a set hours to hold."""
    if len(items) > MAX_EQUAL_HASHES:
        hashes = (str(hash(item[0] if keyed else item)) for item in items)
        if max(collections.Counter(hashes).values()) > MAX_EQUAL_HASHES:
            raise ValueError(f"more than {MAX_EQUAL_HASHES} items of the same hash")


def _integer(text: str, digits: int = MAX_INT_DIGITS) -> int:
    if len(text) > digits:
        raise ValueError(f"an integer of {len(text)} hexadecimal digits")
    return int(text, 16)


def _fraction(parts: list[str]) -> fractions.Fraction:
    numerator, denominator = (_integer(part, MAX_FRACTION_DIGITS) for part in parts)
    return fractions.Fraction(numerator, denominator)


def _range(parts: list[str]) -> range:
    start, stop, step = (_integer(part) for part in parts)
    value = range(start, stop, step)
    if max((stop - start) // step, 0) > MAX_RANGE:
        raise ValueError("a range of too many numbers")
    return value


def _decimal(text: str) -> decimal.Decimal:
    value = decimal.Decimal(text)
    if len(text) > MAX_FRACTION_DIGITS or (
        value.is_finite() and abs(value.adjusted()) > MAX_EXPONENT
    ):
        raise ValueError("a Decimal of too many digits")
    return value


_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (bool, int, float, complex, str, bytes, list, tuple, set, dict)
}
_AS_ITEMS = {
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    collections.deque: "deque",
    type({}.keys()): "keys",
    type({}.values()): "values",
    type({}.items()): "items",
}
_AS_PAIRS = {
    dict: "dict",
    collections.OrderedDict: "OrderedDict",
    collections.Counter: "Counter",
    collections.defaultdict: "dict",
}
_AS_TEXT: dict[type, Callable[[Any], Any]] = {
    complex: repr,
    bytes: bytes.hex,
    bytearray: bytearray.hex,
    range: lambda value: [hex(part) for part in (value.start, value.stop, value.step)],
    fractions.Fraction: lambda value: [hex(value.numerator), hex(value.denominator)],
    decimal.Decimal: str,
    datetime.date: datetime.date.isoformat,
    datetime.time: datetime.time.isoformat,
    datetime.datetime: datetime.datetime.isoformat,
    re.Match: lambda value: [*value.span(), [value.group(), *value.groups()]],
    datetime.timedelta: lambda value: [value.days, value.seconds, value.microseconds],
}
_FROM_TEXT: dict[str, Callable[[Any], Any]] = {
    "Match": lambda parts: Match(*parts),
    "type": _TYPES.__getitem__,
    "int": _integer,
    "float": float,
    "complex": complex,
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": _range,
    "Fraction": _fraction,
    "Decimal": _decimal,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "timedelta": lambda parts: datetime.timedelta(*parts),
}
_FROM_ITEMS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": collections.deque,
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": lambda items: dict(items).items(),
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": lambda items: collections.Counter(dict(items)),
    "iterator": iter,
}
_KEYED = frozenset({"dict", "OrderedDict", "Counter", "items"})
_HASHED = _KEYED | {"set", "frozenset", "keys"}
