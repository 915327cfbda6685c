"""The bench of verifiers: what it counts, with and without a peer beside it."""

import json
import sys
import types

import pytest

from launch.bench_verifiers import bench_verifiers


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [
        {"gold": "1/2", "pred": r"\boxed{0.5}", "expected": True},
        {"gold": "1/2", "pred": r"\boxed{0.6}", "expected": False},
        {"gold": "4", "pred": "no number at all", "expected": True},
        {"gold": "4", "pred": "5", "expected": True, "contested": True},
    ]
    # No line ends at the separator inside a text.
    lines[2]["pred"] += "\u2028"
    texts = (json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf8")
    return path


def test_ours(rows, monkeypatch):
    """Two of three settled rows right; the contested one is timed and not counted."""
    monkeypatch.setitem(sys.modules, "math_verify", None)  # not installed
    result = bench_verifiers(rows)
    assert result["rows"] == 4
    assert result["accuracy"] == pytest.approx(2 / 3)
    assert result["rows_per_s"] > 100
    assert 0 < result["slowest_s"] < 1
    assert result["math_verify"] is None


def test_a_peer_beside_it(rows, monkeypatch):
    """A peer that accepts everything but raises on the second row."""

    def verify(gold, answer):
        if "0.6" in answer:
            raise ValueError
        return [gold, answer]

    peer = types.SimpleNamespace(parse=lambda text: text, verify=verify)
    monkeypatch.setitem(sys.modules, "math_verify", peer)
    assert bench_verifiers(rows, verifier="exact")["math_verify"]["accuracy"] == 1.0


def test_no_rows(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="holds no rows"):
        bench_verifiers(tmp_path / "empty.jsonl")
