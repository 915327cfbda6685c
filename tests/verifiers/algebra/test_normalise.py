"""One spelling for Unicode, LaTeX layout and marks around answers."""

import pytest

from rlvr_jax.verifiers.algebra import lexer
from rlvr_jax.verifiers.algebra.normalise import latex, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**42**", "42"),
        ("$42$.", "42"),
        (r"\(42\)", "42"),
        (r"\[ 42 \]", "42"),
        ("{{42}}", "42"),
        ("{1,2}", "{1,2}"),
        (r"\left(1, 2\right)", "(1, 2 )"),
        ("'yes'", "yes"),
        ("y'", "y'"),
        (r"1\,000", "1 000"),
        (r"11,\! 111", "11{,}111"),
        (r"\$5", "5"),
        ("\u20ac5", "5"),
        ("\u22125", "-5"),
        ("x\u00b2", "x^{2}"),
        ("2\u00bd", "2 1/2"),
        (r"x &= 1", "x &= 1"),
        (r"\begin{align*} x &= 1 \\ y &= 2 \end{align*}", "x = 1 , y = 2"),
        (r"\begin{pmatrix}1\2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
        (r"90^o", r"90^\circ"),
        (r"\approx 5", "5"),
        ("12{}13", "1213"),
        ("...", "..."),
    ],
)
def test_latex(text, expected):
    assert latex(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1\u200b0", "10"), ("\uff14\u0664\u202e", "44"), ("\u0410", "\u0410")],
)
def test_visible(text, expected):
    """Digits of all scripts, nothing unseen; a Cyrillic A stays a Cyrillic A."""
    assert visible(text) == expected


def test_numbers_with_groups_and_decimal_commas():
    assert lexer.value_of("14{,}916") == 14916
    assert lexer.value_of("3{,}5") == 3.5
    assert lexer.value_of("1.5e3") == 1500
