r"""Splits the text of an answer into tokens; LaTeX and plain notation alike."""

import re
from fractions import Fraction
from typing import NamedTuple

from rlvr_jax.verifiers.algebra import tree
from rlvr_jax.verifiers.algebra.units import LETTERS


class Token(NamedTuple):
    """`kind` is number, letter, word, name, text, sign, begin, end or stop."""

    kind: str
    text: str
    spaced: bool = False
    """White space stands before it."""


STOP = Token("stop", "")
NO_UNITS: frozenset[str] = frozenset()

_TOKEN = re.compile(
    r"""(?P<space>\s*)(?:
      (?P<number>(?:[0-9]+(?:\{,\}[0-9]{3})+(?![0-9])(?:\.[0-9]+)?
                 |[0-9]+(?:\{,\}[0-9]+)?(?:\.[0-9]+|\.(?=\s*[-/*+)]))?|\.[0-9]+)
                 (?:[eE][+-]?[0-9]+(?![a-zA-Z]))?)
     |\\(?:begin|end)\s*\{(?P<environment>[a-zA-Z]+)\*?\}
     |\\(?P<wrapper>text|textbf|textit|textrm|textsf|texttt|textnormal|mbox|mathrm|mathbf
        |mathit|mathsf|boldsymbol|vec|operatorname\*?|bm|emph)\s*\{(?P<inner>(?:[^{}]|\{[^{}]{0,40}\})*)\}
     |\\(?P<command>[a-zA-Z]+)
     |\\(?P<escaped>[{}%|\\])
     |(?P<letters>[a-zA-Z]+)
     |(?P<sign><=|>=|!=|==|\*\*|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SIGN_NAMES = {"<=": "\\le", ">=": "\\ge", "!=": "\\ne", "==": "=", "**": "^"}
FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh coth "
    "arcsinh asinh ln log lg exp sqrt cbrt floor ceil abs max min gcd lcm det".split()
)
_CONSTANTS = {
    "pi": "pi",
    "infinity": "inf",
    "infty": "inf",
    "inf": "inf",
    "oo": "inf",
    "theta": "theta",
    "alpha": "alpha",
    "beta": "beta",
    "gamma": "gamma",
    "lambda": "lambda",
    "omega": "omega",
}
_AMOUNT = re.compile(r"(-?[0-9][0-9.,]*)\s+([a-zA-Z][a-zA-Z ]*)")
"""As in \\text{5 miles}."""
_JOINERS = {"and": "and", "or": "or", "union": "\\cup", "to": ":"}
_AFTER_PI = frozenset(["cm", "mm", "km", "ft", "sq", "cu"])
"""Units that are taken for one after pi; pi hr^2 is a volume."""
_LETTER_STYLES = frozenset("mathbf mathrm boldsymbol mathit bm vec".split())
_LONGEST_PRODUCT = 3
"""A longer run of letters is a word, not a product of variables."""


def tokens(text: str, units: frozenset[str] = NO_UNITS) -> list[Token]:
    r"""The tokens of a text.

    Args:
      text: as `normalise.latex` returns it.
      units: runs of letters that are a word when they follow a number.

    Raises:
      tree.TooLarge: the text or a number in it is too long.

    Example:
      >>> [token.text for token in tokens(r"\frac12 x + \sin y")]
      ['\\frac', '12', 'x', '+', '\\sin', 'y']
    """
    if len(text) > tree.MAX_CHARACTERS:
        raise tree.TooLarge(f"an answer of {len(text)} characters")
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        spaced = bool(match["space"])
        last = found[-1] if found else Token("stop", "")
        after_number = last.kind == "number" or last.text == "}"
        if kind == "number":
            found.append(Token("number", match["number"], spaced))
        elif kind == "environment":
            side = "begin" if "\\begin" in match[0] else "end"
            found.append(Token(side, match["environment"], spaced))
        elif kind == "inner":
            letter_units = LETTERS if after_number else NO_UNITS
            found.extend(
                _wrapped(match["inner"], match["wrapper"], spaced, units | letter_units)
            )
        elif kind == "command":
            found.append(Token("name", "\\" + match["command"], spaced))
        elif kind == "escaped":
            found.append(Token("sign", "\\" + match["escaped"], spaced))
        elif kind == "letters":
            found.extend(_letters(match["letters"], spaced, _possible(last, units)))
        elif kind == "sign":
            sign = match["sign"]
            found.append(Token("sign", _SIGN_NAMES.get(sign, sign), spaced))
    return found


def _possible(last: Token, units: frozenset[str]) -> frozenset[str]:
    """The runs of letters that would be units after this token."""
    if last.kind in ("number", "text") or last.text == "}":
        return units
    return _AFTER_PI & units if last.text == "\\pi" else NO_UNITS


def value_of(text: str) -> Fraction:
    """The value of a number token.

    Raises:
      tree.TooLarge: it has too many digits, or an exponent past all reason.
      tree.ParseError: it has two decimal points.
    """
    grouped = re.fullmatch(r"[0-9]+(?:\{,\}[0-9]{3})+(?:[.e].*)?", text.lower())
    text = text.replace("{,}", "" if grouped else ".")
    digits, _, exponent = text.lower().partition("e")
    if digits.count(".") > 1:
        raise tree.ParseError("a number with two decimal points")
    if len(digits) > tree.MAX_DIGITS or len(exponent) > 6:
        raise tree.TooLarge("a number of too many digits")
    if abs(int(exponent or 0)) > tree.MAX_DIGITS:
        raise tree.TooLarge("a number of too many digits")
    return Fraction(digits) * Fraction(10) ** int(exponent or 0)


def _wrapped(
    inner: str, wrapper: str, spaced: bool, units: frozenset[str]
) -> list[Token]:
    """What \\text{...} and its like hold: a joiner, a sign, mathematics or words."""
    word = inner.strip()
    lower = word.lower().strip(", ")
    if lower in _JOINERS:
        return [Token("sign", _JOINERS[lower], True)]
    if lower in FUNCTIONS:
        return [Token("word", lower, spaced)]
    if not word or word in (",", ";"):
        return [Token("sign", word)] if word else []
    if amount := _AMOUNT.fullmatch(word):
        rest = Token("text", amount[2], True)
        return [*tokens(amount[1].replace(",", "{,}")), rest]
    if word in units:
        return [Token("text", word, spaced)]
    if len(word) == 1 and word.isalpha():
        return [Token("letter", word, spaced)]
    if re.fullmatch(r"\(?\s*(?:[a-zA-Z]|-?[0-9][0-9.,]*)\s*\)?", word):
        return [
            token._replace(spaced=spaced or token.spaced)
            for token in tokens(word.replace(",", "{,}"))
        ]
    if wrapper in _LETTER_STYLES and len(word) <= 2:
        return [Token("letter", word, spaced)]
    return [Token("text", word, spaced)]


def _letters(run: str, spaced: bool, units: frozenset[str]) -> list[Token]:
    lower = run.lower()
    if lower in _JOINERS:
        return [Token("sign", _JOINERS[lower], spaced)]
    if run in FUNCTIONS and run not in units:
        return [Token("word", run, spaced)]
    if run in _CONSTANTS:
        return [Token("name", "\\" + run, spaced)]
    if run in units:
        return [Token("text", run, spaced)]
    if len(run) <= _LONGEST_PRODUCT:
        return [
            Token("letter", letter, spaced and i == 0) for i, letter in enumerate(run)
        ]
    for function in ("sqrt", "sin", "cos", "tan", "log", "exp", "ln"):
        if run.startswith(function) and len(run) == len(function) + 1:
            return [
                Token("word", function, spaced),
                Token("letter", run[len(function) :]),
            ]
    return [Token("text", run, spaced)]
