"""HumanEval and MBPP: their own solutions pass, and fail once they return other values.

A few rows are in tests/data/code; all of them are checked where RLVR_CODE_DATA names a
folder with humaneval.jsonl, mbpp.jsonl and mbpp_sanitized.jsonl.
"""

import ast
import json
import os
import pathlib

import pytest

from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.code import asserts, judge, mutation, python, reference

DATA = pathlib.Path(__file__).parents[2] / "data" / "code"
ALL = pathlib.Path(os.environ.get("RLVR_CODE_DATA", "/nowhere"))
LAST_RETURN_NOT_TESTED = frozenset(
    "mbpp-9 mbpp-20 mbpp-29 mbpp-34 mbpp-177 mbpp-189 mbpp-351 mbpp-382 mbpp-404 "
    "mbpp-485 mbpp-617 mbpp-627 mbpp-631 mbpp-802 mbpp-823 mbpp-838 mbpp-842 mbpp-916 "
    "mbpp-928".split()
)
"""Rows of MBPP whose tests pass whatever the last `return` gives."""


def _rows(folder, names):
    return [
        json.loads(line)
        for name in names
        for line in (folder / name).read_text(encoding="utf8").splitlines()
    ]


def _sample(row, program):
    meta = row["meta"] | {"time_limit_s": 20.0, "total_time_limit_s": 30.0}
    return Sample("code", program, row["answer"], row["question"], meta)


def _function(row, solution):
    """The function that is tested: of those the tests name, the last one defined."""
    fields = reference.fields_of(_sample(row, ""))
    if "entry_point" in fields:
        return fields["entry_point"]
    sources = [*fields.get("test_imports", []), fields.get("test_setup_code", "")]
    trees = [python.parse(each) for each in [*sources, *fields["test_list"]]]
    names = asserts.free_names(trees)
    defined = [
        node.name
        for node in ast.walk(python.parse(solution))
        if isinstance(node, ast.FunctionDef)
    ]
    wanted = names.functions or names.called
    return [name for name in defined if name in wanted][-1]


def _check(rows):
    """Which solutions fail, and which pass with another last value."""
    failed, survived = [], []
    for row in rows:
        solution = mutation.complete(reference.fields_of(_sample(row, "")))
        verdict = apply(judge.verify, _sample(row, row["answer"]))
        if verdict.status is not Status.CORRECT:
            failed.append((row["id"], verdict))
        changed = mutation.another_last_value(solution, _function(row, solution))
        verdict = apply(judge.verify, _sample(row, changed))
        if verdict.status is not Status.WRONG:
            survived.append(row["id"])
    return failed, survived


@pytest.mark.parametrize(
    ("name", "survivors"),
    [("humaneval_sample.jsonl", []), ("mbpp_sample.jsonl", ["mbpp-9"])],
)
def test_a_sample(name, survivors):
    """VER-02: tests with loops, helpers, objects, types, matches, built-in names."""
    assert _check(_rows(DATA, [name])) == ([], survivors)


@pytest.mark.slow
@pytest.mark.skipif(not ALL.is_dir(), reason="RLVR_CODE_DATA is not set")
def test_all_of_humaneval():
    """VER-02: 164 solutions pass, and none passes with another last value."""
    rows = _rows(ALL, ["humaneval.jsonl"])
    assert len(rows) == 164
    assert _check(rows) == ([], [])


@pytest.mark.slow
@pytest.mark.skipif(not ALL.is_dir(), reason="RLVR_CODE_DATA is not set")
def test_all_of_mbpp():
    """VER-02: 974 and 427 solutions pass; the mutants that pass too are known."""
    rows = _rows(ALL, ["mbpp.jsonl", "mbpp_sanitized.jsonl"])
    assert len(rows) == 974 + 427
    failed, survived = _check(rows)
    assert failed == []
    assert set(survived) == LAST_RETURN_NOT_TESTED
