"""The eight-point checklist: a healthy run, and one planted fault per point."""

import json

import pytest

from launch import report
from rlvr_jax import config as settings
from rlvr_jax.analysis.plateau import (
    ABNORMAL,
    NORMAL,
    UNKNOWN,
    checklist,
    first_abnormal,
    reward_is_flat,
)
from rlvr_jax.analysis.runs import load_run
from rlvr_jax.train import metrics

STEPS = 50
HEALTHY = {
    "reward/mean": 0.5,
    "advantage/zero_share": 0.3,
    "pass_rate/mean": 0.5,
    "pass_rate/all_correct": 0.2,
    "pass_rate/all_wrong": 0.1,
    "clip/low": 0.002,
    "clip/high": 0.004,
    "clip/probability_bin_1": 0.01,
    "clip/probability_bin_5": 0.004,
    "completion/truncated_share": 0.02,
    "completion/length_mean": 100.0,
    "entropy/mean": 0.4,
    "entropy/covariance": 0.01,
    "mismatch/kl": 1e-5,
    "mismatch/abs_logprob_mean": 1e-3,
    "audit/gap": 0.01,
    "verifier/timeout": 0.0,
    "verifier/crash": 0.0,
    "verifier/unparseable": 0.05,
    "kl/reference": 0.02,
}
FAULTS = {
    1: {"advantage/zero_share": 0.8},
    2: {"pass_rate/all_wrong": 0.48, "advantage/zero_share": 0.48},
    3: {"clip/probability_bin_1": 0.3},
    4: {"completion/truncated_share": 0.35},
    5: {"entropy/mean": 0.01},
    6: {"mismatch/kl": 0.05},
    7: {"audit/gap": 0.3},
    8: {"kl/reference": 2.0},
}
"""By point: what is wrong in the second half of the run. All groups unsolvable is
checked before (1); 48 % of one kind is within its limit, so that (2) is seen alone."""


def written(folder, faults, *, without=()):
    """A run whose metrics are healthy, and then are not."""
    folder.mkdir()
    config = settings.Config(run_dir=str(folder))
    config.objective.beta = 0.01
    settings.save(config, folder / "config.json")
    with metrics.RunWriter(folder, tensorboard=False, resume_step=0) as writer:
        for step in range(STEPS):
            late = faults if step >= STEPS // 2 else {}
            values = HEALTHY | late
            writer.metrics(step, {k: v for k, v in values.items() if k not in without})
    return load_run(folder)


def test_a_healthy_run_passes(tmp_path):
    """DIAG-10."""
    findings = checklist(written(tmp_path / "run", {}))
    assert [one.point for one in findings] == list(range(1, 9))
    assert {one.state for one in findings} == {NORMAL}
    assert first_abnormal(findings) is None


@pytest.mark.parametrize("point", FAULTS)
def test_the_planted_fault_is_named(tmp_path, point):
    """DIAG-01 to DIAG-05, DIAG-07 to DIAG-10: eight runs, one fault each."""
    findings = checklist(written(tmp_path / "run", FAULTS[point]))
    found = first_abnormal(findings)
    assert found is not None
    assert found.point == point
    assert found.advice
    assert [one.point for one in findings if one.state == ABNORMAL] == [point]


def test_the_first_of_several_is_named(tmp_path):
    """DIAG-10: in the order of the checklist, which is that of cause before symptom."""
    both = FAULTS[8] | FAULTS[4] | FAULTS[5]
    findings = checklist(written(tmp_path / "run", both))
    assert [one.point for one in findings if one.state == ABNORMAL] == [4, 5, 8]
    assert first_abnormal(findings).point == 4


@pytest.mark.parametrize(
    ("faults", "point"),
    [
        ({"pass_rate/mean": 0.97}, 2),
        ({"clip/low": 0.2}, 3),
        ({"completion/length_mean": 240.0}, 4),
        ({"entropy/mean": 4.0}, 5),
        ({"mismatch/abs_logprob_mean": 0.2}, 6),
        ({"verifier/crash": 0.1}, 7),
        ({"verifier/unparseable": 0.6}, 7),
    ],
)
def test_other_signs_of_the_same_points(tmp_path, faults, point):
    """DIAG-10."""
    findings = checklist(written(tmp_path / "run", faults))
    assert [one.point for one in findings if one.state == ABNORMAL] == [point]


def test_what_is_not_logged_is_not_normal(tmp_path):
    """Without an audit nobody has looked at the verifier."""
    findings = checklist(written(tmp_path / "run", {}, without=("audit/gap",)))
    assert [one.point for one in findings if one.state == UNKNOWN] == [7]
    assert "audit.verifier" in findings[6].advice
    bare = checklist(
        written(tmp_path / "bare", {}, without=set(HEALTHY) - {"reward/mean"})
    )
    assert {one.state for one in bare} == {UNKNOWN}


def test_limits_can_be_changed(tmp_path):
    run = written(tmp_path / "run", {})
    strict = checklist(run, {"zero_share": 0.2})
    assert first_abnormal(strict).point == 1
    with pytest.raises(ValueError, match="no limit 'zero'"):
        checklist(run, {"zero": 0.2})


def test_a_flat_reward_and_a_rising_one(tmp_path):
    assert reward_is_flat(written(tmp_path / "flat", {}))
    run = written(tmp_path / "rising", {})
    run.metrics["reward/mean"].values[:] = range(STEPS)
    assert reward_is_flat(run) is False
    assert (
        reward_is_flat(written(tmp_path / "none", {}, without=("reward/mean",))) is None
    )


def test_the_command_names_it(tmp_path, capsys):
    """DIAG-10."""
    written(tmp_path / "run", FAULTS[3])
    report.main(["--plateau", str(tmp_path / "run")])
    printed = capsys.readouterr().out
    assert "run: reward flat over the second half" in printed
    assert "mend first: 3. clipping by probability: rare tokens cannot grow" in printed
    with pytest.raises(SystemExit):
        report.main(["--plateau", str(tmp_path / "run"), "--output", "page.html"])
    assert "--output: --plateau prints" in capsys.readouterr().err
    report.main(["--plateau", "--json", str(tmp_path / "run")])
    row = json.loads(capsys.readouterr().out)
    assert (row["first"], row["reward_is_flat"]) == (3, True)
    assert len(row["findings"]) == 8
    with pytest.raises(SystemExit, match="has no metrics"):
        report.main(["--plateau", str(tmp_path)])


def test_the_page_has_the_checklist(tmp_path):
    """DIAG-10: open where something is abnormal, else folded."""
    written(tmp_path / "run", FAULTS[3])
    report.main([str(tmp_path / "run")])
    page = (tmp_path / "run" / "report.html").read_text()
    assert '<details class="card below" open><summary>Checklist' in page
    assert "30.0% of the least likely ones" in page
