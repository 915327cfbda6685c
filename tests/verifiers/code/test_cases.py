"""Comparing what came with what was expected, and inputs that are drawn."""

import collections
import random

import pytest

from rlvr_jax.verifiers.code import cases, reference
from rlvr_jax.verifiers.code.remote import Program


@pytest.mark.parametrize(
    ("expected", "value", "equal"),
    [
        (1, 1, True),
        (1, True, False),
        (True, 1, False),
        (1, 1.0, False),
        (0.3, 0.1 + 0.2, False),
        (None, 0, False),
        ("1", 1, False),
        ([1, [2]], [1, [2]], True),
        ([1, 2], (1, 2), True),
        ((1, 2), [1, 2], False),
        ([1, 2], [2, 1], False),
        ([1], [True], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({1, 2}, {2, 1}, True),
        ({"a": 1}, collections.OrderedDict(a=1), False),
        (float("nan"), float("nan"), True),
    ],
)
def test_same(expected, value, equal):
    assert cases.same(expected, value) is equal


def test_tolerance():
    """|a - b| <= tolerance * max(1, |a|, |b|), for numbers at any depth."""
    assert cases.same([1, {"x": 1000.0}], [1.0005, {"x": 1000.9}], 1e-3)
    assert not cases.same([1], [1.002], 1e-3)
    assert not cases.same([1], [True], 1e-3)
    assert not cases.same(1.0, float("nan"), 1e-3)
    assert cases.same(10**400, 10**400, 1e-3)
    assert not cases.same(10**400, 1.0, 1e-3)


@pytest.mark.parametrize("far", ["inf", "-inf", "1e999"])
def test_infinity_is_close_to_itself_alone(far):
    """|1 - inf| <= tolerance * inf holds, and would pass every case."""
    assert not cases.same(1.0, float(far), 1e-3)
    assert not cases.same(float(far), 1.0, 1e-3)
    assert cases.same(float(far), float(far), 1e-3)
    assert not cases.same_output("1.0", far, 1e-3)


@pytest.mark.parametrize(
    ("expected", "text", "exact", "close"),
    [
        ("1 2\n", "1 2", True, True),
        ("1 2", "1 2  \n\n", True, True),
        ("1\n2", "1 2", False, False),
        ("1 2", "1  2", False, True),
        ("0.5", "0.5000001", False, True),
        ("yes 0.5", "no 0.5", False, False),
        ("a", "a b", False, False),
        ("1", "nan", False, False),
    ],
)
def test_same_output(expected, text, exact, close):
    assert cases.same_output(expected, text) is exact
    assert cases.same_output(expected, text, 1e-6) is close


class _Here(Program):
    """A program that needs no cell."""

    def __init__(self, function):
        self._function = function

    def function(self, name):
        return self._function


def test_generated_inputs_find_a_special_case():
    """VER-16: wrong on a quarter of inputs, found by n = 4 with 1 - (3/4)^4 = 0.684.

    1000 programs; a standard error of 0.0147, four of them allowed.
    """
    task = reference.read(
        {
            "function": "f",
            "generator": "def generate(rng): return [rng.randrange(4000)]",
            "solution": "def f(x): return x",
            "runs": 4,
        }
    )
    wrong = _Here(lambda x: x if x % 4 else -1)
    found = 0
    for seed in range(1000):
        results = cases.call_cases(task, wrong, random.Random(seed))
        found += results.passed < results.total
    assert found / 1000 == pytest.approx(1 - 0.75**4, abs=4 * 0.0147)


def test_the_reference_and_the_program_do_not_share_arguments():
    """Either may change its list; the other gets its own."""
    task = reference.read(
        {
            "function": "f",
            "generator": "def generate(rng): return [[1, 2]]",
            "solution": "def f(xs): xs.clear(); return xs",
            "cases": [{"args": [[3]], "expected": []}],
        }
    )
    seen = []

    def program(xs):
        seen.append(list(xs))
        xs.clear()
        return xs

    for seed in range(2):
        results = cases.call_cases(task, _Here(program), random.Random(seed))
        assert results.passed == results.total == 21
    assert seen.count([3]) == 2
    assert seen.count([1, 2]) == 40
