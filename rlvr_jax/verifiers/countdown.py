"""The `countdown` verifier: reach a target from given numbers with + - * and /.

Every number is used exactly once. Arithmetic is exact, on fractions. Rules as in
TinyZero (Jiayi-Pan/TinyZero, countdown), which allows a tolerance of 1e-5; none here.
"""

import re
from fractions import Fraction

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict

_MAX_EXPRESSION = 500
_TOKEN = re.compile(r"\s*(?:(\d+)|(.))", re.DOTALL)
_SPELLINGS = {
    r"\times": "*",
    r"\cdot": "*",
    r"\div": "/",
    r"\left": "",
    r"\right": "",
    "\u00d7": "*",
    "\u00b7": "*",
    "\u00f7": "/",
    "\u2212": "-",
    "\u2013": "-",
    "[": "(",
    "]": ")",
    "$": "",
}


def verify(sample: Sample) -> Verdict:
    """Checks an expression such as (25 - 5) * 3.

    The reference is {"target": 60, "numbers": [3, 5, 25]}. The expression is taken
    from the <answer> tag or box, else the last line; "= 60" at its end is allowed if
    it is true.
    """
    try:
        target = Fraction(sample.answer["target"])
        numbers = sorted(int(number) for number in sample.answer["numbers"])
    except (TypeError, KeyError, ValueError) as error:
        return Verdict(
            Status.BAD_REFERENCE,
            0.0,
            'countdown needs an answer {"target": t, "numbers": [...]}, got '
            f"{sample.answer!r:.100} ({type(error).__name__})",
        )
    marked = extract.marked_answers(sample.completion)
    if len(set(marked)) > 1:
        return Verdict(Status.UNPARSEABLE, 0.0, f"several answers: {marked!r:.200}")
    text = marked[0] if marked else extract.last_line(sample.completion)
    try:
        value, used = evaluate(text)
    except (ValueError, RecursionError) as error:
        return Verdict(Status.UNPARSEABLE, 0.0, f"{text!r:.100}: {error}")
    if sorted(used) != numbers:
        return _wrong(f"{text!r:.100} uses {sorted(used)}, not {numbers}")
    if value != target:
        return _wrong(f"{text!r:.100} is {value}, not {target}")
    return Verdict(Status.CORRECT, 1.0, f"{text!r:.100} is {target}")


def _wrong(detail: str) -> Verdict:
    return Verdict(Status.WRONG, 0.0, detail)


def evaluate(text: str) -> tuple[Fraction, list[int]]:
    """The exact value of an expression and the numbers in it, in order.

    Raises:
      ValueError: it is not an expression of whole numbers, + - * / and parentheses, it
        divides by zero, or claims "= n" for another n.

    Example:
      >>> evaluate("(25 - 5) * 3")
      (Fraction(60, 1), [25, 5, 3])
    """
    if len(text) > _MAX_EXPRESSION:
        raise ValueError(f"longer than {_MAX_EXPRESSION} characters")
    for spelling, plain in _SPELLINGS.items():
        text = text.replace(spelling, plain)
    expression, equals, claim = text.strip().rstrip(".").partition("=")
    value, used = _Parser(expression).run()
    if equals and _Parser(claim).run()[0] != value:
        raise ValueError(f"it is {value}, not {claim.strip()}")
    return value, used


class _Parser:
    """Recursive descent: sum -> product -> factor."""

    def __init__(self, text: str):
        self._tokens = [number or sign for number, sign in _TOKEN.findall(text.strip())]
        self._tokens.append("end")
        self._used: list[int] = []

    def run(self) -> tuple[Fraction, list[int]]:
        value = self._sum()
        if self._tokens[0] != "end":
            raise ValueError(f"unexpected {self._tokens[0]!r}")
        return value, self._used

    def _sum(self) -> Fraction:
        value = self._product()
        while self._tokens[0] in "+-":
            if self._tokens.pop(0) == "+":
                value += self._product()
            else:
                value -= self._product()
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while self._tokens[0] in "*/":
            if self._tokens.pop(0) == "*":
                value *= self._factor()
            else:
                divisor = self._factor()
                if divisor == 0:
                    raise ValueError("division by zero")
                value /= divisor
        return value

    def _factor(self) -> Fraction:
        token = self._tokens.pop(0)
        if token.isdecimal() and token.isascii():
            self._used.append(int(token))
            return Fraction(int(token))
        if token == "-":
            return -self._factor()
        if token == "(":
            value = self._sum()
            if self._tokens.pop(0) != ")":
                raise ValueError("a parenthesis is not closed")
            return value
        raise ValueError(f"unexpected {token!r}")
