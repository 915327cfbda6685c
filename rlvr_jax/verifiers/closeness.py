r"""The `closeness` verifier: a number is worth more the nearer it is to the reference.

    r = 1 - 0.5 min(|a - b|, 1) - 0.5 min(|a - b| / (|b| + 1e-6), 1)

The reward of RandomCalculation (Wu et al., https://arxiv.org/abs/2507.10532).
"""

import math
from fractions import Fraction

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict, text_reference
from rlvr_jax.verifiers.countdown import evaluate

CORRECT_WITHIN = 1e-4
"""Of the reference's size (at least 1): what counts as correct, for pass rates."""


def verify(sample: Sample) -> Verdict:
    """Scores the number in the <answer> tag or box, else on the last line.

    Whole numbers, decimals, 1.5e3, fractions and arithmetic that gives a number, as
    "22/7", are numbers. The score is the formula above; the verdict is correct within
    1e-4 of the reference's size, as a reference has 12 digits.
    """
    reference = text_reference(sample.answer)
    try:
        expected = _number("" if reference is None else reference)
    except ValueError as error:
        return Verdict(Status.BAD_REFERENCE, 0.0, f"the reference {error}")
    marked = extract.marked_answers(sample.completion)
    if len(set(marked)) > 1:
        return Verdict(Status.UNPARSEABLE, 0.0, f"several answers: {marked!r:.200}")
    text = marked[0] if marked else extract.last_line(sample.completion)
    try:
        given = _number(text)
    except ValueError as error:
        return Verdict(Status.UNPARSEABLE, 0.0, str(error))
    score = closeness(given, expected)
    near = abs(given - expected) <= CORRECT_WITHIN * max(1.0, abs(expected))
    status = Status.CORRECT if near else Status.WRONG
    return Verdict(status, score, f"{given:.12g} for {expected:.12g}")


def closeness(given: float, expected: float) -> float:
    """The reward for `given` where `expected` is right.

    Example:
      >>> closeness(10.0, 10.0), round(closeness(10.5, 10.0), 6), closeness(1e9, 10.0)
      (1.0, 0.725, 0.0)
    """
    distance = abs(given - expected)
    relative = distance / (abs(expected) + 1e-6)
    return 1 - 0.5 * min(distance, 1.0) - 0.5 * min(relative, 1.0)


def _number(text: str) -> float:
    plain = text.strip().strip("$").rstrip(".").replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        try:
            value = float(Fraction(evaluate(plain)[0]))
        except (ValueError, RecursionError, OverflowError):
            raise ValueError(f"{text!r:.100} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r:.100} is no finite number")
    return value
