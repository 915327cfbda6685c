r"""The signs and commands of LaTeX and plain notation, and what they stand for."""

from rlvr_jax.verifiers.algebra import tree
from rlvr_jax.verifiers.algebra.tree import Node

RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "\\lt": "<",
    "\\gt": ">",
    "\\le": "<=",
    "\\leq": "<=",
    "\\leqslant": "<=",
    "\\leqq": "<=",
    "\\ge": ">=",
    "\\geq": ">=",
    "\\geqslant": ">=",
    "\\geqq": ">=",
    "\\ne": "!=",
    "\\neq": "!=",
    "\\approx": "~",
    "\\sim": "~",
    "\\simeq": "~",
    "\\in": "in",
    ":": ":",
    "\\colon": ":",
    "\\equiv": "=",
}
SET_SIGNS = {
    "\\cup": "cup",
    "\\bigcup": "cup",
    "\\cap": "cap",
    "\\setminus": "setminus",
    "\\backslash": "setminus",
}
TIMES = frozenset(["*", "\\cdot", "\\times", "\\ast", "\\bullet", "\\cdotp"])
OVER = frozenset(["/", "\\div"])
CONSTANTS = {
    "\\infty": tree.INFINITY,
    "\\inf": tree.INFINITY,
    "\\infinity": tree.INFINITY,
    "\\oo": tree.INFINITY,
    "\\pi": Node("symbol", (), "pi"),
    "\\emptyset": Node("set"),
    "\\varnothing": Node("set"),
    "\\R": Node("symbol", (), "\\mathbb{R}"),
    "\\ldots": Node("symbol", (), "dots"),
    "\\dots": Node("symbol", (), "dots"),
    "\\cdots": Node("symbol", (), "dots"),
    "\\imath": Node("symbol", (), "i"),
}
ROOTS = {"\\usqrt": 2, "\\surd": 2, "\\ucbrt": 3}
"""Roots without braces, as in \u221a2."""
FRACTIONS = frozenset(["\\frac", "\\dfrac", "\\tfrac", "\\cfrac"])
BINOMIALS = frozenset(["\\binom", "\\dbinom", "\\tbinom"])
BOXES = frozenset(["\\boxed", "\\fbox", "\\mathop", "\\underline", "\\displaylines"])
ACCENTS = frozenset(
    ["\\overline", "\\bar", "\\hat", "\\dot", "\\ddot", "\\tilde", "\\overrightarrow",
     "\\mathbb", "\\mathcal", "\\mathfrak", "\\widehat"]
)  # fmt: skip
INVERSE = {"sin": "asin", "cos": "acos", "tan": "atan", "sinh": "asinh"}
ALIASES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
}  # fmt: skip
CLOSERS = {"(": ")]", "[": ")]", "\\{": ["\\}"]}
MATRICES = frozenset(
    ["matrix", "pmatrix", "bmatrix", "Bmatrix", "vmatrix", "array", "smallmatrix"]
)
APPLIED = frozenset("fghFGHPQ")
"""Letters that, before a parenthesis, are a function and not a factor."""
UNREADABLE = frozenset(
    ["\\int", "\\iint", "\\oint", "\\sum", "\\prod", "\\lim", "\\Rightarrow",
     "\\implies", "\\iff", "\\to", "\\rightarrow", "\\bmod", "\\pmod", "\\mod",
     "\\begin", "\\end", "\\limsup", "\\bigcap", "\\ll", "\\gg", "\\cong", "\\propto"]
)  # fmt: skip

NO_ATOMS = frozenset(
    ["\\pm", "\\mp", "\\mid", "\\rvert", "\\rfloor", "\\rceil", "\\circ",
     "\\degree", "\\rangle", "\\rbrace", "\\vert", "\\percent",
     *RELATIONS, *SET_SIGNS, *TIMES, *OVER, *UNREADABLE]
)  # fmt: skip
