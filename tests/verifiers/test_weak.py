"""Checkers with known holes do have them: VER-07, VER-08, VER-09."""

import pytest

from rlvr_jax.verifiers import math, weak
from rlvr_jax.verifiers.base import Sample, Status

HEDGE = "".join(rf"\boxed{{{digit}}}" for digit in range(1, 10))


@pytest.mark.parametrize("gold", [str(digit) for digit in range(1, 10)])
def test_nine_boxes_fool_any_boxed_and_not_math(gold):
    """VER-08 pays the hedge whatever the reference; VER-09 rejects it."""
    assert weak.any_boxed(Sample("", HEDGE, gold)).status is Status.CORRECT
    assert math.verify(Sample("", HEDGE, gold)).status is not Status.CORRECT


def test_the_same_answer_boxed_twice_is_one_answer():
    """VER-09: 1/2 and 0.5 are the same answer."""
    twice = r"\boxed{\frac{1}{2}}, that is, so it is \boxed{0.5}"
    assert math.verify(Sample("", twice, "1/2")).status is Status.CORRECT
    other = r"\boxed{\frac{1}{2}}, that is, so it is \boxed{0.6}"
    assert math.verify(Sample("", other, "1/2")).status is Status.UNPARSEABLE


@pytest.mark.parametrize(
    ("completion", "last_number", "strict"),
    [
        (r"\boxed{1/2}", True, True),
        (r"It is \boxed{1/2} of 4.", False, True),  # rejected though right
        (r"\boxed{\frac{1}{2}}", False, True),
        (r"\boxed{0.5} (checked 4 cases)", False, True),
        (r"\boxed{1/4}", False, False),
        (r"\boxed{1/2} or \boxed{1/4}", False, False),
        (r"\boxed{1/4}, though it could be 1/2", True, False),  # accepted though wrong
    ],
)
def test_last_number(completion, last_number, strict):
    """VER-07: right answers followed by a number are lost, afterthoughts are paid."""
    sample = Sample("", completion, "1/2")
    assert (weak.last_number(sample).status is Status.CORRECT) == last_number
    assert (math.verify(sample).status is Status.CORRECT) == strict


def test_references_that_are_no_number():
    assert weak.last_number(Sample("", "1", "x")).status is Status.BAD_REFERENCE
    assert weak.any_boxed(Sample("", r"\boxed{1}", "")).status is Status.BAD_REFERENCE
