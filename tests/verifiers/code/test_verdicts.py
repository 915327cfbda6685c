"""The verifier `code`: forms of references, scores, statuses, limits."""

import pytest

from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.code import judge
from tests.verifiers.code import tasks
from tests.verifiers.code.tasks import CALLS, FORMS, HUMANEVAL, MBPP, STDIO, verdict


def _program(form):
    return tasks.RIGHT_PROGRAM if form == "stdio" else tasks.RIGHT


@pytest.mark.parametrize("form", FORMS)
def test_a_right_program(form):
    """VER-02: all tests pass."""
    found = verdict(_program(form), FORMS[form])
    assert (found.status, found.score) == (Status.CORRECT, 1.0)
    assert found.detail.startswith("4 of 4 tests passed")
    assert found.detail.endswith(("(namespaces)", "(bubblewrap)"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("passes", "change"),
    [
        (2, "len(xs) - 2 * (0 not in xs and len(xs) == 2)"),
        (3, "sum(x for x in xs if x % 2 == 0 and x > 0)"),
        (1, "6"),
        (0, "None"),
    ],
)
def test_all_or_a_fraction(form, passes, change):
    """VER-02: planted programs that pass k of 4; by hand from the four cases.

    len: [1, 2, 4] -> 3, [] -> 0, [7, 9] -> 0, [-2, -4, 5] -> 3: two of four.
    """
    program = f"def sum_even(xs):\n    return {change}\n"
    if form == "stdio":
        program += "print(sum_even([int(x) for x in input().split()]))\n"
    all_pass = verdict(program, FORMS[form])
    assert (all_pass.status, all_pass.score) == (Status.WRONG, 0.0)
    fraction = verdict(program, FORMS[form], scoring="fraction")
    assert (fraction.status, fraction.score) == (Status.WRONG, passes / 4)
    assert f"{passes} of 4 tests passed" in fraction.detail


FAILS_CLOSED = {
    "an endless loop": "while True: pass",
    "a fork": "import os\nif os.fork() == 0:\n    while True: pass",
    "a file": "open('/usr/lib/x', 'w')",
    "the network": "import socket\nsocket.create_connection(('1.1.1.1', 80), 5)",
    "memory": "x = bytearray(1 << 40)",
    "too much output": "while True: print('x' * 9999)",
}


@pytest.mark.parametrize("name", FAILS_CLOSED)
def test_stdio_programs_fail_closed(name):
    """VER-02: loop, fork, file write, network, memory, output."""
    program = FAILS_CLOSED[name] + "\n" + tasks.RIGHT_PROGRAM
    found = verdict(program, STDIO, time_limit_s=0.3)
    if name == "a fork":  # allowed: the parent answers, the child dies with the run
        assert found.status is Status.WRONG or found.score == 1
    else:
        assert (found.status, found.score) == (Status.WRONG, 0.0)


def test_time_counts_for_each_call_and_for_all():
    slow = "import time\ndef sum_even(xs):\n    time.sleep(0.2)\n    return " + (
        "sum(x for x in xs if x % 2 == 0)\n"
    )
    assert verdict(slow, CALLS, time_limit_s=1.0).status is Status.CORRECT
    assert "ran out of time" in verdict(slow, CALLS, time_limit_s=0.1).detail
    assert verdict(slow, CALLS, total_time_limit_s=0.5).status is Status.WRONG
    half = verdict(slow, CALLS, total_time_limit_s=0.5, scoring="fraction")
    assert half.score in (0.25, 0.5)


def test_memory_limit():
    program = "def sum_even(xs):\n    x = bytearray(1 << 27)\n" + (
        "    return sum(x for x in xs if x % 2 == 0)\n"
    )
    # Time is not what is tested: four times 128 MiB, on a machine that may be busy.
    limits = {"time_limit_s": 30.0, "total_time_limit_s": 60.0}
    assert verdict(program, CALLS, **limits).status is Status.CORRECT
    found = verdict(program, CALLS, memory_mb=128, **limits)
    assert "MemoryError" in found.detail


def test_types_are_exact_unless_a_tolerance_is_given():
    """True is not 1, 6.0 is not 6; a tolerance makes numbers of both."""
    cases = {"function": "f", "cases": [{"args": [], "expected": 1}]}
    for value, exact, close in (("1", 1, 1), ("True", 0, 0), ("1.0", 0, 1)):
        program = f"def f(): return {value}"
        assert verdict(program, cases).score == exact
        assert verdict(program, cases, tolerance=1e-9).score == close


def test_a_method_of_a_class():
    program = "class Solution:\n    def twice(self, x): return 2 * x\n"
    cases = [{"args": [2], "expected": 4}, {"args": [0], "expected": 0}]
    reference = {"function": "Solution().twice", "cases": cases}
    assert verdict(program, reference).status is Status.CORRECT


def test_an_answer_that_depends_on_the_order_of_tests_fails():
    """Expected values recited in the order of the reference: orders differ by program.

    Of 24 orders one is that of the list; 12 programs that differ by a comment pass
    with probability 1/2, 12 times over less than 1 in 4000.
    """
    recite = "answers = [6, 0, 0, -6]\ndef sum_even(xs): return answers.pop(0)\n"
    passed = [verdict(f"{recite}# {number}\n", CALLS).score for number in range(12)]
    assert sum(passed) < 12
    assert passed == [
        verdict(f"{recite}# {number}\n", CALLS).score for number in range(12)
    ]


def test_generated_inputs():
    """VER-16: one who knows the visible cases passes these alone."""
    generator = (
        "def generate(rng):\n"
        "    return [[rng.randrange(-99, 99) for _ in range(rng.randrange(9))]]\n"
    )
    properties = {
        "function": "sum_even",
        "generator": generator,
        "solution": tasks.RIGHT,
        "runs": 20,
    }
    recites = (
        "seen = {(1, 2, 4): 6, (): 0, (7, 9): 0, (-2, -4, 5): -6}\n"
        "def sum_even(xs): return seen[tuple(xs)]\n"
    )
    assert verdict(recites, CALLS).status is Status.CORRECT
    assert verdict(recites, properties).status is Status.WRONG
    assert verdict(tasks.RIGHT, properties).detail.startswith("20 of 20")
    both = verdict(tasks.RIGHT, CALLS | properties)
    assert both.detail.startswith("24 of 24")


def test_tests_may_stand_in_meta():
    """The rows of HumanEval and MBPP as published: a solution, and tests in `meta`."""
    meta = {name: HUMANEVAL[name] for name in ("entry_point", "test")}
    row = Sample("code", tasks.RIGHT, "    return 0", HUMANEVAL["prompt"], meta)
    assert apply(judge.verify, row).status is Status.CORRECT
    row = Sample("code", tasks.RIGHT, tasks.RIGHT, "", MBPP | {"split": "train"})
    assert apply(judge.verify, row).status is Status.CORRECT
    cases = Sample("code", tasks.RIGHT_PROGRAM, STDIO["cases"])
    assert apply(judge.verify, cases).status is Status.CORRECT


def test_the_thinking_is_not_read():
    """DIAG-23: a program in the chain of thought is none."""
    chain = f"<think>```python\n{tasks.RIGHT}```</think>I do not know."
    assert verdict(chain, CALLS).status is Status.UNPARSEABLE


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("6", "no form of tests fits"),
        ({}, "no form of tests fits"),
        ({"test_list": []}, "test_list is empty"),
        ({"test_list": ["assert f("]}, "no Python"),
        ({"test_list": ["f(1)"]}, "no assert"),
        ({"test_list": ["assert 1 == 1"]}, "cannot be told"),
        ({"cases": [{"input": ""}]}, "case 1 lacks input or output"),
        ({"cases": []}, "there are no cases"),
        ({"function": "f", "cases": [{"args": []}]}, "case 1 lacks args or expected"),
        ({"cases": [{"input": 1, "output": ""}]}, "input of case 1 must be str"),
        ({"cases": [{"input": "", "output": [1]}]}, "output of case 1 must be str"),
        (
            {"function": "f", "cases": [{"args": "ab", "expected": 1}]},
            "args of case 1 must be list",
        ),
        (
            {"function": "f", "cases": [{"args": [], "kwargs": [], "expected": 1}]},
            "kwargs of case 1 must be dict",
        ),
        (
            {"function": "f", "generator": "x", "solution": "y", "runs": 0},
            "runs must be at least 1",
        ),
        ({"function": 1, "cases": []}, "function must be str"),
        ({"function": "f", "generator": "x"}, "needs a solution"),
        (CALLS | {"scoring": "some"}, "not one of all, fraction"),
        (CALLS | {"time_limit": 3}, "did you mean 'time_limit_s'"),
        (CALLS | {"time_limit_s": "3"}, "must be a number above 0"),
        (CALLS | {"generator": "x", "solution": "y"}, "the generator or the solution"),
        (HUMANEVAL | {"test": "def check(c): pass"}, "no assert"),
        (HUMANEVAL | {"test": "def check(c):\n    assert True"}, "do not call"),
    ],
)
def test_bad_references(reference, problem):
    found = apply(judge.verify, Sample("code", tasks.RIGHT, reference))
    assert found.status is Status.BAD_REFERENCE
    assert problem in found.detail


def test_unparseable():
    assert verdict("I would add them.", CALLS).status is Status.UNPARSEABLE
    assert verdict("", CALLS).status is Status.UNPARSEABLE
    assert verdict("```python\n```", CALLS).status is Status.UNPARSEABLE
