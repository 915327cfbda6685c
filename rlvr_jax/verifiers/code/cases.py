"""Runs cases: arguments and the value expected, or input and the output expected."""

import copy
import math
import random
from collections.abc import Callable
from typing import Any

from rlvr_jax.verifiers.code import python
from rlvr_jax.verifiers.code.reference import BadReference, Task
from rlvr_jax.verifiers.code.remote import Program
from rlvr_jax.verifiers.code.results import Results
from rlvr_jax.verifiers.code.sandbox import Cell, Gone, Lost, describe

DEFAULT_RUNS = 20
"""Generated inputs for each program."""


def call_cases(task: Task, program: Program, order: random.Random) -> Results:
    """Calls the function on the cases of the reference and on generated ones."""
    cases = list(task.fields.get("cases", []))
    if "generator" in task.fields:
        cases += generated_cases(task, order)
    function = program.function(task.fields["function"])

    def check(case: dict[str, Any]) -> str:
        args = copy.deepcopy(case["args"])
        try:
            value = function(*args, **copy.deepcopy(case.get("kwargs", {})))
            if same(case["expected"], value, task.tolerance):
                return ""
            return f"returned {value!r:.80}"
        except Lost:
            raise
        except (Exception, Gone) as error:
            return f"{type(error).__name__}: {error}"[:200]

    return _check_all(cases, check, task.fraction, order)


def run_cases(
    task: Task, cell: Cell, sources: list[str], order: random.Random
) -> Results:
    """Runs the program once for each case, from standard input to output."""

    def check(case: dict[str, Any]) -> str:
        try:
            output = cell.run(sources, case["input"].encode())
        except Lost:
            raise
        except Gone as error:
            return str(error)
        if output.ending:
            return describe(output.ending)
        text = output.stdout.decode(errors="replace")
        wrong = not same_output(case["output"], text, task.tolerance)
        return f"wrote {text!r:.80}" if wrong else ""

    return _check_all(task.fields["cases"], check, task.fraction, order)


def generated_cases(task: Task, order: random.Random) -> list[dict[str, Any]]:
    """Cases that no policy can have seen: inputs drawn now, judged by the solution.

    The generator is Python that defines `generate(rng)`, which returns the list of
    arguments; `rng` is a `random.Random`. Both it and the solution are trusted.

    Raises:
      BadReference: one of them raises.
    """
    fields = task.fields
    try:
        namespace: dict[str, Any] = {"__name__": "generator"}
        python.run(fields["generator"], "<generator>", namespace)
        solution: dict[str, Any] = {"__name__": "reference"}
        python.run(fields["solution"], "<solution>", solution)
        cases = []
        for _ in range(fields.get("runs", DEFAULT_RUNS)):
            args = list(namespace["generate"](order))
            right = solution[fields["function"]](*copy.deepcopy(args))
            cases.append({"args": args, "expected": right})
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise BadReference(f"the generator or the solution raised {problem}") from error
    return cases


def same(expected: Any, value: Any, tolerance: float | None = None) -> bool:
    """Whether a value is the expected one, in type too: True is not 1, nor is 1.0.

    JSON knows no tuples, so a list expected is matched by a tuple as well. With a
    tolerance numbers are compared by it, as floats.

    Example:
      >>> same([1, 2], (1, 2)), same(1, True), same(0.3, 0.1 + 0.2, 1e-9)
      (True, False, True)
    """
    numbers = (int, float)
    if tolerance is not None and type(expected) in numbers and type(value) in numbers:
        return _close(expected, value, tolerance)
    if isinstance(expected, list | tuple):
        return (
            type(value) in ((list, tuple) if type(expected) is list else (tuple,))
            and len(value) == len(expected)
            and all(map(lambda a, b: same(a, b, tolerance), expected, value))
        )
    if type(expected) is not type(value):
        return False
    if isinstance(expected, dict):
        mine, theirs = list(expected), list(value)
        return len(mine) == len(theirs) and all(
            key in value and same(expected[key], value[key], tolerance) for key in mine
        )
    return expected == value or (expected != expected and value != value)


def same_output(expected: str, text: str, tolerance: float | None = None) -> bool:
    """Whether a program wrote what it should, but for white space at the ends of lines.

    With a tolerance, words that are both numbers are compared by it.

    Example:
      >>> same_output("1 2\\n3\\n", "1 2  \\n3"), same_output("1 2", "1\\n2")
      (True, False)
    """
    mine, theirs = _lines(expected), _lines(text)
    if mine == theirs or tolerance is None:
        return mine == theirs
    return [len(line.split()) for line in mine] == [
        len(line.split()) for line in theirs
    ] and all(
        a == b or _close(_number(a), _number(b), tolerance)
        for a, b in zip(expected.split(), text.split(), strict=True)
    )


def _check_all(
    cases: list[dict[str, Any]],
    check: Callable[[dict[str, Any]], str],
    fraction: bool,
    order: random.Random,
) -> Results:
    numbers = list(range(len(cases)))
    order.shuffle(numbers)
    passed, reason = 0, ""
    for number in numbers:
        problem = check(cases[number])
        passed += not problem
        reason = reason or problem
        if problem and not fraction:
            break
    return Results(passed, len(cases), reason)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    return lines


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def _close(a: int | float, b: int | float, tolerance: float) -> bool:
    """Of two numbers; infinity is close to itself alone."""
    if a == b:
        return True
    try:
        distance = abs(float(a) - float(b))
    except OverflowError:  # an integer past all floats
        return False
    return distance <= tolerance * max(1.0, abs(a), abs(b)) < math.inf
