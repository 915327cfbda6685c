"""The command that runs a sweep, with a stand-in for training that takes no time."""

import copy
import importlib.util
import itertools
import json
import pathlib
import sys

import pytest

from launch import cells, report, sweep
from rlvr_jax import sweeps
from rlvr_jax.config import Config
from rlvr_jax.sweeps import Row, Sweep
from rlvr_jax.validate import validate

ROOT = pathlib.Path(__file__).parents[2]
ABLATION = "configs/sweeps/dapo_ablation.py"
CISPO = "configs/sweeps/cispo.py"

# Writes what a run leaves, with a score of its top_p; fails where top_k is 13.
STAND_IN = """
import json, os, pathlib, signal, sys, time
flags = dict(a[2:].split("=", 1) for a in sys.argv[1:])
folder = pathlib.Path(flags["config.run_dir"])
folder.mkdir(parents=True, exist_ok=True)
with (folder / "calls").open("a") as calls:
    calls.write("x")
if flags.get("config.rollout.top_k") == "13":
    print("this cell is broken")
    sys.exit(3)
if flags.get("config.rollout.top_k") == "14":
    os.kill(os.getppid(), signal.SIGTERM)  # as a scheduler does to the sweep
    time.sleep(60)
score = float(flags.get("config.rollout.top_p", 0.5)) + int(flags["config.seed"]) / 100
lines = [{"step": 0, "reward/mean": score}, {"step": 1, "reward/mean": score}]
(folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\\n" for x in lines))
seen = {"pass@1": [score, 0, 1]}
summary = {"finished": True, "seconds": 1, "steps": 2}
summary["eval"] = {"before": {"pass@1": [0.1, 0, 1]}, "after": seen}
(folder / "summary.json").write_text(json.dumps(summary))
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)

    def command(recipe, cell):
        return [sys.executable, "-I", str(script), *cell.flags]

    monkeypatch.setattr(cells, "command", command)
    return tmp_path / "out"


def run(folder, *arguments, config="tests/end_to_end/tiny_recipe.py"):
    return sweep.main([f"--config={ROOT / config}", f"--output={folder}", *arguments])


def calls(folder):
    return {
        str(path.parent.relative_to(folder)): len(path.read_text())
        for path in sorted(folder.rglob("calls"))
    }


def module(path):
    spec = importlib.util.spec_from_file_location("sweep_file", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def changed(base: Config, flags) -> Config:
    """The settings of a cell, by the types that the recipe has them in."""
    for flag in flags:
        name, value = flag.removeprefix("--config.").split("=", 1)
        *path, last = name.split(".")
        section = base
        for part in path:
            section = getattr(section, part)
        now = getattr(section, last)
        kind = (lambda text: text == "true") if isinstance(now, bool) else type(now)
        setattr(section, last, kind(value))
    return base


def test_a_grid_runs_every_combination_and_its_table_has_the_scores(stand_in, capsys):
    grid = ["--grid=config.rollout.top_p=0.2,0.4", "--grid=rollout.top_k=0,1"]
    assert run(stand_in, *grid, "--seeds=0,1") == 0
    # One cold start per seed for all four rows, each run once.
    assert calls(stand_in) == {
        "start/shared/seed0": 1,
        "start/shared/seed1": 1,
        **{
            f"top-p={p}-top-k={k}/seed{s}": 1
            for p in ("0.2", "0.4")
            for k in (0, 1)
            for s in (0, 1)
        },
    }
    capsys.readouterr()
    report.main([str(stand_in), "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows][:2] == [
        "top_p=0.2 top_k=0",
        "top_p=0.2 top_k=1",
    ]
    first = rows[0]
    # Seeds score 20 and 21: mean 20.5, sd .7071, t(1 df, .975) = 12.706, over sqrt 2.
    assert first["seeds"] == 2
    assert first["mean"] == pytest.approx(20.5)
    assert first["high"] == pytest.approx(20.5 + 12.706 * 0.5, abs=1e-3)
    assert first["low"] == pytest.approx(20.5 - 12.706 * 0.5, abs=1e-3)
    assert first["paper"] is None
    assert rows[2]["change"] == pytest.approx([20.0, 20.0, 20.0])


def test_finished_cells_are_skipped_and_unfinished_ones_run_again(stand_in, capsys):
    grid = "--grid=rollout.top_p=0.2,0.4"
    assert run(stand_in, grid) == 0
    (stand_in / "top-p=0.4" / "seed0" / "summary.json").write_text(
        '{"finished": false}'
    )
    assert run(stand_in, grid) == 0
    assert calls(stand_in) == {
        "start/shared/seed0": 1,
        "top-p=0.2/seed0": 1,
        "top-p=0.4/seed0": 2,
    }
    assert "top-p=0.2/seed0: finished before" in capsys.readouterr().out


def test_a_failing_cell_stops_no_other(stand_in, capsys):
    assert run(stand_in, "--grid=rollout.top_k=13,0,1") == 1
    said = capsys.readouterr().out
    assert "top-k=13/seed0: FAILED with status 3" in said
    assert "this cell is broken" in said
    assert "not finished: top-k=13/seed0" in said
    assert "top-k=1/seed0: finished" in said
    report.main([str(stand_in)])
    table = capsys.readouterr().out
    assert "1 of 3 cells are not finished" in table


def test_on_sigterm_running_cells_end_and_no_other_begins(stand_in, capsys):
    grid = "--grid=rollout.top_k=14,0,1"
    assert run(stand_in, grid, "--processes=1") == 1
    assert calls(stand_in) == {"start/shared/seed0": 1, "top-k=14/seed0": 1}
    said = capsys.readouterr().out
    assert "top-k=14/seed0: stopped" in said
    assert "FAILED" not in said


def test_without_their_cold_start_cells_are_left_out(stand_in, capsys):
    # The start has the setting of all cells, and so fails as they would.
    assert run(stand_in, "--config.rollout.top_k=13", "--grid=steps=1,2") == 1
    assert calls(stand_in) == {"start/shared/seed0": 1}
    assert "left out, as start/shared/seed0 is not finished" in capsys.readouterr().out


def test_a_folder_is_not_mixed_with_another_sweep(stand_in, capsys):
    assert run(stand_in, "--grid=rollout.top_p=0.2") == 0
    assert run(stand_in, "--grid=rollout.top_p=0.2", "--config.steps=9") == 2
    assert "--config.steps=9" in capsys.readouterr().err
    # More seeds are no other sweep.
    assert run(stand_in, "--grid=rollout.top_p=0.2", "--seeds=0,1") == 0


def test_rows_are_chosen_by_name_or_by_a_part_of_it():
    rows = [Row("truth"), Row("truth, fresh"), Row("random, fresh")]

    def chosen(wanted):
        return [row.name for row in sweep._chosen(rows, wanted)]

    assert chosen("truth") == ["truth"]
    assert chosen("fresh") == ["truth, fresh", "random, fresh"]
    assert chosen("random,truth") == ["truth", "random, fresh"]


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--grid=objective.epsilon_hi=1,2", "did you mean objective.epsilon_high?"),
        ("--config.stepz=3", "unknown setting stepz"),
        ("--grid=steps", "NAME=VALUE"),
        ("--config.seed=3", "use --seeds"),
        ("--rows=nothing", "fits none of"),
    ],
)
def test_mistakes_are_named(stand_in, capsys, argument, said):
    assert run(stand_in, argument) == 2
    assert said in capsys.readouterr().err
    assert not stand_in.exists()


def test_each_row_of_the_ladder_adds_one_switch():
    """CLIP-07: the paper's order and figures, one change at a time."""
    file = module(ABLATION)
    rows = file.get_sweep(file.get_config()).rows
    # DAPO, https://arxiv.org/abs/2503.14476, table 1.
    assert [row.paper for row in rows] == [30, 36, 38, 41, 42, 50]
    differing = [
        {name for name in row.settings if row.settings[name] != before.settings[name]}
        for before, row in itertools.pairwise(rows)
    ]
    assert differing == [
        {"objective.overlong_filter"},
        {"objective.epsilon_high"},
        {"objective.overlong_buffer_tokens"},
        {"objective.loss_aggregation"},
        {"curriculum.filter"},
    ]
    # Of the paper's limit the buffer is 4,096 of 20,480 tokens.
    long = file.get_config()
    long.rollout.max_completion_tokens = 20_480
    last = file.get_sweep(long).rows[-1].settings
    assert last["objective.overlong_buffer_tokens"] == 4096


@pytest.mark.parametrize(
    "path",
    sorted(str(p.relative_to(ROOT)) for p in (ROOT / "configs/sweeps").glob("*")),
)
def test_every_cell_of_the_sweeps_is_valid(path, tmp_path):
    if not path.endswith(".py"):
        return
    file = module(path)
    base = file.get_config()
    plan = sweeps.plan(file.get_sweep(base), base, tmp_path)
    assert plan.starts or base.model.path
    for cell in [*plan.starts.values(), *plan.cells]:
        validate(changed(file.get_config(), cell.flags))


@pytest.mark.parametrize("path", [ABLATION, CISPO])
def test_the_rows_of_the_32b_recipe_are_valid(path, tmp_path):
    """Its buffer is the paper's 4,096 of 20,480 tokens; it has no cold start."""
    pod = "configs/dapo_qwen32b.py"
    base = module(pod).get_config()
    plan = sweeps.plan(module(path).get_sweep(base), base, tmp_path)
    assert not plan.starts
    for cell in plan.cells:
        validate(changed(module(pod).get_config(), cell.flags))
    assert "--config.objective.overlong_buffer_tokens=4096" in plan.cells[-1].flags


def test_arms_of_the_spurious_reward_study():
    """SPU-01 to SPU-05: what each arm pays, and the published gain beside it.

    Gains on MATH-500 with Qwen2.5-Math-7B, https://arxiv.org/abs/2506.10947: random
    rewards recover 21.4 / 29.1, about three quarters, of what the truth brings.
    """
    file = module("configs/sweeps/spurious_rewards.py")
    base = file.get_config()
    assert base.noise.pays == "verdict"
    arms = {row.role: row for row in file.get_sweep(base).rows}
    published = {
        "truth": (None, 29.1),
        "majority": ("majority", 27.1),
        "incorrect": ("incorrect", 24.1),
        "random": ("random", 21.4),
        "format": ("format", 13.8),
    }
    for role, (pays, gain) in published.items():
        assert arms[role].settings.get("noise.pays") == pays
        assert arms[role].paper == gain
    ratio = arms["random"].paper / arms["truth"].paper
    assert ratio == pytest.approx(0.735, abs=5e-4)
    # Each control differs from the random (or incorrect) arm by what it removes.
    removed = {
        role: dict(arms[role].settings.items() - arms[other].settings.items())
        for role, other in (
            ("clip_off", "random"),
            ("fresh", "random"),
            ("other_family", "random"),
        )
    }
    assert removed["clip_off"]["objective.surrogate"] == "ratio"
    assert set(removed["fresh"]) == {"data.evaluation"}
    assert all(name.startswith("model.") for name in removed["other_family"])
    checked = arms["incorrect"].settings.items() - arms["reverified"].settings.items()
    assert dict(checked) == {"noise.mislabelled_rate": 0.1}


def test_cispo_and_dapo_differ_in_the_loss_alone():
    """CLIP-17: and the table times both by their steps to DAPO's final score."""
    file = module(CISPO)
    for base in (file.get_config(), module("configs/dapo_qwen32b.py").get_config()):
        found = file.get_sweep(base)
        dapo, cispo = found.rows
        assert found.steps_to == dapo.name
        differ = {n for n in dapo.settings if dapo.settings[n] != cispo.settings[n]}
        assert differ == {
            "objective.surrogate",
            "objective.epsilon_low",
            "objective.epsilon_high",
        }
        assert set(dapo.settings) == set(cispo.settings)
        assert base.curriculum.filter == "dynamic"
        # MiniMax-M1 and DAPO: 16 updates per rollout batch.
        assert base.batch.minibatches_per_step == 16


@pytest.mark.parametrize("steps", [16, 7])
def test_rows_of_the_distillation_sweep_learn_from_equally_many_completions(steps):
    """SFT-17: rollouts of RL and solutions of the cold start, summed, are the same in
    each of the four rows; all begin from the student and are judged on its problems."""
    file = module("configs/sweeps/distillation.py")
    base = file.get_config()
    base.steps = steps
    seen = set()
    for row in file.get_sweep(base).rows:
        config = changed(copy.deepcopy(base), sweeps.flags_of(row.settings))
        rollouts = config.batch.prompts_per_step * config.rollout.num_generations
        warmup = config.warmup
        imitated = warmup.steps * warmup.batch_size if warmup.steps else 0
        seen.add(config.steps * rollouts + imitated)
        assert config.model.path == base.model.path
        assert (config.data.evaluation or config.data.train) == base.data.train
        assert (config.objective.advantage == "distillation") == bool(
            config.model.reference_path
        )
    assert seen == {steps * 32 * 8}


def test_a_row_to_be_timed_against_has_to_be_there(stand_in, capsys, tmp_path):
    text = (ROOT / CISPO).read_text().replace('steps_to="DAPO"', 'steps_to="DAP"')
    (tmp_path / "file.py").write_text(text)
    assert run(stand_in, config=tmp_path / "file.py") == 2
    assert "steps_to='DAP' is none of the file's rows" in capsys.readouterr().err


def test_one_axis_at_a_time():
    """REC-26: a grid whose rows each change exactly one setting of the base.

    The six axes are those that open replications isolated: context length, critic,
    domain, staging, sampling, normalisation.
    """
    axes = {
        "rollout.max_completion_tokens": ["512", "1024"],
        "objective.advantage": ["gae"],
        "data.train": ["task:countdown"],
        "curriculum.stages": ['[{"until": 5}, {}]'],
        "curriculum.filter": ["dynamic", "mask"],
        "objective.scale_rewards": ["none"],
    }
    rows = sweeps.one_axis_rows(axes)
    assert [dict(row.settings) for row in rows] == [
        {},
        *({name: value} for name, values in axes.items() for value in values),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "configs/quickstart.py"], "--grid NAME=A,B"),
        (
            ["--config", "configs/sweeps/dapo_ablation.py", "--grid", "steps=5,6"],
            "no room for the rows of configs/sweeps/dapo_ablation.py",
        ),
    ],
)
def test_one_axis_without_axes_or_beside_rows_is_refused(arguments, words, capsys):
    assert sweep.main([*arguments, "--one-axis", "--dry-run"]) == 2
    assert words in capsys.readouterr().err


def test_rows_that_change_the_model_have_their_own_cold_start(tmp_path):
    """SPU-06: a second family in the same sweep begins from weights of its own."""
    base = module("tests/end_to_end/tiny_recipe.py").get_config()
    rows = [
        Row("base"),
        Row("other", {"model.num_layers": 2}),
        Row("flag", {"objective.epsilon_high": 0.2}),
        Row("pretrained", {"model.path": "somewhere"}),
    ]
    plan = sweeps.plan(Sweep(rows, seeds=(0,)), base, tmp_path)
    assert [cell.start for cell in plan.cells] == [
        "start/shared/seed0",
        "start/other/seed0",
        "start/shared/seed0",
        "",
    ]
    own = dict(f.split("=", 1) for f in plan.starts["start/other/seed0"].flags)
    assert own["--config.model.num_layers"] == "2"
    assert own["--config.steps"] == "0"
    cell = dict(f.split("=", 1) for f in plan.cells[1].flags)
    assert cell["--config.model.path"].endswith("start/other/seed0/model")
    assert cell["--config.warmup.steps"] == "0"


@pytest.mark.slow
def test_cispo_against_dapo_at_the_smallest_size(tmp_path, capsys, monkeypatch):
    """CLIP-17: both rows run from one cold start, and the table has the steps of each:
    a row is at its own final score at its last evaluation, or before."""
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    settings = ("steps=4", "warmup.steps=30", "evaluation.every_steps=2")
    small = ("model.hidden_size=32", "model.num_layers=1", "model.intermediate_size=48")
    flags = [f"--config.{setting}" for setting in (*settings, *small)]
    flags += ["--config.batch.minibatches_per_step=4", "--seeds=0"]
    assert run(tmp_path / "out", *flags, config=CISPO) == 0
    capsys.readouterr()
    report.main([str(tmp_path / "out"), "--json"])
    dapo, cispo = map(json.loads, capsys.readouterr().out.splitlines())
    assert dapo["steps_to"] in (0, 2, 4)
    assert cispo["steps_to"] in (None, 0, 2, 4)
    report.main([str(tmp_path / "out")])
    assert "| steps to DAPO |" in capsys.readouterr().out


@pytest.mark.slow
def test_two_real_rows_from_one_cold_start(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")  # one device, unlike the tests' process
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    grid = "--grid=objective.epsilon_high=0.2,0.28"
    recipe = "tests/end_to_end/tiny_recipe.py"
    settings = ("--config.steps=2", "--config.warmup.steps=3")
    assert run(tmp_path / "out", grid, *settings, config=recipe) == 0
    capsys.readouterr()
    report.main([str(tmp_path / "out"), "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["seeds"] for row in rows] == [1, 1]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "epsilon_high=0.28" in page
    assert "<svg" in page
