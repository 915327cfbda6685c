"""Equality by value: to as many digits as the sizes on the way demand."""

import pytest

from rlvr_jax.verifiers.algebra import numeric
from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.tree import TooLarge


def equal(left, right):
    return numeric.equal(parse(left), parse(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}"),
        (r"\sin\frac{\pi}{12}", r"\frac{\sqrt6-\sqrt2}{4}"),
        (r"e^{i\pi}", "-1"),
        (r"\arctan\frac12+\arctan\frac13", r"\frac{\pi}{4}"),
        (r"4\arctan\frac15-\arctan\frac1{239}", r"\frac{\pi}{4}"),  # Machin
        (r"\log_2 8", "3"),
        (r"\sin^2 x+\cos^2 x", "1"),
        (r"\ln(xy)", r"\ln x+\ln y"),
        (r"\frac{x^2-1}{x-1}", "x+1"),
        (r"(-1)^n", r"\cos(n\pi)"),
        (r"\binom{2n}{n}", r"\frac{(2n)!}{(n!)^2}"),
        (r"\sqrt{x}\sqrt{x}", "x"),
        (r"|x|", r"\sqrt{x^2}"),
        (r"f(x+1)", r"f(1+x)"),
        (r"\sin(90^\circ-x)", r"\cos x"),
    ],
)
def test_equal(left, right):
    assert equal(left, right) is True
    assert equal(right, left) is True


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # Near misses: the digits to which they agree are in the comment.
        (r"\sqrt2+\sqrt3", r"\pi"),  # 2
        (r"e^{\pi\sqrt{163}}", "262537412640768744"),  # 30
        (r"\frac{\pi^9}{e^8}", "10"),  # 4
        (r"\sin(10^{-8})", "0"),
        (r"4+\sin(10^{-200})", "4"),  # 200
        (r"\cos(10^{-100})", "1"),  # 200
        (r"\sin(10^{-50})", r"10^{-50}"),  # 100 after the first digit
        (r"\sqrt{10^{60}+1}", r"10^{30}"),  # 60
        (r"\ln(10^{90}+1)", r"90\ln 10"),  # 92
        ("x(x-0.5)(x-1)(x-2)(x+1)(x-0.1)", "0"),  # 0 where graders like to look
        (r"\sqrt{x^2}", "x"),
        (r"|x|", "x"),
        (r"\lfloor x\rfloor", r"\lceil x\rceil"),
        ("x+10^{-60}", "x"),
        ("f(x)", "f(y)"),
        ("f(x)", "g(x)"),
        (r"\pi r^2", r"\pi R^2"),
        ("(-1)^n", "1"),
        ("x^2", "x^{2.0000001}"),
    ],
)
def test_not_equal(left, right):
    assert equal(left, right) is False
    assert equal(right, left) is False


@pytest.mark.parametrize(
    ("left", "right"),
    [(r"\frac{1}{\sin\pi}", "1"), (r"\ln 0", "1"), (r"\sqrt{-1-x^2}", "x")],
)
def test_not_decided_where_there_is_no_value(left, right):
    assert equal(left, right) in (None, False)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (r"4+e^{-e^{10}}", "4"),  # 10^-9566
        (r"\sin(e^{1000})", "0"),
        (r"e^{e^{e^{10}}}", "1"),
        (r"\pi+10^{-2000}", r"\pi"),
        (r"x^{x^{x^{x^{x}}}}", "x"),
    ],
)
def test_too_large_is_said_or_different(left, right):
    """Never equal: an answer that cannot be decided must not be paid."""
    try:
        assert equal(left, right) is False
    except TooLarge:
        pass


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        ("2x-4", "x-2", 1),
        ("4-2x", "x-2", -1),
        ("3x^2+4y^2-12", r"\frac{x^2}{4}+\frac{y^2}{3}-1", 1),
        ("x-2", "x-3", None),
        ("x-2", "y-2", None),
        ("x-2", "(x-2)^2", None),
        ("0", "x", None),
        ("x-x", "0", None),
        (r"x-2", r"x-2+10^{-50}", None),
    ],
)
def test_proportional(left, right, sign):
    assert numeric.proportional(parse(left), parse(right)) == sign
