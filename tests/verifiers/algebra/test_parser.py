"""How answers are read: a compact form of the tree against the expected one."""

import pytest

from rlvr_jax.verifiers.algebra.normalise import latex
from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.tree import Node, ParseError, TooLarge


def show(node: Node) -> str:
    """The tree as text: operators in front, numbers and names as they are."""
    if node.op in ("number", "symbol", "text"):
        return str(node.value)
    inside = " ".join(map(show, node.args))
    name = node.value if node.op == "call" else node.op
    if node.op in ("rel", "seq", "unit", "base") and node.value:
        name += (
            f"[{' '.join(map(str, node.value)) if node.op != 'unit' else node.value}]"
        )
    return f"({name} {inside})" if inside else f"({name})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        # Precedence and signs.
        ("1+2*3", "(add 1 (mul 2 3))"),
        ("-x^2", "(neg (pow x 2))"),
        ("2^-1", "(pow 2 (neg 1))"),
        ("2x^2y", "(mul 2 (pow x 2) y)"),
        ("a/bc", "(mul (div a b) c)"),
        ("x-1-2", "(add x (neg 1) (neg 2))"),
        ("n2^n", "(mul n (pow 2 n))"),
        # LaTeX arguments.
        (r"\frac12", "(div 1 2)"),
        (r"\frac12x", "(mul (div 1 2) x)"),
        (r"\frac1{72}", "(div 1 72)"),
        (r"\dfrac{a+b}2", "(div (add a b) 2)"),
        (r"\sqrt3x", "(mul (root 3 2) x)"),
        (r"\sqrt[3]{4}", "(root 4 3)"),
        (r"\sqrt{}{3}", "(root 3 2)"),
        (r"{3 \over 4}", "(div 3 4)"),
        (r"\\frac{1}{2}", "(div 1 2)"),
        # Numbers.
        (r"2\frac34", "(add 2 (div 3 4))"),
        (r"2{\frac34}", "(add 2 (div 3 4))"),
        ("2 3/4", "(add 2 (div 3 4))"),
        (r"3\cdot 2\frac34", "(mul 3 (add 2 (div 3 4)))"),
        (r"2\frac34\%", "(pct (add 2 (div 3 4)))"),
        # A product is no mixed number.
        (r"2\cdot\frac34", "(mul 2 (div 3 4))"),
        (r"2\times\frac34", "(mul 2 (div 3 4))"),
        (r"2*\frac34", "(mul 2 (div 3 4))"),
        (r"2\left(\frac34\right)", "(mul 2 (div 3 4))"),
        (r"(2)\frac34", "(mul 2 (div 3 4))"),
        (r"2\cdot\frac34\pi", "(mul 2 (div 3 4) pi)"),
        (r"2x\frac34", "(mul 2 x (div 3 4))"),
        ("14{,}916", "14916"),
        ("3{,}5", "7/2"),
        ("204_5", "(base[204 5])"),
        # Functions.
        (r"\sin 2x", "(sin (mul 2 x))"),
        (r"2\sin b\cos a", "(mul 2 (sin b) (cos a))"),
        (r"\sin^2 x", "(pow (sin x) 2)"),
        (r"\sin^{-1} x", "(asin x)"),
        (r"\sin x \cdot x", "(mul (sin x) x)"),
        (r"\log_{10} x", "(log x 10)"),
        (r"\ln|x-2|", "(ln (abs (add x (neg 2))))"),
        (r"|x||y|", "(mul (abs x) (abs y))"),
        ("sqrt(3)/2", "(div (root 3 2) 2)"),
        ("f(x)", "(f x)"),
        ("n(n-1)", "(mul n (add n (neg 1)))"),
        (r"f^{-1}(x)", "(f^-1 x)"),
        ("5!7!", "(mul (factorial 5) (factorial 7))"),
        ("90^\\circ", "(deg 90)"),
        (r"12\frac12\%", "(pct (add 12 (div 1 2)))"),
        # Names.
        ("x_1", "x_1"),
        ("x_{12}", "x_12"),
        (r"\alpha_{n+1}", r"\alpha_n+1"),
        ("y'", "y'"),
        # Lists and brackets.
        ("1,2 and 3", "(list 1 2 3)"),
        ("1, 2, and 3", "(list 1 2 3)"),
        ("1,2;3,4", "(groups (list 1 2) (list 3 4))"),
        ("1;2", "(list 1 2)"),
        ("(1,2)", "(seq[( )] 1 2)"),
        ("[1,2)", "(seq[[ )] 1 2)"),
        ("(x)", "x"),
        ("[x]", "x"),
        (r"\{1,2\}", "(set 1 2)"),
        ("{1,2}", "(set 1 2)"),
        (r"\{\}", "(set)"),
        (r"\{x \mid x>1\}", "(rel[>] x 1)"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(matrix (seq 1 2) (seq 3 4))"),
        # Relations.
        ("1<x<=2", "(rel[< <=] 1 x 2)"),
        (r"x \in (1,2)", "(rel[in] x (seq[( )] 1 2))"),
        ("11:21", "(ratio 11 21)"),
        (r"1 \pm \sqrt2", "(pm 1 (root 2 2))"),
        (r"\pm 3", "(pm 3)"),
        # Words.
        (r"10\text{ cm}^2", "(unit[cm ^2] 10)"),
        ("10weeks", "(unit[weeks] 10)"),
        (r"\text{Evelyn}", "Evelyn"),
    ],
)
def test_trees(text, tree):
    assert show(parse(latex(text))) == tree


@pytest.mark.parametrize(
    "text",
    ["", "1+", "(1", "1)", "1 2", "{}", "()", r"\frac{1}", "x^2^3^", r"\int x", "1..2",
     r"\begin{cases}1&2\end{cases}", "f(", "a=", "S(4).__eq__", 'eval("2+2")',
     r"\begin{pmatrix}1&2\\3\end{pmatrix}", "2^{", "|x"],
)  # fmt: skip
def test_what_cannot_be_read(text):
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["(" * 50 + "1" + ")" * 50, "-" * 50 + "1", "1+" * 1000 + "1", "x" * 5000,
     "7" * 3000, r"\frac" * 50 + "1", "2^" * 50 + "2", "1e1000000000"],
)  # fmt: skip
def test_what_is_too_large_to_read(text):
    with pytest.raises(TooLarge):
        parse(text)
