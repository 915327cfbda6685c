"""A task in each form of reference, and programs for it."""

from rlvr_jax.verifiers.base import Sample, apply
from rlvr_jax.verifiers.code import judge

RIGHT = "def sum_even(xs):\n    return sum(x for x in xs if x % 2 == 0)\n"
CALLS = {
    "function": "sum_even",
    "cases": [
        {"args": [[1, 2, 4]], "expected": 6},
        {"args": [[]], "expected": 0},
        {"args": [[7, 9]], "expected": 0},
        {"args": [[-2, -4, 5]], "expected": -6},
    ],
}
HUMANEVAL = {
    "prompt": 'def sum_even(xs):\n    """The sum of the even numbers in xs."""\n',
    "entry_point": "sum_even",
    "test": (
        "def check(candidate):\n"
        "    assert candidate([1, 2, 4]) == 6\n"
        "    assert candidate([]) == 0\n"
        "    assert candidate([7, 9]) == 0\n"
        "    assert candidate([-2, -4, 5]) == -6\n"
    ),
}
MBPP = {
    "test_list": [
        "assert sum_even([1, 2, 4]) == 6",
        "assert sum_even([]) == 0",
        "assert sum_even([7, 9]) == 0",
        "assert sum_even([-2, -4, 5]) == -6",
    ]
}
STDIO = {
    "cases": [
        {"input": "1 2 4\n", "output": "6\n"},
        {"input": "\n", "output": "0\n"},
        {"input": "7 9\n", "output": "0\n"},
        {"input": "-2 -4 5\n", "output": "-6\n"},
    ]
}
RIGHT_PROGRAM = "print(sum(x for x in map(int, input().split()) if x % 2 == 0))\n"
FORMS = {"calls": CALLS, "humaneval": HUMANEVAL, "mbpp": MBPP, "stdio": STDIO}


def verdict(completion, reference, **options):
    """What `code` says of a completion."""
    return apply(judge.verify, Sample("code", completion, reference | options))
