"""Reading a run folder back: whole, half-written and damaged."""

import json

import numpy as np
import pytest

from rlvr_jax.analysis.runs import Series, load_run
from rlvr_jax.train import metrics
from tests.analysis import synthetic


def test_what_was_written_is_read(tmp_path):
    run = load_run(synthetic.write_run(tmp_path / "run", steps=6))
    assert run.name == "run"
    assert run.steps == 6
    assert run.seconds == pytest.approx(18.6)
    assert run.setting("objective.epsilon_high") == 0.28
    assert run.setting("objective.nothing", "default") == "default"
    assert run.metrics["reward/mean"].steps.tolist() == list(range(6))
    assert run.metrics["evaluation/pass@1"].steps.tolist() == [0, 2, 4, 6]
    assert [row["step"] for row in run.completions] == [0, 0, 0]


def test_lines_of_one_step_are_merged_and_the_last_counts(tmp_path):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        writer.metrics(1, {"a/b": 1.0})
        writer.metrics(0, {"a/b": 2.0, "a/c": 3.0})
        writer.metrics(1, {"a/b": 4.0, "a/d": float("-inf")})
    run = load_run(tmp_path)
    assert run.metrics["a/b"].steps.tolist() == [0, 1]
    assert run.metrics["a/b"].values.tolist() == [2.0, 4.0]
    assert run.metrics["a/c"].steps.tolist() == [0]
    assert run.metrics["a/d"].values.tolist() == [-np.inf]


def test_zero_length_of_no_completion_is_a_gap(tmp_path):
    run = load_run(synthetic.write_run(tmp_path / "run", steps=6))
    # The synthetic step 3 has no correct completion.
    assert run.metrics["completion/length_correct"].steps.tolist() == [0, 1, 2, 4, 5]
    assert run.metrics["optimizer/skipped"].steps.tolist() == list(range(6))


def test_null_is_not_a_number(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "a/b": null}\n')
    assert np.isnan(load_run(tmp_path).metrics["a/b"].values[0])


def test_last_takes_finite_values_only():
    values = np.array([1.0, 2.0, np.inf, np.nan])
    assert Series(np.arange(4), values).last() == 2.0
    assert np.isnan(Series(np.arange(1), np.array([np.nan])).last())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no records"),
        ("not json\n", r"metrics\.jsonl line 1 is not a JSON record"),
        ('{"step": 0}\n{"time": "x"}\n', "line 2 .*KeyError: 'step'"),
        ("[1, 2]\n", "line 1 is not a JSON record"),
        ('{"step": 0, "a/b": "high"}\n', "step 0: metric 'a/b' needs a number"),
        ('{"step": 0, "a/b": [1]}\n', r"metric 'a/b' needs a number, got \[1\]"),
    ],
)
def test_damaged_metrics_are_one_clear_error(tmp_path, text, message):
    (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_run(tmp_path)


def test_metrics_that_are_not_text_are_one_clear_error(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b"\xff\xfe\x00\n\x00\n")
    with pytest.raises(ValueError, match="line 1 is not a JSON record"):
        load_run(tmp_path)


def test_missing_metrics_name_the_folder(tmp_path):
    with pytest.raises(ValueError, match=r"has no metrics\.jsonl; give the run_dir"):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "versions.json", "summary.json"])
@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_damaged_companions_name_the_file(tmp_path, name, text):
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 0, "a/b": 1}) + "\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=name):
        load_run(tmp_path)
