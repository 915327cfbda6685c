"""Whether two expressions, with their percent signs, degrees and units, are equal.

Exact where both are rational: a tolerance never decides between 9007199254740992 and
9007199254740993. A decimal may stand for a number that has no finite decimals, if it
is that number rounded or cut off: an answer needs six significant digits for that
(0.333333 for 1/3), a reference four.
"""

from fractions import Fraction
from typing import NamedTuple

from rlvr_jax.verifiers.algebra import numeric, tree, units
from rlvr_jax.verifiers.algebra.canonical import key
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.tree import Node, Undefined

_ANSWER_DIGITS = 6
_REFERENCE_DIGITS = 4
_HUNDRED = tree.number(100)
_DEGREE = Node("deg", (tree.ONE,))


class Decimal(NamedTuple):
    """A number written with a decimal point."""

    value: Fraction
    digits: int
    unit: Fraction
    """One in the last place."""


def same_scalar(gold: Node, answer: Node) -> bool:
    """Whether an answer is worth what the reference is.

    Raises:
      tree.TooLarge: it takes too much to find out.
      tree.Undefined: one has no value.
    """
    gold, gold_unit = without_unit(gold)
    answer, answer_unit = without_unit(answer)
    if units.conflict(gold_unit, answer_unit or _letter_unit(answer)):
        return False
    if gold.op == "pct" or answer.op == "pct":
        return _same_percent(gold, answer)
    if (gold.op == "deg") != (answer.op == "deg"):
        return _same_degree(gold, answer)
    if gold.op == "deg":
        gold, answer = gold.args[0], answer.args[0]
    return _same_number(gold, answer)


def without_unit(node: Node) -> tuple[Node, str | None]:
    """The number and the unit after it, by one name if it is known.

    Percent and million are no units; they change the number.
    """
    if node.op != "unit":
        return node, None
    inner, words = node.args[0], node.value.strip()
    first, _, rest = words.partition(" ")
    if first.lower() in units.PERCENT:
        return Node("pct", (inner,)), None
    if first.lower() in units.SCALES:
        scaled = Node("mul", (inner, tree.number(units.SCALES[first.lower()])))
        return without_unit(Node("unit", (scaled,), rest)) if rest else (scaled, None)
    unit = units.canonical(words)
    if unit == "degree":
        return Node("deg", (inner,)), None
    return inner, unit


def _letter_unit(node: Node) -> str | None:
    """The unit of 5 g, read as 5 times g."""
    last = node.args[-1] if node.op == "mul" else node
    if last.op != "symbol" or last.value not in units.LETTERS:
        return None
    return units.canonical(last.value)


def _same_percent(gold: Node, answer: Node) -> bool:
    """28% is 0.28, and, where that leaves no doubt (1 and above), also 28."""
    if gold.op == answer.op:
        return _same_number(gold.args[0], answer.args[0])
    percent, plain = (gold, answer) if gold.op == "pct" else (answer, gold)
    inner = percent.args[0]
    swap = gold.op == "pct"
    if _ordered(Node("div", (inner, _HUNDRED)), plain, swap):
        return True
    value = rational(plain)
    return value is not None and abs(value) >= 1 and _ordered(inner, plain, swap)


def _same_degree(gold: Node, answer: Node) -> bool:
    """45 degrees is 45, and pi/4."""
    angle, plain = (gold, answer) if gold.op == "deg" else (answer, gold)
    swap = gold.op == "deg"
    if _ordered(angle.args[0], plain, swap):
        return True
    return _ordered(Node("mul", (angle.args[0], _DEGREE)), plain, swap)


def _ordered(inner: Node, plain: Node, inner_is_gold: bool) -> bool:
    if inner_is_gold:
        return _same_number(inner, plain)
    return _same_number(plain, inner)


def _same_number(gold: Node, answer: Node) -> bool:
    if key(gold) == key(answer):
        return True
    exact_gold, exact_answer = rational(gold), rational(answer)
    if exact_gold is not None and exact_answer is not None:
        same = exact_gold == exact_answer
    else:  # 2 cos(60 degrees) is not seen to be 1 until its value is taken
        same = numeric.equal(gold, answer) is True or _same_common_logarithm(
            gold, answer
        )
    return same or _same_but_for_letters(gold, answer) or _rounded(gold, answer)


def _same_common_logarithm(gold: Node, answer: Node) -> bool:
    """Whether they are equal with every log without a base to the base of ten."""
    one, other = _with_common_logarithm(gold), _with_common_logarithm(answer)
    if one == gold and other == answer:
        return False
    return numeric.equal(one, other) is True


def _with_common_logarithm(node: Node) -> Node:
    args = tuple(map(_with_common_logarithm, node.args))
    if node.op == "call" and node.value == "log" and len(args) == 1:
        return node._replace(args=args, value="lg")
    return node._replace(args=args)


def _same_but_for_letters(gold: Node, answer: Node) -> bool:
    """5 m against the reference 5: single letters after a number may be a unit.

    Not the other way round; a reference 5m may be an expression in m.
    """
    names = tree.symbols(answer)
    if not names or not names <= units.LETTERS or tree.symbols(gold):
        return False
    number = _without_letters(answer)
    return number is not None and _same_number(gold, number)


def _without_letters(node: Node) -> Node | None:
    """The number in number * m / s^2; None if it is no such product."""
    if not tree.symbols(node):
        return node
    if node.op == "mul":
        numbers = [each for each in node.args if not tree.symbols(each)]
        letters = [each for each in node.args if tree.symbols(each)]
        if (
            len(numbers) == 1
            and node.args[0] is numbers[0]
            and all(map(_is_unit, letters))
        ):
            return numbers[0]
    if node.op == "div" and _is_unit(node.args[1]):
        return _without_letters(node.args[0])
    return None


def _is_unit(node: Node) -> bool:
    if node.op == "pow":
        return node.args[0].op == "symbol" and node.args[1].op == "number"
    return node.op == "symbol" or (node.op == "mul" and all(map(_is_unit, node.args)))


def _rounded(gold: Node, answer: Node) -> bool:
    """Whether one is a decimal that the other, which has no end, rounds to."""
    written, reference = decimal(answer), decimal(gold)
    if written and not reference and written.digits >= _ANSWER_DIGITS:
        return _rounds_to(gold, written, cut=True)
    if reference and not written and reference.digits >= _REFERENCE_DIGITS:
        return _rounds_to(answer, reference, cut=False)
    return False


def _rounds_to(node: Node, target: Decimal, cut: bool) -> bool:
    if tree.symbols(node):
        return False
    exact = rational(node)
    if exact is not None:
        if _ends(exact):
            return False
        value = exact
    else:
        try:
            value = numeric.fraction(numeric.value(node))
        except Undefined:
            return False
    distance = abs(value - target.value)
    if 2 * distance <= target.unit:
        return True
    return cut and distance < target.unit and abs(target.value) < abs(value)


def _ends(value: Fraction) -> bool:
    """Whether the number has finitely many decimals."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def decimal(node: Node) -> Decimal | None:
    """The number as written with a decimal point, also with a power of ten after it."""
    if node.op == "number" and node.args:
        digits, unit = (each.value for each in node.args)
        return Decimal(node.value, int(digits), unit)
    if node.op == "neg":
        inner = decimal(node.args[0])
        return inner and inner._replace(value=-inner.value)
    if node.op == "mul" and len(node.args) == 2 and node.args[1].op == "pow":
        inner, base = decimal(node.args[0]), node.args[1].args[0]
        if inner and base == tree.number(10):
            scale = rational(node.args[1])
            if scale:
                return Decimal(inner.value * scale, inner.digits, inner.unit * scale)
    return None
