r"""Properties of the math verifier: the same value in other notations, and no other.

Answers are drawn at random from a fixed seed and written in several notations by the
functions here, which know nothing of the parser; a perturbed one must be refused.
"""

import random
from fractions import Fraction

import pytest

from rlvr_jax.verifiers import math
from rlvr_jax.verifiers.base import Sample, Status, apply

ROUNDS = 8


def _accepts(gold, answer):
    verdict = apply(math.verify, Sample("math", f"So \\boxed{{{answer}}}.", gold))
    return verdict.status is Status.CORRECT


def _fraction(generator):
    return Fraction(generator.randint(-400, 400), generator.randint(2, 60))


def _spellings_of_fraction(value):
    top, bottom = value.numerator, value.denominator
    sign, size = ("-" if top < 0 else ""), abs(top)
    whole, rest = divmod(size, bottom)
    yield f"{top}/{bottom}"
    yield rf"\frac{{{top}}}{{{bottom}}}"
    yield rf"{sign}\dfrac{{{size}}}{{{bottom}}}"
    yield rf"{sign}\frac{{{3 * size}}}{{{3 * bottom}}}"
    yield rf"{top} \div {bottom}"
    yield rf"\left({top}\right)\cdot {bottom}^{{-1}}"
    yield rf"x = {sign}{size}/{bottom}"
    yield rf"{sign}{{{size} \over {bottom}}}"
    yield f"{sign}{size}\u2044{bottom}"
    if whole and rest:
        yield rf"{sign}{whole}\frac{{{rest}}}{{{bottom}}}"
    if 10**9 % bottom == 0:
        yield f"{float(value):.9f}".rstrip("0").rstrip(".")
        yield rf"{float(100 * value):.7f}\%"


def test_fractions_in_all_notations():
    """VER-01: every spelling of a fraction is every other one; +1/denominator none."""
    generator = random.Random(1)
    for _ in range(ROUNDS):
        value = _fraction(generator)
        other = value + Fraction(1, value.denominator)
        golds = list(_spellings_of_fraction(value))
        for spelling in golds:
            assert _accepts(golds[0], spelling), (golds[0], spelling)
            assert _accepts(spelling, golds[1]), (spelling, golds[1])
        for spelling in _spellings_of_fraction(other):
            assert not _accepts(golds[0], spelling), (golds[0], spelling)


def _spellings_of_integer(value):
    sign, size = ("-" if value < 0 else ""), abs(value)
    yield str(value)
    yield f"{value:,}"
    yield f"{value:,}".replace(",", "{,}")
    yield f"{value:,}".replace(",", r",\!")
    yield f"{value:,}".replace(",", r"\,")
    yield f"{value}.0"
    yield rf"\${value}"
    yield rf"{value}\text{{ units}}"
    yield f"{sign}{size // 1000}*10^3+{sign}{size % 1000}"
    yield str(value).replace("-", "\u2212")
    yield "".join(chr(ord(each) + 0xFEE0) for each in str(value))


def test_integers_in_all_notations():
    generator = random.Random(2)
    for digits in (4, 7, 12, 25):
        for _ in range(ROUNDS // 8):
            value = generator.choice([-1, 1]) * generator.randint(
                10 ** (digits - 1), 10**digits - 1
            )
            for spelling in _spellings_of_integer(value):
                assert _accepts(str(value), spelling), (value, spelling)
                assert not _accepts(str(value + 1), spelling), (value + 1, spelling)
                assert not _accepts(str(-value), spelling), (-value, spelling)


def _polynomial(roots, scale):
    """The coefficients of scale * (x - r1)(x - r2)..., the highest power first."""
    coefficients = [Fraction(scale)]
    for root in roots:
        shifted = [*coefficients, Fraction(0)]
        for i, each in enumerate(coefficients):
            shifted[i + 1] -= root * each
        coefficients = shifted
    return coefficients


def _expanded(coefficients):
    degree = len(coefficients) - 1
    return " + ".join(
        rf"({each})x^{{{degree - i}}}" for i, each in enumerate(coefficients)
    )


def _factored(roots, scale):
    return f"{scale}" + "".join(f"(x-({root}))" for root in roots)


def test_polynomials_expanded_and_factored():
    generator = random.Random(3)
    for _ in range(ROUNDS):
        roots = [generator.randint(-9, 9) for _ in range(generator.randint(1, 4))]
        scale = generator.choice([-3, -1, 2, 5])
        coefficients = _polynomial(roots, scale)
        expanded, factored = _expanded(coefficients), _factored(roots, scale)
        assert _accepts(expanded, factored)
        assert _accepts(factored, expanded)
        assert _accepts(f"y = {expanded}", f"y = {factored}")
        coefficients[generator.randrange(len(coefficients))] += 1
        assert not _accepts(_expanded(coefficients), factored)


def test_roots_in_any_order_and_with_names():
    generator = random.Random(4)
    for _ in range(ROUNDS):
        values = generator.sample(range(-20, 20), generator.randint(2, 5))
        gold = ", ".join(map(str, values))
        shuffled = generator.sample(values, len(values))
        listed = ", ".join(map(str, shuffled))
        for answer in (
            listed,
            rf"\{{{listed}\}}",
            " or ".join(f"x = {each}" for each in shuffled),
            r" \text{ and } ".join(map(str, shuffled)),
            f"x = {listed}",
        ):
            assert _accepts(gold, answer), (gold, answer)
        for answer in (
            ", ".join(map(str, shuffled[1:])),
            ", ".join(map(str, [*shuffled, 99])),
            ", ".join(map(str, [shuffled[0] + 50, *shuffled[1:]])),
        ):
            assert not _accepts(gold, answer), (gold, answer)
        tuple_, swapped = f"({gold})", f"({', '.join(map(str, values[::-1]))})"
        assert _accepts(tuple_, tuple_)
        assert not _accepts(tuple_, swapped)


def test_surds_simplified_and_not():
    generator = random.Random(5)
    for _ in range(ROUNDS):
        a, b = generator.randint(-9, 9), generator.randint(2, 9)
        under = generator.choice([2, 3, 5, 6, 7, 10, 11])
        gold = rf"{a}+{b}\sqrt{{{under}}}"
        for answer in (
            rf"{a}+\sqrt{{{b * b * under}}}",
            rf"{b}\sqrt{under}+({a})" if under < 10 else gold,
            rf"\frac{{{2 * a}+{2 * b}\sqrt{{{under}}}}}{{2}}",
            rf"{a}+\frac{{{b * under}}}{{\sqrt{{{under}}}}}",
            f"{a} + {b}*sqrt({under})",
            f"{a}+{b}√{under}",
            f"{a}+{b}({under})^{{1/2}}",
        ):
            assert _accepts(gold, answer), (gold, answer)
            assert _accepts(answer, gold), (answer, gold)
        for answer in (
            rf"{a}-{b}\sqrt{{{under}}}",
            rf"{a}+\sqrt{{{b * b * under + 1}}}",
            rf"{a}+{b}\sqrt[3]{{{under}}}",
            rf"{a}\pm{b}\sqrt{{{under}}}",
        ):
            assert not _accepts(gold, answer), (gold, answer)


def test_intervals_as_brackets_and_as_inequalities():
    generator = random.Random(6)
    for _ in range(ROUNDS):
        low = generator.randint(-20, 20)
        high = low + generator.randint(1, 20)
        opened, closed = generator.choice("(["), generator.choice(")]")
        left, right = (
            ("<" if opened == "(" else r"\le"),
            ("<" if closed == ")" else r"\le"),
        )
        gold = f"{opened}{low},{high}{closed}"
        french = ("]" if opened == "(" else "[") + f"{low};{high}"
        french += "[" if closed == ")" else "]"
        for answer in (
            rf"{low} {left} x {right} {high}",
            rf"\{{x \mid {low} {left} x {right} {high}\}}",
            rf"{2 * low} {left} 2x {right} {2 * high}",
            rf"x \in {gold}",
            french,
        ):
            assert _accepts(gold, answer), (gold, answer)
            assert _accepts(answer, gold), (answer, gold)
        flipped = f"{'[' if opened == '(' else '('}{low},{high}{closed}"
        for answer in (flipped, f"{opened}{low},{high + 1}{closed}", str(low)):
            assert not _accepts(gold, answer), (gold, answer)


DIFFERENT = [
    r"\emptyset", "0", "1", "-1", r"\pi", r"\infty", r"\{1,2\}", "(1,2)", "[1,2)", "x",
    "x>1", "y=x+1", r"\mathbb{R}", r"\begin{pmatrix}1\\2\\3\end{pmatrix}", "101_2",
    r"\frac{1}{2}", "3:4", "12:30", "A", "yes", r"\text{even}", "1,2,3", r"\pm 1",
    r"90^\circ", r"5\text{ cm}", r"x\ne1", "(1,2),(3,4)", "1000", "2^{10}", r"\sqrt{2}",
    "x+C", "x^2+y^2=1", "a<b<c", "n!", r"\binom{5}{2}", "|x|", r"\lfloor x\rfloor",
    "1+i", "x^2",
]  # fmt: skip


@pytest.mark.parametrize("gold", DIFFERENT)
def test_answers_of_different_kinds_are_different(gold):
    """VER-09: each equals itself and none of the other 38; nothing equals no answer."""
    same = [answer for answer in DIFFERENT if _accepts(gold, answer)]
    assert same == [gold]
