"""Sets of reals as unions of intervals."""

import pytest

from rlvr_jax.verifiers.algebra import intervals
from rlvr_jax.verifiers.algebra.normalise import latex
from rlvr_jax.verifiers.algebra.parser import parse


def same(left, right):
    return intervals.same_set(parse(latex(left)), parse(latex(right)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x<3", r"(-\infty,3)"),
        ("3>x", r"(-\infty,3)"),
        ("1<x<=2", "(1,2]"),
        ("2>=x>1", "(1,2]"),
        (r"x \ne 2", r"(-\infty,2)\cup(2,\infty)"),
        (r"[0,2]\setminus(0,1)", r"\{0\}\cup[1,2]"),
        (r"(0,1)\cap\{0.5\}", r"\{\frac12\}"),
        (r"(0,1)\cap(2,3)", r"\emptyset"),
        (r"[0,1]\cup[1,2]", "[0,2]"),
        (r"[0,1)\cup[1,2]", "[0,2]"),
        (r"(0,3)\cup(1,2)", "(0,3)"),
        (r"\mathbb{R}\setminus\{0\}", r"x<0 \text{ or } x>0"),
        (r"x>1 \text{ and } x<2", "(1,2)"),
        (r"(0,\sqrt{2})", r"(0,2\cos 45^\circ)"),
        (r"\{2,1\}", r"\{1,2\}"),
        (r"(1,1)", r"\emptyset"),
    ],
)
def test_same(left, right):
    assert same(left, right) is True
    assert same(right, left) is True


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x<3", "x<=3"),
        ("(1,2)", "[1,2)"),
        ("(1,2)", "(1,3)"),
        (r"[0,1)\cup(1,2]", "[0,2]"),
        (r"\{1,2\}", r"\{1,2,3\}"),
        (r"(0,1)", r"\emptyset"),
        # The ends differ by less than 10^-300.
        (r"[2^{\frac{1}{2^{1000}}},\infty)", r"[1,\infty)"),
    ],
)
def test_different(left, right):
    assert same(left, right) is False


@pytest.mark.parametrize("text", ["x+1", "(1,2,3)", "(a,b)", "x<y", "x^2<4", "1<2"])
def test_what_is_no_such_set(text):
    assert same(text, "(0,1)") is None
