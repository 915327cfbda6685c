"""python -m launch.verify on programs and instructions."""

import json
import pathlib

import pytest

from launch import verify
from tests.verifiers.code import tasks

DATA = pathlib.Path(__file__).parents[1] / "data" / "code"


def _write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(path)


def _summary(capsys, *arguments):
    verify.main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_recorded_programs(capsys):
    """VER-12, VER-28: every attack rejected, every good program accepted, under 2 s."""
    path = str(DATA / "programs.jsonl")
    summary = _summary(capsys, "--kind", "code", path)
    # Other work on the machine only adds to a time.
    slowest_s = summary["slowest_s"]
    for _ in range(2):
        if slowest_s >= 2.0:
            again = _summary(capsys, "--kind", "code", path)
            slowest_s = min(slowest_s, again["slowest_s"])
    right = {"rows": 70, "accuracy": 1.0, "false_positives": 0, "false_negatives": 0}
    assert summary["uncontested"] == summary["all"] == right
    assert (summary["rows"], summary["timeouts"], summary["crashes"]) == (70, 0, 0)
    assert slowest_s < 2.0
    assert set(summary) == {
        *("rows", "uncontested", "all", "timeouts", "crashes", "rows_per_s"),
        "slowest_s",
    }


def test_programs_of_ones_own(tmp_path, capsys):
    """A reference and a completion; rows as published with a prediction beside."""
    fenced = f"Here:\n```python\n{tasks.RIGHT}```"
    meta = {name: tasks.HUMANEVAL[name] for name in ("entry_point", "test")}
    rows = [
        {"gold": tasks.CALLS, "pred": fenced},
        {"gold": tasks.STDIO["cases"], "pred": tasks.RIGHT_PROGRAM},
        {"gold": tasks.MBPP, "pred": "I cannot."},
        {"answer": "x", "question": tasks.HUMANEVAL["prompt"], "meta": meta}
        | {"pred": "    return sum(x for x in xs if x % 2 == 0)\n"},
    ]
    summary = _summary(capsys, "--kind", "code", _write(tmp_path / "a.jsonl", rows))
    assert summary["all"]["rows"] == 4
    assert summary["all"]["accuracy"] == 0.75


def test_the_hack_rate_is_shown(tmp_path, capsys):
    """VER-21: one program of four passes its tests and fails those held out."""
    fields = tasks.MBPP | {"held_out": ["assert sum_even([8, 8]) == 16"]}
    recites = (
        "seen = {(1, 2, 4): 6, (): 0, (7, 9): 0, (-2, -4, 5): -6}\n"
        "def sum_even(xs): return seen[tuple(xs)]\n"
    )
    programs = [tasks.RIGHT, tasks.RIGHT, recites, "def sum_even(xs): pass"]
    rows = [{"gold": fields, "pred": program} for program in programs]
    verify.main(["--kind", "code", _write(tmp_path / "a.jsonl", rows)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "hack rate 25.0 %: of 4 programs 3 pass their tests, 1 of these" in shown


def test_instructions(tmp_path, capsys):
    rows = [
        {"instruction_id": "punctuation:no_comma", "kwargs": {}, "response": "a b"},
        {"instruction_id": "punctuation:no_comma", "kwargs": {}, "response": "a, b"},
        {"gold": {"instruction_id": "punctuation:no_comma"}, "pred": "a b"},
        {
            "meta": {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
            "pred": "a b",
        },
    ]
    path = _write(tmp_path / "a.jsonl", rows)
    summary = _summary(capsys, "--kind", "instructions", path)
    assert summary["all"]["accuracy"] == 0.75
    assert summary["crashes"] == 0


@pytest.mark.parametrize("kind", verify.KINDS)
def test_each_kind_names_the_fields_it_needs(tmp_path, kind):
    path = _write(tmp_path / "a.jsonl", [{"id": 1}])
    with pytest.raises(SystemExit, match=r"a\.jsonl, line 1: lacks 'gold'"):
        verify.main(["--kind", kind, path])
