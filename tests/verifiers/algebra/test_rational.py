"""Exact values, and their size known before they are worked out."""

import time
from fractions import Fraction

import pytest

from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.tree import TooLarge, Undefined, exact_root


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2+3*4", 14),
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2^3^2", 512),
        ("2^{-1}", Fraction(1, 2)),
        ("0^0", 1),
        (r"\frac12+\frac13", Fraction(5, 6)),
        (r"2\frac13", Fraction(7, 3)),
        (r"-2\frac13", Fraction(-7, 3)),
        ("333 1/3", Fraction(1000, 3)),
        ("0.1", Fraction(1, 10)),
        ("1.5e-3", Fraction(3, 2000)),
        (r"0.1\overline{6}", Fraction(1, 6)),
        (r"\sqrt{\frac{9}{4}}", Fraction(3, 2)),
        (r"\sqrt[3]{-8}", -2),
        (r"8^{2/3}", 4),
        ("5!", 120),
        ("7!!", 105),
        (r"\binom{5}{2}", 10),
        (r"\binom{2}{5}", 0),
        (r"\lfloor -\frac12 \rfloor", -1),
        (r"\lceil 2.1 \rceil", 3),
        ("|3-5|", 2),
        ("50%", Fraction(1, 2)),
        (r"\gcd(12,18)", 6),
        (r"\max(1,\frac32)", Fraction(3, 2)),
        ("3!7! + 5040", 35280),  # 6 * 5040 + 5040
    ],
)
def test_exact_values(text, value):
    assert rational(parse(text)) == value


@pytest.mark.parametrize(
    "text",
    ["x", r"\sqrt{2}", r"\pi", "e^2", r"\sin 1", r"(-8)^{1/3}", r"\sqrt{-4}", "(1,2)"],
)
def test_what_is_not_seen_to_be_rational(text):
    assert rational(parse(text)) is None


@pytest.mark.parametrize("text", [r"\frac10", "0^{-1}", "(-3)!", r"\frac{1}{2-2}"])
def test_no_value(text):
    with pytest.raises(Undefined):
        rational(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^{9}}",
        "(10^9)!",
        "((((9!)!)!)!)!",
        "100000000!!",
        r"\binom{10^9}{5\cdot 10^8}",
        "2^{3^{20}}",
        "(2^{30000})^{3}",
        r"\frac{1}{9^{9^9}}",
        "1e2001",
    ],
)
def test_bombs_cost_microseconds(text):
    """Refused by their size; a hundred take less than a second of computing."""
    start = time.process_time()
    for _ in range(100):
        with pytest.raises(TooLarge):
            rational(parse(text))
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("degree", [2, 3, 5, 17])
@pytest.mark.parametrize("root", [2, 10, 123456789, 10**30 + 7])
def test_roots_come_out_only_if_they_are_exact(root, degree):
    """Of root^degree and of its neighbours."""
    power = root**degree
    assert exact_root(Fraction(power), degree) == root
    assert exact_root(Fraction(1, power), degree) == Fraction(1, root)
    assert exact_root(Fraction(power + 1), degree) is None
    assert exact_root(Fraction(power - 1), degree) is None
