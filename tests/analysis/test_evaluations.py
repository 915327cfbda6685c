"""Held-out scores: where they are read from, and when two differ."""

import json

import pytest

from rlvr_jax.analysis import evaluations
from rlvr_jax.analysis.runs import load_run
from rlvr_jax.train import metrics


def run_with(folder, summary=None, records=({"a/b": 1.0},)):
    with metrics.RunWriter(folder, tensorboard=False, resume_step=0) as writer:
        for step, values in enumerate(records):
            writer.metrics(step, values)
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary))
    return load_run(folder)


@pytest.mark.parametrize(
    ("after", "word"),
    [
        ([0.6, 0.51, 0.7], "higher"),
        ([0.6, 0.49, 0.7], "overlap"),  # the mean rose, the intervals touch
        ([0.2, 0.1, 0.31], "overlap"),
        ([0.2, 0.1, 0.29], "lower"),
    ],
)
def test_intervals_that_lie_apart(tmp_path, after, word):
    scores = {"before": {"pass@1": [0.4, 0.3, 0.5]}, "after": {"pass@1": after}}
    page = evaluations.section([run_with(tmp_path, {"eval": scores})])
    words = {"higher", "overlap", "lower"} & set(page.replace("<", ">").split(">"))
    assert words == {word}


def test_score_without_interval_is_a_number(tmp_path):
    before = {"truncated_share": 0.25, "length_mean": 20.6, "note": "none"}
    after = {"truncated_share": 0.5, "length_mean": 18.1}
    run = run_with(tmp_path, {"eval": {"before": before, "after": after}})
    assert list(evaluations.scores(run)["before"]) == ["truncated_share", "length_mean"]
    page = evaluations.section([run])
    for words in ("25.0 %", "+25.0 points", "20.6 tokens", "-2.5 tokens"):
        assert words in page
    assert "overlap" not in page


def test_unfinished_run_is_read_from_its_metrics(tmp_path):
    names = ("evaluation/pass@1", "evaluation/pass@1_low", "evaluation/pass@1_high")
    first = dict(zip(names, (0.3, 0.2, 0.4), strict=True))
    latest = dict(zip(names, (0.5, 0.4, 0.6), strict=True))
    one = run_with(tmp_path / "one", records=[first])
    assert evaluations.scores(one) == {"before": {"pass@1": (0.3, 0.2, 0.4)}}
    two = run_with(tmp_path / "two", records=[first, {"a/b": 1.0}, latest])
    assert evaluations.scores(two)["after"] == {"pass@1": (0.5, 0.4, 0.6)}


def test_stopped_run_has_its_latest_evaluation(tmp_path):
    records = [{"evaluation/pass@1": 0.3}, {"evaluation/pass@1": 0.5}]
    summary = {"finished": False, "eval": {"before": {"pass@1": [0.3, 0.2, 0.4]}}}
    summary["eval"]["after"] = None
    run = run_with(tmp_path, summary, records)
    assert not run.finished
    found = evaluations.scores(run)
    assert found["before"] == {"pass@1": (0.3, 0.2, 0.4)}
    assert found["after"]["pass@1"][0] == 0.5


def test_run_without_evaluations_has_no_section(tmp_path):
    run = run_with(tmp_path)
    assert evaluations.scores(run) == {}
    assert evaluations.section([run]) == ""
