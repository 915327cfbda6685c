"""python -m launch.verify: the tables, the JSON object and the errors."""

import json

import pytest

from launch import verify


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [
        {"gold": "1/2", "pred": r"\boxed{0.5}", "expected": True, "kind": "fraction"},
        {"gold": "1/2", "pred": r"\boxed{0.6}", "expected": False, "kind": "fraction"},
        {"gold": "4", "pred": "four", "expected": True, "kind": "words", "id": "w1"},
        {"gold": "4", "pred": "4", "expected": False, "contested": True},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    return path


def test_json(rows, capsys):
    verify.main(["--kind", "math", str(rows), "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert summary["rows"] == 4
    assert summary["uncontested"] == {
        "rows": 3,
        "accuracy": pytest.approx(2 / 3),
        "false_positives": 0,
        "false_negatives": 1,
    }
    assert summary["all"]["false_positives"] == 1
    assert (summary["timeouts"], summary["crashes"]) == (0, 0)
    assert summary["rows_per_s"] > 0
    assert 0 < summary["slowest_s"] < 5


def test_tables_name_the_rows_that_came_out_wrong(rows, capsys):
    verify.main([str(rows)])
    shown = capsys.readouterr().out
    assert "fraction" in shown
    assert "66.7 %" in shown
    assert "w1 words: wrong, should be accepted" in shown
    assert "(contested): correct, should be rejected" in shown
    assert "pred four" in shown


def test_a_file_of_ones_own_needs_gold_and_pred_only(tmp_path, capsys):
    """Texts may hold what Python, but not JSON lines, takes for the end of a line."""
    path = tmp_path / "own.jsonl"
    first = json.dumps({"gold": 3, "pred": "So\u2028it\x85is 3.0"}, ensure_ascii=False)
    path.write_text(f'{first}\n{{"gold": 3, "pred": "4"}}\n', encoding="utf8")
    verify.main([str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["all"]["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("{}", [], "rows.jsonl, line 1: lacks 'gold' and 'pred'"),
        ('{"gold": 1}', [], "lacks 'pred'"),
        ("[1]", [], "lacks 'gold' and 'pred'"),
        ("not json", [], "rows.jsonl, line 1: is not JSON"),
        ("", [], "holds no rows"),
        ('{"gold": 1, "pred": "", "expected": 0}', [], "line 1: expected is true or"),
        ('{"program": ""}', ["--kind", "code"], "lacks 'gold' or 'task' or 'meta'"),
        ('{"kwargs": {}}', ["--kind", "instructions"], "and 'pred' or 'response'"),
        ('{"gold": 1, "pred": ""}', ["--timeout_s", "0"], "timeout_s > 0"),
    ],
)
def test_errors(tmp_path, content, arguments, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(SystemExit, match=message):
        verify.main([str(path), *arguments])


def test_a_missing_file(tmp_path):
    with pytest.raises(SystemExit, match=r"missing\.jsonl"):
        verify.main([str(tmp_path / "missing.jsonl")])
