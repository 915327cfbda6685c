"""python -m launch.audit: the tables and the errors. Runs are in tests/end_to_end."""

import json

import pytest

from launch import audit


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [
        {"gold": "7", "pred": r"\boxed{7}", "expected": True},
        {"gold": "7", "pred": r"Certainly! \boxed{1} or \boxed{7}", "expected": False},
        {"gold": "7", "pred": "no\u2028\\boxed{8}", "expected": False},
        {"gold": "7", "pred": r"\boxed{9}", "expected": True, "contested": True},
    ]
    texts = (json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text("\n".join(texts), encoding="utf8")
    return str(path)


def cells(printed):
    """Rows of a printed table: [[cell, ...], ...]."""
    return [
        [cell.strip() for cell in line[1:-1].split("│")]
        for line in printed.splitlines()
        if line.startswith("│")
    ]


def test_the_eight_outputs_and_the_rates(capsys):
    audit.main(["checkers", "--workers", "1", "--verifiers", "math, weak:mentions"])
    printed = capsys.readouterr().out
    assert "exactly one head" in printed
    rates = [row for row in cells(printed) if row[1] == "all"]
    assert rates == [
        ["math", "all", "100.0%", "0.0%", "0", "0", "0"],
        ["weak:mentions", "all", "100.0%", "100.0%", "0", "3", "0"],
    ]


def test_rows_of_a_file_by_pattern_and_without_contested_ones(rows, capsys):
    """One of two wrong ones is accepted, and it is the one that says Certainly."""
    command = ["checkers", rows, "--workers", "1", "--verifiers", "weak:any_boxed"]
    audit.main([*command, "--pattern", "sure=Certainly"])
    assert cells(capsys.readouterr().out) == [
        ["weak:any_boxed", "all", "100.0%", "50.0%", "0", "1", "0"],
        ["", "sure", "-", "100.0%", "0", "1", ""],
    ]
    audit.main([*command, "--against", "math"])
    assert cells(capsys.readouterr().out) == [
        ["weak:any_boxed", "all", "100.0%", "50.0%", "0", "1", "0"]
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["checkers", "--verifiers", "maths"], "did you mean 'math'"),
        (["checkers", "--pattern", "x"], "--pattern is NAME=REGEX"),
        (["checkers", "nowhere.jsonl"], "nowhere.jsonl"),
        (["read", "nowhere"], "is not a folder"),
        (["gap", "nowhere"], "is not a folder"),
    ],
)
def test_errors(arguments, words):
    with pytest.raises(SystemExit, match=f"launch.audit: .*{words}"):
        audit.main(arguments)


def test_rows_without_truth_need_a_stricter_verifier(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"gold": "7", "pred": "7"}))
    with pytest.raises(SystemExit, match=r"1 rows of .* lack 'expected'"):
        audit.main(["checkers", str(path), "--workers", "1", "--verifiers", "math"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: is not JSON"),
        ('{"gold": "1", "pred": "1"}\n[1]', "line 2: is no object with 'gold'"),
        ('{"gold": "1"}', "line 1: is no object with .* 'pred'"),
        ("\n", "holds no rows"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path, text, words):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(SystemExit, match=f"launch.audit: .*rows.jsonl.*{words}"):
        audit.main(["checkers", str(path)])


def test_a_run_without_audit_or_completions_says_what_to_set(tmp_path):
    metrics = {"step": 0, "time": "2026-01-01T00:00:00+00:00", "reward/mean": 0.5}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(metrics) + "\n")
    with pytest.raises(SystemExit, match=r"set audit\.verifier"):
        audit.main(["gap", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"set logging\.completions_every_steps"):
        audit.main(["read", str(tmp_path)])
