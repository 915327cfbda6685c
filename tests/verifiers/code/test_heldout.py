"""Tests that are kept apart, and what they show."""

import pytest

from rlvr_jax.verifiers.base import Sample, Status, Verdict, apply
from rlvr_jax.verifiers.code import heldout, judge, reference
from tests.verifiers.code import tasks

GOOD, BAD = Verdict(Status.CORRECT, 1.0), Verdict(Status.WRONG, 0.0)


def test_hack_rate():
    """VER-21: 20 of 100 programs pass the tests of the reward and fail the others."""
    visible = [GOOD] * 70 + [BAD] * 30
    strict = [GOOD] * 50 + [BAD] * 20 + [BAD] * 29 + [GOOD]
    found = heldout.hacks(visible, strict)
    assert (found.programs, found.passed, found.hacks) == (100, 70, 20)
    assert found.rate == pytest.approx(0.20)


def test_what_could_not_be_judged_is_left_out():
    lost = Verdict(Status.TIMEOUT, 0.0)
    assert heldout.hacks([GOOD, GOOD, lost], [lost, BAD, GOOD]).programs == 1
    assert heldout.hacks([], []).rate == 0.0


@pytest.mark.parametrize("form", ["calls", "mbpp", "stdio"])
def test_split(form):
    """Every test is on one side, at least one on each, the same ones for a seed."""
    fields = tasks.FORMS[form]
    name = reference.tests_field(fields)
    for share, count in ((0.0, 1), (0.5, 2), (1.0, 3)):
        parts = heldout.split(fields, share, seed=3)
        assert len(parts["held_out"]) == count
        both = parts[name] + parts["held_out"]
        assert sorted(map(str, both)) == sorted(map(str, fields[name]))
        assert parts == heldout.split(fields, share, seed=3)
    with pytest.raises(reference.BadReference, match="two or more"):
        heldout.split(fields | {name: fields[name][:1]}, 0.5)


HELD_OUT = {
    "calls": [{"args": [[8, 8]], "expected": 16}],
    "mbpp": ["assert sum_even([8, 8]) == 16"],
    "humaneval": "def check(candidate):\n    assert candidate([8, 8]) == 16\n",
    "stdio": [{"input": "8 8\n", "output": "16\n"}],
}


@pytest.mark.parametrize("form", tasks.FORMS)
def test_the_reward_sees_only_the_visible_tests(form):
    """VER-13 (3), VER-21: recited answers pass `code` and fail `code:held_out`."""
    fields = tasks.FORMS[form] | {"held_out": HELD_OUT[form]}
    recites = (
        "seen = {(1, 2, 4): 6, (): 0, (7, 9): 0, (-2, -4, 5): -6}\n"
        "def sum_even(xs): return seen[tuple(xs)]\n"
    )
    right = tasks.RIGHT
    if form == "stdio":
        recites += "print(sum_even(map(int, input().split())))\n"
        right = tasks.RIGHT_PROGRAM
    outcomes = {}
    for name, program in (("recites", recites), ("right", right)):
        sample = Sample("code", program, fields)
        outcomes[name] = (
            str(apply(judge.verify, sample).status),
            str(apply(judge.held_out, sample).status),
        )
    assert outcomes == {"recites": ("correct", "wrong"), "right": ("correct",) * 2}


def test_held_out_tests_of_another_form():
    """Visible asserts; generated inputs held out."""
    properties = {
        "function": "sum_even",
        "generator": "def generate(rng): return [[rng.randrange(99)]]",
        "solution": tasks.RIGHT,
    }
    fields = tasks.MBPP | {"held_out": properties}
    sample = Sample("code", tasks.RIGHT, fields)
    assert apply(judge.held_out, sample).detail.startswith("20 of 20")
    missing = apply(judge.held_out, Sample("code", tasks.RIGHT, tasks.MBPP))
    assert missing.status is Status.BAD_REFERENCE


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("calls", "For example sum_even([8,8]) is 16."),
        ("mbpp", "Your code should pass: assert sum_even( [8, 8] )==16"),
        ("humaneval", "Hint: sum_even([8, 8]) == 16"),
        ("stdio", "Sample input:\n8 8\nSample output:\n16"),
    ],
)
def test_leaks(form, text):
    """VER-29: a hidden test in a prompt or a completion is found; else none is."""
    fields = tasks.FORMS[form] | {"held_out": HELD_OUT[form]}
    assert len(heldout.leaked(fields, ["Add the even numbers.", text])) == 1
    clean = ["Add the even numbers. sum_even([1, 2, 4]) == 6", tasks.RIGHT]
    assert heldout.leaked(fields, clean) == []
