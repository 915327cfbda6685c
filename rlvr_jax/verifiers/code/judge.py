"""Verifier `code`: a program is correct if it passes tests that it never meets.

`code` runs the tests of the reference. `code:held_out` runs those the reference keeps
apart as `held_out`, which no reward sees: the share of programs that pass the first and
fail the second is the hack rate (`heldout`).

The reference is a dictionary in one of these forms:

    {"prompt": ..., "entry_point": ..., "test": "def check(candidate): ..."}  HumanEval
    {"test_list": ["assert f(1) == 2", ...], "test_setup_code": ...}          MBPP
    {"function": "f", "cases": [{"args": [1], "expected": 2}, ...]}           calls
    {"function": "f", "generator": ..., "solution": ..., "runs": 20}          properties
    {"cases": [{"input": "1\\n", "output": "2\\n"}, ...]}                     programs

with, in all of them: `scoring` ("all" or "fraction"), `tolerance` of floats,
`time_limit_s` of a call or run, `total_time_limit_s`, `memory_mb`, `held_out`.
"""

import hashlib
import random
from collections.abc import Callable
from typing import Any

from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.code import cases, program, reference, sandbox, scan
from rlvr_jax.verifiers.code.asserts import Suite
from rlvr_jax.verifiers.code.reference import BadReference, Task
from rlvr_jax.verifiers.code.remote import Program
from rlvr_jax.verifiers.code.results import Results


def verify(sample: Sample) -> Verdict:
    """Runs the program of a completion against the tests of the reference.

    A program that raises, hangs, ends or uses too much is wrong; that is no fault of
    the verifier.

    Args:
      sample: a completion (see `program`) and a reference (see above); tests may also
        stand in `meta`, as in the published files of HumanEval and MBPP.

    Raises:
      sandbox.Refused: this machine offers no isolation.
      RuntimeError: the cell was lost in the middle; the program was not judged.
    """
    return _judge(sample, lambda fields: fields)


def held_out(sample: Sample) -> Verdict:
    """Runs the program against the tests that are held out."""
    return _judge(sample, reference.held_out)


def warm_up() -> None:
    """Finds out, before any deadline, what isolation there is."""
    try:
        sandbox.isolation()
    except sandbox.Refused:
        pass  # the first sample will say so


verify.warm_up = held_out.warm_up = warm_up  # type: ignore[attr-defined]


def _judge(
    sample: Sample, select: Callable[[dict[str, Any]], dict[str, Any]]
) -> Verdict:
    try:
        task = reference.read(select(reference.fields_of(sample)))
        order = random.Random(_seed(sample.completion))
        suite = Suite(task, order) if task.form in ("humaneval", "mbpp") else None
        try:
            found = program.find(sample.completion, task.prompt, task.entry_point)
        except ValueError as error:
            return Verdict(Status.UNPARSEABLE, 0.0, str(error))
        isolation = sandbox.isolation()
        with sandbox.Cell(isolation, task.limits) as cell:
            results = _results(task, suite, cell, found, order)
    except BadReference as error:
        return Verdict(Status.BAD_REFERENCE, 0.0, str(error))
    except sandbox.Lost as error:
        raise RuntimeError(f"the program could not be judged: {error}") from None
    return _verdict(task, results, isolation, scan.signs("\n".join(found.sources)))


def _seed(completion: str) -> int:
    """The same completion meets the same order and inputs again, as a resume needs.

    Another one meets others, and no program knows its own seed.
    """
    return int.from_bytes(hashlib.sha256(completion.encode(errors="replace")).digest())


def _results(
    task: Task,
    suite: Suite | None,
    cell: sandbox.Cell,
    found: program.Found,
    order: random.Random,
) -> Results:
    if task.form == "stdio":
        return cases.run_cases(task, cell, found.sources, order)
    try:
        callee = Program(cell, found.sources, found.without)
    except sandbox.Lost:
        raise
    except (Exception, sandbox.Gone) as error:
        kind = "" if isinstance(error, sandbox.Gone) else f"{type(error).__name__}: "
        return Results(0, 0, f"when defined, {kind}{error}"[:200])
    try:
        if suite is not None:
            return suite.run(callee, task.fraction)
        return cases.call_cases(task, callee, order)
    except sandbox.Lost:
        raise
    except sandbox.Gone as error:
        return Results(0, 0, str(error))
    finally:
        callee.close()


def _verdict(task: Task, results: Results, isolation: str, signs: list[str]) -> Verdict:
    passed = results.total > 0 and results.passed == results.total
    share = results.passed / results.total if results.total else 0.0
    score = share if task.fraction else float(passed)
    passed = passed and not results.reason
    detail = f"{results.passed} of {results.total} tests passed"
    if results.reason:
        detail += f"; {results.reason}"
    if signs:
        detail += f"; signs: {', '.join(signs)}"
    status = Status.CORRECT if passed else Status.WRONG
    return Verdict(
        status, score if passed or score < 1 else 0.0, f"{detail} ({isolation})"
    )
