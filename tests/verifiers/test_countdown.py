"""Countdown: a target from given numbers, each used once."""

from fractions import Fraction

import pytest

from rlvr_jax.verifiers import countdown
from rlvr_jax.verifiers.base import Sample, Status

ANSWER = {"target": 60, "numbers": [3, 5, 25]}


def verdict(completion, answer=ANSWER):
    return countdown.verify(Sample("countdown", completion, answer))


@pytest.mark.parametrize(
    "completion",
    [
        "<answer>(25 - 5) * 3</answer>",
        "<answer> 3*(25-5) = 60 </answer>",
        r"So \boxed{(25 - 5) \times 3}.",
        r"\boxed{3 \cdot \left(25 - 5\right)}",
        "Let me see.\n(25 \u2212 5) \u00d7 3",
        "#### (25-5)*3",
    ],
)
def test_right_expressions(completion):
    assert verdict(completion).status is Status.CORRECT


@pytest.mark.parametrize(
    ("completion", "status", "words"),
    [
        ("<answer>25 * 3 - 5</answer>", Status.WRONG, "is 70, not 60"),
        ("<answer>(25 - 5) * 3 * 1</answer>", Status.WRONG, "uses [1, 3, 5, 25]"),
        ("<answer>60</answer>", Status.WRONG, "uses [60]"),
        ("<answer>25 + 25 + 5 + 5</answer>", Status.WRONG, "uses"),
        ("<answer>12 * 5</answer>", Status.WRONG, "uses [5, 12]"),
        ("<answer>(25 - 5) * 3 = 61</answer>", Status.UNPARSEABLE, "it is 60"),
        ("<answer>(25 - 5 * 3</answer>", Status.UNPARSEABLE, "not closed"),
        ("<answer>25 / (5 - 5) + 3</answer>", Status.UNPARSEABLE, "zero"),
        ("<answer>25 5 3</answer>", Status.UNPARSEABLE, "unexpected"),
        ("<answer>(25-5)**3</answer>", Status.UNPARSEABLE, "unexpected"),
        ("<answer>__import__('os')</answer>", Status.UNPARSEABLE, "unexpected"),
        ("<answer>9.5 + 3</answer>", Status.UNPARSEABLE, "unexpected"),
        ("<answer>" + "(" * 490 + "</answer>", Status.UNPARSEABLE, ""),
        ("<answer>" + "1+" * 400 + "1</answer>", Status.UNPARSEABLE, "longer"),
        ("<answer></answer>", Status.UNPARSEABLE, "unexpected"),
        (
            "<answer>(25-5)*3</answer><answer>25*3</answer>",
            Status.UNPARSEABLE,
            "several",
        ),
        ("", Status.UNPARSEABLE, ""),
    ],
)
def test_wrong_and_unreadable_expressions(completion, status, words):
    found = verdict(completion)
    assert found.status is status
    assert found.score == 0.0
    assert words in found.detail


def test_arithmetic_is_exact():
    """1/3 as a float would give 5.999...; TinyZero needs a tolerance of 1e-5 here."""
    answer = {"target": 8, "numbers": [8, 8, 3, 3]}
    assert verdict("8 / (3 - 8 / 3)", answer | {"target": 24}).score == 1.0
    assert countdown.evaluate("8 / (3 - 8 / 3)") == (Fraction(24), [8, 3, 8, 3])
    close = {"target": 24.000001, "numbers": [8, 8, 3, 3]}
    assert verdict("8 / (3 - 8 / 3)", close).status is Status.WRONG


@pytest.mark.parametrize("answer", [None, "60", {"target": 60}, {"numbers": [1]}, 60])
def test_bad_references(answer):
    found = verdict("<answer>1</answer>", answer)
    assert found.status is Status.BAD_REFERENCE
    assert '"numbers"' in found.detail
