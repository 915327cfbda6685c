"""The table of a sweep from run folders with known scores."""

import json

import pytest

from rlvr_jax.analysis import sweeps
from rlvr_jax.analysis.sweep_page import write_sweep_report

SCORES = {"base": {0: 0.30, 1: 0.34, 2: 0.32}, "more": {0: 0.40, 1: 0.46, 2: 0.40}}


def cell(folder, score, *, finished=True, truncated=0.1):
    folder.mkdir(parents=True)
    lines = [
        {"step": s, "reward/mean": score * s, "completion/truncated_share": truncated}
        for s in range(3)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    found = {"before": {"pass@1": [0.1, 0, 1]}, "after": {"pass@1": [score, 0, 1]}}
    summary = {"finished": finished, "seconds": 1, "steps": 3, "eval": found}
    (folder / "summary.json").write_text(json.dumps(summary))
    rows = [
        {"step": step, "completion": text, "verdict": "correct", "reward": 1.0}
        for step, text in ((0, "4"), (0, "2 + 2\n4"), (2, "1\n4"), (2, "3\n4"))
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "completions.jsonl").write_text(text)


@pytest.fixture
def folder(tmp_path):
    for row, seeds in SCORES.items():
        for seed, score in seeds.items():
            cell(tmp_path / row / f"seed{seed}", score)
    cell(tmp_path / "more" / "seed3", 0.9, finished=False)
    told = {
        "config": "some.py",
        "rows": [
            {"name": name, "folder": name, "paper": paper, "role": "", "settings": {}}
            for name, paper in (("base", 30.0), ("more", 36.0), ("later", 38.0))
        ],
        "seeds": [0, 1, 2, 3],
        "metric": "pass@1",
        "watched": ["completion/truncated_share"],
        "reference": ["the other paper", 47.0],
        "paper": "a benchmark",
        "behaviour": r"\n",
        "flags": {},
    }
    (tmp_path / "sweep.json").write_text(json.dumps(told))
    return tmp_path


def test_rows_have_intervals_over_seeds_and_changes_paired_by_seed(folder):
    base, more, later, other = sweeps.table_rows(sweeps.load_sweep(folder))
    # 30, 34, 32: mean 32, sd 2; t(2 df, .975) = 4.303; 4.303 * 2 / sqrt 3 = 4.968.
    assert (base["name"], base["seeds"], base["paper"]) == ("base", 3, 30)
    assert base["mean"] == pytest.approx(32)
    assert base["high"] == pytest.approx(32 + 4.968, abs=2e-3)
    assert base["low"] == pytest.approx(32 - 4.968, abs=2e-3)
    # Differences 10, 12, 8: mean 10, sd 2. The unfinished seed does not count.
    assert more["seeds"] == 3
    assert more["change"] == pytest.approx([10, 10 - 4.968, 10 + 4.968], abs=2e-3)
    assert base["change"] is None
    assert base["gain"][0] == pytest.approx(22)
    assert (later["mean"], later["seeds"], later["paper"]) == (None, 0, 38)
    assert (other["name"], other["mean"], other["paper"]) == (
        "the other paper",
        None,
        47,
    )


def test_markdown(folder):
    results = sweeps.load_sweep(folder)
    lines = sweeps.markdown(results).splitlines()
    assert lines[0] == (
        "| row | pass@1 | 95 % | paper | seeds | change | from start "
        "| completion truncated |"
    )
    assert lines[2] == (
        "| base | 32.0 | [27.0, 37.0] | 30 | 3 |  | +22.0 [+17.0, +27.0] | 10.0 % |"
    )
    more = "| more | 42.0 | [33.4, 50.6] | 36 | 3 | +10.0 [+5.0, +15.0] |"
    assert lines[3].startswith(more)
    assert lines[5].startswith("| the other paper |  |  | 47 |")
    assert "6 of 12 cells are not finished." in sweeps.notes(results)


def test_shares_of_a_way_to_answer(folder):
    """One of two completions has a line break at step 0, both at step 2."""
    row = sweeps.load_sweep(folder).rows[0]
    assert row.behaviour == dict.fromkeys(range(3), (50.0, 100.0))


def test_the_page_has_the_table_and_mean_curves(folder):
    path = write_sweep_report(sweeps.load_sweep(folder), extra=["<p>more</p>"])
    page = path.read_text()
    assert path == folder / "report.html"
    assert "[27.0, 37.0]" in page
    assert "the other paper" in page
    assert "<p>more</p>" in page
    assert "Reward" in page
    assert page.count("<svg") >= 2
    mean = sweeps.mean_run(sweeps.load_sweep(folder).rows[0])
    # Means of 0.30, 0.34 and 0.32 times the step.
    assert mean.metrics["reward/mean"].values == pytest.approx([0, 0.32, 0.64])


def test_other_folders_are_refused(tmp_path):
    assert not sweeps.is_sweep(tmp_path)
    with pytest.raises(ValueError, match="has no sweep"):
        sweeps.load_sweep(tmp_path)


def test_steps_to_the_final_score_of_a_row(folder):
    """CLIP-17: means over seeds at steps 0, 10, 20. "base" ends at its mean .32, which
    "more" first reaches at 10 (.10, .36, .42), half of the steps; no other way."""
    curves = {"base": (0.1, 0.2, None), "more": (0.1, 0.36, None)}
    for row, curve in curves.items():
        for seed, last in SCORES[row].items():
            lines = [
                {"step": 10 * place, "evaluation/pass@1": last if v is None else v}
                for place, v in enumerate(curve)
            ]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / row / f"seed{seed}" / "metrics.jsonl").write_text(text)
    plain = sweeps.table_rows(sweeps.load_sweep(folder))
    assert not any("steps_to" in row for row in plain)
    told = json.loads((folder / "sweep.json").read_text())
    (folder / "sweep.json").write_text(json.dumps(told | {"steps_to": "base"}))
    results = sweeps.load_sweep(folder)
    rows = sweeps.table_rows(results)
    assert [row.get("steps_to") for row in rows] == [20, 10, None, None]
    lines = sweeps.markdown(results).splitlines()
    assert "| from start | steps to base |" in lines[0]
    assert "| 10 |" in lines[3]
    assert any("final score of base" in note for note in sweeps.notes(results))
    # The other way round: base never gets to the .42 of more.
    (folder / "sweep.json").write_text(json.dumps(told | {"steps_to": "more"}))
    rows = sweeps.table_rows(sweeps.load_sweep(folder))
    assert [row.get("steps_to") for row in rows] == [None, 20, None, None]
    # A row that was not run times none.
    (folder / "sweep.json").write_text(json.dumps(told | {"steps_to": "gone"}))
    results = sweeps.load_sweep(folder)
    assert not any("steps_to" in row for row in sweeps.table_rows(results))
    assert "steps to" not in sweeps.markdown(results)
