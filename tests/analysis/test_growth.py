"""Length, reflection and accuracy of a run, and what acts on length."""

import json

import jax
import numpy as np
import pytest

from launch import report
from rlvr_jax import config as settings
from rlvr_jax.analysis.growth import growth
from rlvr_jax.analysis.runs import load_run
from rlvr_jax.toys import lengths
from rlvr_jax.train import metrics

REFLECTS, PLAIN = "7\nWait, let me recheck it.\n7", "7"


def write_run(folder, curves, *, shares=(), **objective):
    """A run with these metrics at steps 0, 1, ..., and four completions at some."""
    folder.mkdir(parents=True)
    resolved = settings.Config(run_dir=str(folder), steps=len(curves["pass_rate/mean"]))
    resolved.objective = settings.Objective(**objective)
    settings.save(resolved, folder / "config.json")
    with metrics.RunWriter(folder, tensorboard=False, resume_step=0) as writer:
        for step in range(resolved.steps):
            writer.metrics(step, {name: float(c[step]) for name, c in curves.items()})
        for place, share in enumerate(shares):
            rows = [
                {
                    "completion": REFLECTS if i < share else PLAIN,
                    "tokens": 20 if i < share else 2,
                    "verdict": "correct" if i < share else "wrong",
                }
                for i in range(4)
            ]
            writer.completions(10 * place, rows)
    return load_run(folder)


def test_three_planted_curves(tmp_path):
    """REC-03: 0, 1, 2, 3 of four completions reflect, are right and have 20 tokens,
    ten steps apart: a share of 1/40 a step; metrics rise by .5 tokens and .02 a step,
    and nothing in the settings acts on length."""
    steps = np.arange(31.0)
    curves = {"completion/length_mean": 2 + 0.5 * steps}
    curves |= {"pass_rate/mean": 0.1 + 0.02 * steps}
    run = write_run(
        tmp_path / "a", curves, shares=range(4), loss_aggregation="token_mean"
    )
    found = growth(run)
    assert found.paid == []
    assert [one.step for one in found.logged] == [0, 10, 20, 30]
    assert [one.reflection for one in found.logged] == [0, 0.25, 0.5, 0.75]
    assert [one.accuracy for one in found.logged] == [0, 0.25, 0.5, 0.75]
    assert [one.tokens for one in found.logged] == [2, 6.5, 11, 15.5]
    values = {name: slope.value for name, slope in found.slopes.items()}
    expected = {"length": 0.5, "accuracy": 0.02, "reflection": 0.025}
    assert values == pytest.approx(expected)
    assert all(slope.grows for slope in found.slopes.values())


def test_wrong_answers_grow_where_their_length_divides_them(tmp_path):
    """REC-03 with its control: means over 64 seeds of the toy of lengths (no length is
    ever paid) under the sequence mean and under a constant: the report names the first
    as acting on length, and wrong answers grow there 5 times as fast or more."""
    found = {}
    for mode, scale, rate in (
        ("sequence_mean", "group", 0.3),
        ("constant", "none", 1.0),
    ):
        recipe = lengths.Recipe(mode, scale, learning_rate=rate, updates=60)
        trace = lengths.train(jax.random.split(jax.random.key(0), 64), recipe)
        accuracy, right, wrong = (np.asarray(each).mean(0) for each in trace)
        curves = {"completion/length_wrong": wrong, "completion/length_correct": right}
        curves |= {"pass_rate/mean": accuracy}
        run = write_run(tmp_path / mode, curves, loss_aggregation=mode)
        found[mode] = growth(run)
    biased, control = found["sequence_mean"], found["constant"]
    assert [text.partition(":")[0] for text in biased.paid] == [
        "objective.loss_aggregation=sequence_mean"
    ]
    assert control.paid == []
    name = "length of wrong answers"
    assert biased.slopes[name].grows
    assert biased.slopes[name].value > 5 * abs(control.slopes[name].value)
    assert all(each.slopes["accuracy"].grows for each in found.values())


def test_a_step_without_wrong_answers_says_nothing_of_their_length(tmp_path):
    """The metric is 0 there: lengths 4, 5, 6, none, 8 rise by 1 a step all the same;
    with the 0 least squares would have .3."""
    wrong = np.array([4.0, 5.0, 6.0, 0.0, 8.0])
    curves = {"pass_rate/mean": np.full(5, 0.5), "completion/length_wrong": wrong}
    found = growth(write_run(tmp_path / "a", curves))
    assert found.slopes["length of wrong answers"].value == pytest.approx(1.0)


def test_settings_that_act_on_length_are_named(tmp_path):
    curves = {"pass_rate/mean": np.zeros(3), "completion/length_correct": np.zeros(3)}
    objective = {"length_reward_weight": 0.5, "overlong_buffer_tokens": 4}
    run = write_run(tmp_path / "a", curves, loss_aggregation="token_mean", **objective)
    run.config["reward"]["parts"] = "answer if ended, -10*truncated"
    assert [text.partition(":")[0] for text in growth(run).paid] == [
        "objective.length_reward_weight",
        "objective.overlong_buffer_tokens",
        "reward.parts",
    ]
    # No step had a right answer: there is no length of such.
    assert "length of right answers" not in growth(run).slopes


def test_the_command_prints_them(tmp_path, capsys):
    curves = {"pass_rate/mean": np.linspace(0, 1, 21)}
    run = write_run(tmp_path / "a", curves, shares=(0, 2, 4))
    report.main(["--growth", str(run.path)])
    printed = capsys.readouterr().out
    assert "50 %" in printed
    assert "accuracy: +0.0500 +- 0.0000 per step" in printed
    assert "reflection: +0.0500" in printed
    report.main(["--growth", str(run.path), "--json"])
    row = json.loads(capsys.readouterr().out)
    assert row["slopes"]["accuracy"][0] == pytest.approx(0.05)
    with pytest.raises(SystemExit):
        report.main(["--growth", "--plateau", str(run.path)])
    assert "not beside --plateau" in capsys.readouterr().err
