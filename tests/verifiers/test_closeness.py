"""Numbers that are worth more the nearer they are."""

import pytest

from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.closeness import closeness, verify


def judged(completion, answer="10"):
    return verify(Sample("closeness", completion, answer, "", {}))


@pytest.mark.parametrize(
    ("given", "reward"),
    [
        (10.0, 1.0),
        # 1 - .25 - .025 of FORMULAS F-63.
        (10.5, 0.725),
        (9.5, 0.725),
        # |a - b| is 2, so that half is gone; 2 / 10 takes .1 of the other half.
        (12.0, 0.4),
        (1e9, 0.0),
        (-1e9, 0.0),
    ],
)
def test_the_reward_falls_with_the_distance(given, reward):
    """DATA-22: 1 at a = b, .725 at 10.5 for 10, 0 far away."""
    assert abs(closeness(given, 10.0) - reward) < 1e-6  # the formula's own 1e-6
    assert judged(str(given)).score == closeness(given, 10.0)


@pytest.mark.parametrize(
    ("completion", "status"),
    [
        ("It is\n<answer>10.0</answer>", Status.CORRECT),
        (r"\boxed{10.0005}", Status.CORRECT),
        (r"\boxed{10.002}", Status.WRONG),
        ("20 / 2", Status.CORRECT),
        ("1e1", Status.CORRECT),
        ("ten", Status.UNPARSEABLE),
        ("nan", Status.UNPARSEABLE),
        ("inf", Status.UNPARSEABLE),
        ("", Status.UNPARSEABLE),
        ("<answer>10</answer> <answer>11</answer>", Status.UNPARSEABLE),
    ],
)
def test_what_counts_as_a_number(completion, status):
    assert judged(completion).status is status


def test_thousands_and_bad_references():
    assert judged("12,345.5", "12345.5").status is Status.CORRECT
    assert judged("1", "x").status is Status.BAD_REFERENCE
    assert judged("1", [1]).status is Status.BAD_REFERENCE
