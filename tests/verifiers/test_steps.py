"""The step checker: equations that hold, lines that follow."""

import pytest

from rlvr_jax.verifiers.base import Sample, Status, reads_of
from rlvr_jax.verifiers.steps import verify


@pytest.mark.parametrize(
    ("question", "text", "status", "score"),
    [
        ("3 + 4 * 2 =", "3 + 8\n11", Status.CORRECT, 1.0),
        ("3 + 4 * 2 =", "7 * 2\n14", Status.WRONG, 0.5),
        ("Add up.", "12 + 5 = 17, then 17 * 2 = 34.", Status.CORRECT, 1.0),
        ("Add up.", "12 + 5 = 18, then 18 * 2 = 36.", Status.WRONG, 0.5),
        ("", "2 + 2 = 4 = 8 / 2 = 5", Status.WRONG, 2 / 3),
        ("", "1/3 + 1/6 = 0.5", Status.CORRECT, 1.0),
        ("", "I think it is 5", Status.UNPARSEABLE, 0.0),
        ("", "9**9**9**9 = 1", Status.WRONG, 0.0),
        ("", "1 / 0 = 2 / 0", Status.WRONG, 0.0),
    ],
)
def test_steps(question, text, status, score):
    verdict = verify(Sample("steps", text, "whatever", question))
    assert verdict.status is status
    assert verdict.score == pytest.approx(score)


def test_it_reads_the_reasoning():
    assert reads_of(verify) == "completion"
