"""Percent, degrees, units and rounded decimals."""

import pytest

from rlvr_jax.verifiers.algebra import units
from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.scalars import decimal, same_scalar, without_unit
from rlvr_jax.verifiers.algebra.tree import Undefined


def same(gold, answer):
    return same_scalar(parse(gold), parse(answer))


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("28%", "0.28", True),
        ("28%", "28", True),
        ("0.28", "28%", True),
        ("28", "28%", True),
        ("0.5", "0.5%", False),
        ("0.5%", "0.5", False),
        ("28%", "2.8", False),
        ("28%", "29%", False),
        (r"28 percent", "0.28", True),
    ],
)
def test_percent(gold, answer, expected):
    """p% is p/100; as plain p it counts from 1 on, where nothing else is meant."""
    assert same(gold, answer) is expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        # An answer needs six significant digits, and the reference no end.
        (r"\frac13", "0.333333", True),
        (r"\frac13", "0.33333", False),
        (r"\frac23", "0.666667", True),
        (r"\frac23", "0.666666", True),
        (r"\frac23", "0.666668", False),
        (r"\frac{1}{12}", "0.0833333333333333", True),
        (r"\sqrt{2}", "1.41421", True),
        (r"\sqrt{2}", "1.4142", False),
        (r"-\sqrt{2}", "-1.41421", True),
        (r"\frac12", "0.5000001", False),
        (r"\frac{1234567}{10000000}", "0.123457", False),
        (r"\frac12", "0.49999999", False),
        ("1", "0.99999999", False),
        ("10000", "9999.857142857143", False),
        (r"\sqrt{4}", "2.0000001", False),
        ("x", "1.23456", False),
        # A reference that was rounded needs four.
        ("1.414", r"\sqrt{2}", True),
        ("1.41", r"\sqrt{2}", False),
        ("1.415", r"\sqrt{2}", False),
        ("3.142", r"\frac{22}{7}", False),  # 22/7 is 3.1429
        (r"1.414 \times 10^3", r"1000\sqrt{2}", True),
        # Two decimals are compared as they are.
        ("1.414", "1.41421", False),
        ("16386.16", "16386.16", True),
        ("0.333", "0.3333333", False),
    ],
)
def test_rounding(gold, answer, expected):
    assert same(gold, answer) is expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        (r"5\text{ m}", "5", True),
        ("5", r"5\text{ apples}", True),
        (r"5\text{ hours}", r"5\text{ hrs}", True),
        (r"5\text{ hours}", r"5\text{ minutes}", False),
        ("5", "5 m", True),
        ("9.8", r"9.8 m/s^2", True),
        ("5", "5 x", False),
        ("5 m", "6", False),
        ("5000000", r"5\text{ million}", True),
        ("45", r"45^\circ", True),
        (r"45^\circ", r"\frac{\pi}{4}", True),
        (r"45^\circ", r"46^\circ", False),
    ],
)
def test_units_and_degrees(gold, answer, expected):
    assert same(gold, answer) is expected


def test_no_value_is_an_error():
    with pytest.raises(Undefined):
        same("1", r"\frac{1}{0}")


def test_decimals_know_their_digits():
    assert decimal(parse("0.0120"))[1:] == (3, parse("0.0001").value)
    assert decimal(parse("-12.5"))[:2] == (parse("-12.5").args[0].value * -1, 3)
    assert decimal(parse("12")) is None


def test_units_by_any_of_their_names():
    assert units.canonical("hrs.") == units.canonical("Hours") == "hour"
    assert units.canonical("apples") is None
    assert without_unit(parse("5 apples"))[1] is None
