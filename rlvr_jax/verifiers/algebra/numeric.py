r"""Whether two expressions are equal, by their values to many digits.

Rationals never come here: `rational` decides them exactly. What comes here is
irrational (sqrt(2) + sqrt(3)) or has variables. Values are taken to as many digits as
the sizes of all intermediate values demand: to 50 digits 4 + sin(10^-200) looks like
4, so the size of 10^-200 is noticed first and then 1700 digits are taken. Expressions
with variables are compared at points that follow from the expressions themselves, so
that no formula can be made to vanish at all of them.

mpmath has numbers of any precision and exponents without bound.
"""

import hashlib
import math
import random
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath

from rlvr_jax.verifiers.algebra import tree
from rlvr_jax.verifiers.algebra.canonical import key
from rlvr_jax.verifiers.algebra.functions import Functions
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.tree import Node, TooLarge, Undefined

_FIRST_DIGITS = 30
_AGREED_DIGITS = 80
"""Equal means equal to this many digits, beyond all that rounding could have lost."""
_MOST_DIGITS = 4000
_POINTS = 4
_ATTEMPTS = 16
_POINTS_OF_STEPS = 12
"""Steps are flat, so two of them agree at many points."""
_OF_WHOLE_NUMBERS = frozenset(["factorial2", "gcd", "lcm"])
_PRIME = 9973
"""Points have this denominator, which no answer is likely to have."""

_local = threading.local()


class _Values(NamedTuple):
    """The values of two expressions at one point."""

    first: Any
    second: Any
    error: Any
    """A bound on what rounding did to them, with a wide margin."""
    digits: int


def equal(left: Node, right: Node) -> bool | None:
    """Whether two expressions have one value, at every point where both have one.

    Returns:
      None if neither can be said: there is no point where both have a value.

    Raises:
      tree.TooLarge: it would take too many digits.
    """
    agreed = 0
    for values in _samples(left, right):
        if abs(values.first - values.second) > values.error:
            return False
        agreed += 1
    return True if agreed else None


def proportional(left: Node, right: Node) -> int | None:
    """The sign of c if left = c * right for one number c other than 0, else None.

    Two equations f = 0 and g = 0 say the same if f and g are proportional, two
    inequalities if c is positive as well.
    """
    ratios = []
    digits = _AGREED_DIGITS
    for first, second, error, digits_here in _samples(left, right, precise=True):
        if (abs(first) <= error) != (abs(second) <= error):
            return None
        if abs(second) > error:
            digits = max(digits, digits_here)
            with _context().workdps(digits):
                ratios.append((first / second, error / abs(second)))
    if not ratios:
        return None
    base, base_error = ratios[0]
    for ratio, error in ratios:
        if abs(ratio - base) > 10 * (error + base_error) * (1 + abs(base)):
            return None
    if isinstance(base, _context().mpc):
        return 0
    return 1 if base > 0 else -1


def value(node: Node) -> Any:
    """A constant to 60 digits, as an mpmath number, for putting constants in order.

    Raises:
      tree.Undefined: it has variables, or no real value.
    """
    with _context().workdps(60):
        result = Functions(_context(), {}).evaluate(node)
        if isinstance(result, _context().mpc):
            raise Undefined("not a real number")
        return result


def fraction(number: Any) -> Fraction:
    """An mpmath number as the fraction that it is.

    Raises:
      tree.TooLarge: its exponent is past all reason.
    """
    mantissa, exponent = number.man_exp  # without the sign
    if abs(exponent) > tree.MAX_BITS:
        raise TooLarge("a number of too many digits")
    return Fraction(mantissa if number > 0 else -mantissa) * Fraction(2) ** exponent


def _context() -> Any:
    """mpmath's state, which holds the working precision, one for each thread."""
    if not hasattr(_local, "context"):
        _local.context = mpmath.MPContext()
    return _local.context


def _samples(left: Node, right: Node, precise: bool = False) -> Iterator[_Values]:
    """The values of both at several points, as far as they have any."""
    names = sorted(tree.symbols(left) | tree.symbols(right))
    if exact := _exact_samples(left, right, names):
        yield from exact
        return
    imaginary = Node("symbol", (), "i")
    complex_allowed = any(imaginary in tree.walk(each) for each in (left, right))
    found, wanted = 0, _wanted_points(left, right)
    too_large: TooLarge | None = None
    for point in _points(left, right, names):
        try:
            yield _values((left, right), point, complex_allowed, precise)
            found += 1
        except Undefined:
            pass
        except TooLarge as error:
            too_large = error
        if not names or found == wanted:
            break
    if too_large and not found:
        raise too_large


def _exact_samples(left: Node, right: Node, names: list[str]) -> list[_Values]:
    """The same as fractions, where both are rational functions; else nothing."""
    found: list[_Values] = []
    wanted = _wanted_points(left, right)
    for point in _points(left, right, names):
        try:
            first, second = rational(left, point), rational(right, point)
        except Undefined:
            continue
        except TooLarge:
            return []
        if first is None or second is None:
            return []
        found.append(_Values(first, second, 0, _FIRST_DIGITS))
        if len(found) == wanted:
            break
    return found


def _values(
    nodes: tuple[Node, Node],
    point: dict[str, Fraction],
    complex_allowed: bool,
    precise: bool,
) -> _Values:
    """Thirty digits show most differences; values that look equal, or all if
    `precise`, are taken to as many as it needs."""
    context = _context()
    found = _evaluated(nodes, point, _FIRST_DIGITS)
    if not complex_allowed and not all(map(found.is_real, found.results)):
        raise Undefined("not a real number")
    digits = _FIRST_DIGITS
    lost = found.largest + 2 * found.smallest + 5
    error = context.mpf(10) ** (lost - digits)
    if precise or abs(found.results[0] - found.results[1]) <= error * 10**6:
        digits = _AGREED_DIGITS + 2 * found.largest + 8 * found.smallest
        if digits > _MOST_DIGITS:
            raise TooLarge("a comparison that takes too many digits")
        found = _evaluated(nodes, point, digits)
        error = context.mpf(10) ** (lost - digits)
    first, second = found.results
    return _Values(first, second, error, digits)


def _evaluated(
    nodes: tuple[Node, Node], point: dict[str, Fraction], digits: int
) -> Functions:
    with _context().workdps(digits):
        functions = Functions(_context(), point)
        functions.results = [functions.evaluate(node) for node in nodes]
        return functions


def _points(left: Node, right: Node, names: list[str]) -> Iterator[dict[str, Fraction]]:
    """Points around 1, within (0, 1), within (-1, 1) and further out, in turn.

    Where there are steps, every other point is of whole numbers, at which steps go up.
    """
    if not names:
        yield {}
        return
    whole = _whole_numbers(left) | _whole_numbers(right)
    steps = _has_steps(left) or _has_steps(right)
    seed = repr(sorted([repr(key(left)), repr(key(right))])).encode()
    generator = random.Random(hashlib.sha256(seed).digest())
    ranges = ((1.0, 3.0), (0.0, 1.0), (-1.0, 1.0), (-5.0, 5.0))
    for attempt in range(_ATTEMPTS):
        low, high = ranges[attempt % len(ranges)]
        point: dict[str, Fraction] = {}
        for name in names:
            if name in whole or (steps and attempt % 2):
                point[name] = Fraction(generator.randint(2, 30))
            else:
                low_, high_ = math.ceil(low * _PRIME), math.floor(high * _PRIME)
                point[name] = Fraction(generator.randint(low_, high_) or 1, _PRIME)
        yield point


def _wanted_points(*nodes: Node) -> int:
    return _POINTS_OF_STEPS if any(map(_has_steps, nodes)) else _POINTS


def _has_steps(node: Node) -> bool:
    return any(
        each.op == "call" and each.value in ("floor", "ceil")
        for each in tree.walk(node)
    )


def _whole_numbers(node: Node) -> set[str]:
    """Variables that only make sense as whole numbers, as n in (-1)^n."""
    found: set[str] = set()
    for each in tree.walk(node):
        if each.op == "pow" and each.args[0].op == "neg":
            found |= tree.symbols(each.args[1])
        if each.op == "call" and each.value in _OF_WHOLE_NUMBERS:
            found |= tree.symbols(each)
        if each.op == "call" and each.value in ("floor", "ceil"):
            found |= {name for name in tree.symbols(each) if name[0] in "ijkmnpqKMN"}
    return found
