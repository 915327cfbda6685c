"""Assert statements against a stand-in for the program."""

import random

import pytest

from rlvr_jax.verifiers.base import Status
from rlvr_jax.verifiers.code import asserts, reference
from rlvr_jax.verifiers.code.remote import Program
from tests.verifiers.code.tasks import verdict


class _Here(Program):
    """A program that needs no cell."""

    def __init__(self, source):
        self.calls = 0
        self.gone = ""
        self._names = {}
        exec(source, self._names)

    def function(self, name):
        def call(*args):
            self.calls += 1
            return self._names[name](*args)

        return call


def _run(source, tests, fraction=True, seed=0):
    fields = {"test_list": tests} if isinstance(tests, list) else tests
    suite = asserts.Suite(reference.read(fields), random.Random(seed))
    return suite.run(_Here(source), fraction)


def test_each_assert_counts_once():
    """By hand: f(1) and the loop hold; f(2) fails; the one after `raise` is not met."""
    check = {
        "entry_point": "f",
        "prompt": "",
        "test": (
            "def check(candidate):\n"
            "    assert candidate(1) == 1\n"
            "    assert candidate(2) == 3\n"
            "    for x in range(3):\n"
            "        assert candidate(x) == x\n"
            "    candidate(None).missing\n"
            "    assert candidate(4) == 4\n"
        ),
    }
    results = _run("def f(x): return x", check)
    assert (results.passed, results.total) == (2, 4)
    assert "AttributeError" in results.reason


def test_an_assert_within_try_may_fail():
    tests = [
        "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass\n"
        "assert f(1) == 1"
    ]
    source = "def f(x):\n    if x < 0: raise ValueError\n    return x"
    assert _run(source, tests, fraction=False) == (1, 1, "")
    assert _run("def f(x): return x", tests, fraction=False).reason


def test_asserts_hold_under_python_o():
    """Compiled without the optimisation that would drop them, whatever -O says."""
    assert _run("def f(): return 1", ["assert f() == 2"]).passed == 0


def test_a_loop_over_nothing_passes_no_test():
    tests = ["for x in f():\n    assert x > 0"]
    results = _run("def f(): return []", tests, fraction=False)
    assert results.reason == "no assert statement was reached"


def test_order_is_mixed_where_nothing_is_shared():
    """Asserts on fresh values move; those on a variable stay where they are."""
    check = {
        "entry_point": "f",
        "prompt": "",
        "test": (
            "def check(candidate):\n"
            "    xs = [1]\n"
            "    assert candidate('a') == 'a'\n"
            "    assert candidate('b') == 'b'\n"
            "    assert candidate('c') == 'c'\n"
            "    assert candidate(xs) == [1]\n"
            "    assert xs == [1]\n"
        ),
    }
    orders = set()
    for seed in range(40):
        seen = []
        here = _Here("def f(x): return x")
        here._names["f"] = lambda x, seen=seen: seen.append(str(x)) or x
        suite = asserts.Suite(reference.read(check), random.Random(seed))
        assert suite.run(here, False) == (5, 5, "")
        orders.add("".join(seen))
    assert orders == {
        f"{order}[1]" for order in ("abc", "acb", "bac", "bca", "cab", "cba")
    }


MBPP = {
    "objects": (
        "class Node:\n    def __init__(self, x): self.x, self.next = x, None\n"
        "def total(n): return 0 if n is None else n.x + total(n.next)\n",
        {
            "test_setup_code": "a = Node(1)\r\na.next = Node(2)\r\na.next.x = 5",
            "test_list": ["assert total(a) == 6", "assert a.next.x == 5"],
        },
    ),
    "a name of a built-in": (
        "def sum(a, b): return a * b",
        {"test_list": ["assert sum(2, 3) == 6"]},
    ),
    "a module": (
        "def root(x): return x ** 0.5",
        {"test_list": ["assert math.isclose(root(2), math.sqrt(2))"]},
    ),
    "imports of tests": (
        "def root(x): return x ** 0.5",
        {
            "test_imports": ["from math import isclose"],
            "test_list": ["assert isclose(root(4), 2)"],
        },
    ),
    "arguments that are changed": (
        "def add(xs, x): xs.append(x)",
        {
            "test_setup_code": "xs = [1]\nadd(xs, 2)",
            "test_list": ["assert xs == [1, 2]"],
        },
    ),
    "exceptions": (
        "def f(x): raise KeyError(x)",
        {
            "test_list": [
                "try:\n    f(1)\nexcept LookupError:\n    y = 1\nassert y == 1"
            ]
        },
    ),
    "an iterator": (
        "def f(x): return map(str, x)",
        {"test_list": ["assert list(f([1])) == ['1']"]},
    ),
}


@pytest.mark.parametrize("name", MBPP)
def test_what_tests_do_with_a_program(name):
    """In a cell: objects by reference, exceptions by name, arguments there and back."""
    source, fields = MBPP[name]
    found = verdict(source, fields)
    assert found.status is Status.CORRECT, found


@pytest.mark.parametrize(
    "test",
    [
        "assert f()",
        "assert not f()",
        "assert f() != 1",
        "assert f() in [1]",
        "assert len(f()) == 0",
        "assert str(f()) == 'x'",
        "assert f().x == f()",
        "assert {f(): 1}",
        "assert f()[0] == 1",
        "assert f().__class__",
    ],
)
def test_an_object_of_the_program_proves_nothing(test):
    """It cannot be compared, counted or shown: the program's methods would decide."""
    source = (
        "class A:\n    x = 1\n    def __eq__(self, o): return True\ndef f(): return A()"
    )
    found = verdict(source, {"test_list": [test]})
    assert found.status is (
        Status.CORRECT if test == "assert f().__class__" else Status.WRONG
    ), found
