"""Lists, tuples, names, relations and matrices; more pairs are in test_math_rows."""

import pytest

from rlvr_jax.verifiers.algebra import compare, elements
from rlvr_jax.verifiers.algebra.normalise import latex
from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.tree import TooLarge, Undefined


def same(gold, answer):
    return compare.same(parse(latex(gold)), parse(latex(answer)))


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        # Names: compared where both sides have them, else in their order.
        ("x=1, y=2", "y=2, x=1", True),
        ("x=1, y=2", "x=2, y=1", False),
        ("x=1, y=2", "1, 2", True),
        ("x=1, y=2", "2, 1", False),
        ("x=1, x=2", "2, 1", True),
        ("p=5, q=2; p=7, q=2", "q=2, p=7, q=2, p=5", True),
        ("p=5, q=2; p=7, q=2", "p=5, q=7; p=2, q=2", False),
        ("1,2;3,4", "(3,4), (1,2)", True),
        # Repeated members: a reference's count, an answer may repeat.
        ("36, 36, 108", "36, 108", False),
        ("36, 36, 108", "36, 108, 36", True),
        ("36, 108", "36, 36, 108", True),
        (r"\{36, 36, 108\}", r"\{36, 108\}", True),
        # +- on its own, and tied to -+.
        (r"(\pm 3, \pm 2)", "(3,2), (-3,2), (3,-2), (-3,-2)", True),
        (r"(\pm 3, \mp 2)", "(3,-2), (-3,2)", True),
        (r"(\pm 3, \mp 2)", "(3,2), (-3,-2)", False),
        # Sequences.
        (r"1, 3, \ldots", r"3, 1, \ldots", False),
        ("(1,2)", "1,2", False),
        ("(1,2)", "[1,2]", False),
        ("(1,2,3)", "[1,2,3]", True),
        # Chains hold or count for nothing.
        ("12", "3*4=12", True),
        ("5", "x=2+3=5", True),
        (r"\frac13", r"\frac13 \approx 0.33", True),
    ],
)
def test_same(gold, answer, expected):
    assert same(gold, answer) is expected


@pytest.mark.parametrize("answer", ["3*4=13", "3=4", "x=4=5", r"3 \approx 4"])
def test_chains_that_do_not_hold_have_no_value(answer):
    with pytest.raises(Undefined):
        same("4", answer)


@pytest.mark.parametrize(
    "text", [",".join(["1"] * 101), r"\pm 1" * 9, ",".join([r"\pm 1"] * 60)]
)
def test_lists_without_end_are_refused(text):
    with pytest.raises(TooLarge):
        elements.elements(parse(text))


def test_products_and_sums_of_matrices():
    """[[1,2],[3,4]] [[0,1],[1,0]] swaps the columns; by hand."""
    left = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"
    swap = r"\begin{pmatrix}0&1\\1&0\end{pmatrix}"
    assert same(r"\begin{pmatrix}2&1\\4&3\end{pmatrix}", left + swap)
    assert same(r"\begin{pmatrix}1&3\\4&4\end{pmatrix}", f"{left}+{swap}")
    assert same(r"\begin{pmatrix}2&4\\6&8\end{pmatrix}", f"2{left}")
    assert not same(r"\begin{pmatrix}3&4\\1&2\end{pmatrix}", left + swap)
