"""The value of a tree at a point, and how large and small the values on the way are."""

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined

_LARGEST_ARGUMENT = 10**6
"""Of sin, exp and their like; to reduce a larger one takes as many digits."""
_LARGEST_EXPONENT = 10**7
"""In binary digits, of a power."""
_LARGEST_FACTORIAL = 10**4

_PLAIN = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "cot": "cot",
    "sec": "sec",
    "csc": "csc",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "coth": "coth",
    "asinh": "asinh",
    "exp": "exp",
    "ln": "ln",
    "log": "ln",
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
}


class Functions:
    """Evaluates trees with the precision that the context is set to."""

    def __init__(self, context: Any, point: Mapping[str, Fraction]):
        """With an mpmath context and the values of the variables."""
        self.largest = 0
        self.smallest = 0
        """Decimal places, before and after the point, of the values met so far."""
        self.results: list[Any] = []
        self._mp = context
        self._point = point

    def is_real(self, result: Any) -> bool:
        """Whether a result is a real number, but for rounding."""
        if not isinstance(result, self._mp.mpc):
            return True
        return abs(result.imag) <= abs(result) * self._mp.mpf(10) ** -15

    def evaluate(self, node: Node) -> Any:
        """The value of a tree.

        Raises:
          Undefined: it has none at this point.
          TooLarge: working it out would take too long.
        """
        try:
            result = self._value(node)
        except (ZeroDivisionError, ValueError, OverflowError, ArithmeticError) as error:
            raise Undefined(str(error)) from error
        if not self._mp.isfinite(result):
            raise Undefined("not a finite number")
        if result:
            places = int(self._mp.mag(result) * 0.30103)
            self.largest = max(self.largest, places)
            self.smallest = max(self.smallest, -places)
        return result

    def _value(self, node: Node) -> Any:
        op, args = node.op, node.args
        if op == "number":
            return self._mp.mpf(node.value.numerator) / node.value.denominator
        if op == "symbol":
            return self._symbol(node.value)
        if op == "call" and node.value not in _PLAIN:
            return self._call(node.value, [self.evaluate(each) for each in args])
        if op not in ("add", "mul", "neg", "div", "pow", "root", "deg", "pct", "call"):
            raise Undefined(f"no number: {op}")
        values = [self.evaluate(each) for each in args]
        if op == "add":
            return self._mp.fsum(values)
        if op == "mul":
            return self._mp.fprod(values)
        if op == "neg":
            return -values[0]
        if op == "div":
            return values[0] / values[1]
        if op == "pow":
            return self._power(values[0], values[1])
        if op == "root":
            return self._root(values[0], values[1])
        if op == "deg":
            return values[0] * self._mp.pi / 180
        if op == "pct":
            return values[0] / 100
        return self._plain(node.value, values)

    def _symbol(self, name: str) -> Any:
        if name in ("pi", "e"):
            return +getattr(self._mp, name)
        if name == "i":
            return self._mp.mpc(0, 1)
        if name not in self._point:
            raise Undefined(f"{name} has no value")
        value = self._point[name]
        return self._mp.mpf(value.numerator) / value.denominator

    def _plain(self, name: str, values: list[Any]) -> Any:
        if name == "log" and len(values) == 2:
            return self._mp.log(values[0]) / self._mp.log(values[1])
        if len(values) != 1:
            raise Undefined(f"{name} of {len(values)} values")
        if name not in ("ln", "log", "abs", "floor", "ceil"):
            if abs(values[0]) > _LARGEST_ARGUMENT:
                raise TooLarge(f"{name} of a very large number")
        if name in ("ln", "log") and not values[0]:
            raise Undefined("the logarithm of zero")
        return getattr(self._mp, _PLAIN[name])(values[0])

    def _power(self, base: Any, exponent: Any) -> Any:
        if not base:
            if not self.is_real(exponent) or exponent.real < 0:
                raise Undefined("a negative power of zero")
            return self._mp.mpf(1 if not exponent else 0)
        if abs(exponent) * max(1, abs(self._mp.mag(base))) > _LARGEST_EXPONENT:
            raise TooLarge("a power too large to work out")
        return self._mp.power(base, exponent)

    def _root(self, base: Any, degree: Any) -> Any:
        odd = self._mp.isint(degree) and int(degree) % 2 == 1
        if odd and self.is_real(base) and base.real < 0:
            return -self._power(-base.real, 1 / degree)
        return self._power(base, 1 / degree)

    def _call(self, name: str, values: list[Any]) -> Any:
        if name in ("factorial", "factorial2", "binomial"):
            if any(abs(each) > _LARGEST_FACTORIAL for each in values):
                raise TooLarge(f"a {name} too large to work out")
            function = {"factorial": "factorial", "factorial2": "fac2"}.get(name, name)
            return getattr(self._mp, function)(*values)
        if name == "lg":
            return self._mp.log10(values[0])
        if name in ("max", "min") and all(self.is_real(each) for each in values):
            return (max if name == "max" else min)(each.real for each in values)
        return self._unknown(name, values)

    def _unknown(self, name: str, values: list[Any]) -> Any:
        """A function nobody defined, as f in f(x+1): one number for one argument."""
        text = name + repr([self._mp.nstr(each, 15) for each in values])
        digest = hashlib.sha256(text.encode()).digest()
        return 1 + self._mp.mpf(int.from_bytes(digest[:12], "big")) / 2**96
