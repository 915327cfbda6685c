"""Countdown: the solver against brute force, and the problems it stands for."""

import ast
import itertools
import re
from fractions import Fraction

import numpy as np
import pytest

from rlvr_jax.data import tasks
from rlvr_jax.data.tasks import countdown

OPERATIONS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def evaluate(text):
    """Exact value and numbers of an expression, by Python's own parser."""
    tree = ast.parse(text, mode="eval").body

    def walk(node):
        if isinstance(node, ast.Constant):
            return Fraction(node.value), [node.value]
        (a, left), (b, right) = walk(node.left), walk(node.right)
        return OPERATIONS[type(node.op)](a, b), left + right

    return walk(tree)


def reachable(numbers):
    """All values of expressions that use each number once, over sets of values."""
    if len(numbers) == 1:
        return {Fraction(numbers[0])}
    values = set()
    for mask in range(1, 2 ** len(numbers) - 1):
        left = [n for i, n in enumerate(numbers) if mask >> i & 1]
        right = [n for i, n in enumerate(numbers) if not mask >> i & 1]
        for a, b in itertools.product(reachable(left), reachable(right)):
            values |= {a + b, a - b, a * b}
            if b:
                values.add(a / b)
    return values


def test_the_solver_agrees_with_brute_force():
    """DATA-19: verdicts of the solver on every target from 1 to 60, by enumeration."""
    random = np.random.default_rng(0)
    verdicts = {True: 0, False: 0}
    for size in (2, 3, 3, 3, 4):
        numbers = random.integers(1, 13, size=size).tolist()
        values = reachable(numbers)
        for target in range(1, 60 if size < 4 else 15):
            solution = countdown.solve(numbers, target)
            assert (solution is not None) == (target in values), (numbers, target)
            verdicts[solution is not None] += 1
            if solution is not None:
                value, used = evaluate(solution)
                assert value == target
                assert sorted(used) == sorted(numbers)
    assert min(verdicts.values()) > 20


@pytest.mark.slow
def test_566_of_the_715_hands_of_1_to_10_make_24():
    """DATA-19: a count known from the game of 24 (four numbers of 1..10)."""
    hands = itertools.combinations_with_replacement(range(1, 11), 4)
    assert sum(countdown.solve(hand, 24) is not None for hand in hands) == 566


@pytest.mark.parametrize(
    ("numbers", "target", "solvable"),
    [
        # Known puzzles; the first three need fractions on the way.
        ([3, 3, 8, 8], 24, True),
        ([1, 3, 4, 6], 24, True),
        ([1, 5, 5, 5], 24, True),
        ([1, 1, 1, 1], 24, False),
        ([7], 7, True),
        ([7], 8, False),
        ([0, 0], 0, True),
        ([5, 0], 3, False),
    ],
)
def test_known_puzzles(numbers, target, solvable):
    """DATA-19"""
    solution = countdown.solve(numbers, target)
    assert (solution is not None) == solvable
    if solution is not None:
        assert evaluate(solution)[0] == target


@pytest.mark.parametrize("most", [3, 6])
def test_every_problem_has_the_solution_it_carries(most):
    """DATA-19: each number used exactly once, every step true, target reached."""
    options = {"max_numbers": most, "max_number": 30, "count": 150}
    for problem in tasks.generate("countdown", 4, "train", options=options):
        *steps, last = problem.meta["solution"].split("\n")
        expression = re.fullmatch("<answer>(.*)</answer>", last)[1]
        value, used = evaluate(expression)
        assert value == problem.answer["target"]
        assert sorted(used) == sorted(problem.answer["numbers"])
        assert len(steps) == len(used) - 1
        for step in steps:
            left, right = step.split(" = ")
            assert evaluate(left)[0] == int(right) >= 0
        assert f"equal to {value}." in problem.question
        assert f"numbers {', '.join(map(str, problem.answer['numbers']))} " in (
            problem.question
        )


def test_ranges_and_operators_are_kept():
    options = {
        "min_numbers": 4,
        "min_number": 3,
        "max_number": 12,
        "min_target": 20,
        "max_target": 40,
        "operators": "+*",
        "count": 50,
    }
    for problem in tasks.generate("countdown", 0, "train", options=options):
        assert 20 <= problem.answer["target"] <= 40
        assert len(problem.answer["numbers"]) == 4
        assert all(3 <= number <= 12 for number in problem.answer["numbers"])
        assert not set(problem.meta["solution"].rpartition("\n")[2]) & set("-")


def test_all_operators_come_up():
    problems = tasks.generate("countdown", 0, "train", options={"count": 400})
    steps = "\n".join(p.meta["solution"].rpartition("\n")[0] for p in problems)
    counts = {sign: steps.count(f" {sign} ") for sign in "+-*/"}
    assert min(counts.values()) >= 10, counts


def test_short_wording_holds_the_same_problem():
    options = {"wording": "short", "count": 20}
    for problem in tasks.generate("countdown", 0, "train", options=options):
        numbers, _, target = problem.question.partition(" -> ")
        assert [int(n) for n in numbers.split()] == problem.answer["numbers"]
        assert int(target) == problem.answer["target"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_numbers": 1}, "2 <= min_numbers <= max_numbers <= 6, got 1 and 4"),
        ({"max_numbers": 7}, "max_numbers <= 6, got 3 and 7"),
        ({"min_target": 9, "max_target": 8}, "min_target <= max_target, got 9 and 8"),
        ({"operators": "^"}, "operators are out of '+-*/', got '^'"),
        ({"wording": "x"}, "wording is 'question' or 'short', got 'x'"),
        (
            {"max_number": 2, "min_target": 999},
            "no target between 999 and 1000 in 1000",
        ),
    ],
)
def test_impossible_options_are_explained(options, message):
    with pytest.raises(ValueError, match="countdown") as caught:
        tasks.generate("countdown", 0, "train", options=options)
    assert message in str(caught.value)
