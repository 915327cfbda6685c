"""Values on the wire: exact types, and nothing that costs more than it weighs."""

import collections
import datetime
import decimal
import enum
import fractions
import json
import re
import typing

import pytest

from rlvr_jax.verifiers.code import values


def _round_trip(value):
    return values.decode(json.loads(json.dumps(values.encode(value))))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        2**53,
        -(10**40),
        0.1,
        float("inf"),
        "a\ud800\n",
        b"\0a",
        bytearray(b"x"),
        1 + 2j,
        [1, [2.0, ("a", None)], {}],
        {1: {2: {3}}, (1, 2): frozenset({4})},
        {"tuple": [1]},
        collections.deque([1, 2]),
        collections.OrderedDict(a=1),
        collections.Counter("aab"),
        range(0, 10, 3),
        fractions.Fraction(1, 3),
        decimal.Decimal("1.20"),
        datetime.date(2026, 1, 2),
        datetime.timedelta(days=1, seconds=2),
        int,
    ],
)
def test_a_value_comes_back_as_it_was(value):
    back = _round_trip(value)
    assert type(back) is type(value)
    assert back == value


def test_what_comes_back_as_something_like_it():
    """Iterators are followed; a named tuple is a tuple, a match keeps its groups."""
    assert list(_round_trip(map(str, [1, 2]))) == ["1", "2"]
    assert list(_round_trip({"a": 1}.items())) == [("a", 1)]
    assert _round_trip(collections.namedtuple("P", "x y")(1, 2)) == (1, 2)
    assert _round_trip(collections.defaultdict(int, a=1)) == {"a": 1}
    match = _round_trip(re.match("(a)(b)?", "ac"))
    assert (match.span(), match.group(1), match.groups()) == ((0, 1), "a", ("a", None))


class _List(list):
    def __eq__(self, other):
        return True

    __hash__ = None


class _Number(enum.IntEnum):
    SIX = 6


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value", [_List(), _Number.SIX, _Text("x"), object(), _List, len, {"a": _List()}]
)
def test_other_values_are_refused_or_stay_where_they_are(value):
    with pytest.raises(values.Unsendable, match="no plain data"):
        values.encode(value)
    reference = values.Reference(3, "thing")
    assert "reference" in json.dumps(values.encode(value, lambda _: reference))


def _nested(depth):
    value: typing.Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_limits_of_what_is_sent():
    assert _round_trip(_nested(200)) == _nested(200)
    with pytest.raises(values.Unsendable, match="nested"):
        values.encode(_nested(202))
    with pytest.raises(values.Unsendable, match="more than 100000 items"):
        values.encode(iter(int, 1))


@pytest.mark.parametrize(
    "data",
    [
        {"int": "f" * 100_001},
        {"range": ["0x0", "0xfffffffffff", "0x1"]},
        {"Decimal": "1e999999"},
        {"Fraction": ["f" * 10_001, "1"]},
        {"set": [{"int": hex(i * (2**61 - 1))} for i in range(60)]},
        {"dict": [[{"int": hex(i * (2**61 - 1))}, 0] for i in range(60)]},
        {"list": [1], "more": 2},
        {"unknown": [1]},
        {"reference": [0, "x"]},
        {"type": "object"},
        {"keys": [[1]]},
    ],
    ids=lambda data: next(iter(data)),
)
def test_what_no_encoder_writes_is_refused(data):
    """Also what would take long to build: a set of one hash, a billion items."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        values.decode(data)
