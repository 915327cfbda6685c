"""Published pipelines as commands, and run at the smallest size."""

import json
import pathlib
import shlex
import sys

import pytest

from launch import cells, pipeline
from rlvr_jax.config import Config, ModelConfig
from rlvr_jax.validate import validate
from tests.end_to_end.tiny_recipe import get_config
from tests.launch.test_sweep import changed

TINY = "tests/end_to_end/tiny_recipe.py"


def run(*arguments):
    return pipeline.main(["--config", TINY, *map(str, arguments)])


def planned(capsys, tmp_path, name, *arguments):
    """Stage -> its flags as name -> value, and the words of its demonstrations."""
    assert run("--pipeline", name, "--output", tmp_path, "--dry-run", *arguments) == 0
    found = {}
    for line in capsys.readouterr().out.splitlines():
        stage, _, commands = line.partition(": ")
        *before, train = commands.split(" && ")
        words = [word.removeprefix("--config.") for word in shlex.split(train)]
        flags = dict(word.partition("=")[::2] for word in words)
        found[stage] = flags, shlex.split(before[0]) if before else []
    return found


def test_r1_in_order_its_third_stage_from_the_base(capsys, tmp_path):
    """REC-04: cold start, RL, SFT of the BASE again, RL of that; the rows of the third
    come from the second."""
    stages = planned(capsys, tmp_path, "r1")
    base, cold, reasoning, sampled, last = stages
    assert [base, cold, reasoning] == ["base", "cold-start", "reasoning-rl"]
    assert [sampled, last] == ["rejection-sampling", "all-scenarios"]
    starts = [flags.get("model.path") for flags, _ in stages.values()]
    models = [None, "base", "cold-start", "base", "rejection-sampling"]
    assert starts == [m and str(tmp_path / m / "model") for m in models]
    assert [flags.get("steps") for flags, _ in stages.values()] == [
        *("0", "0", None, "0", None)
    ]
    flags, words = stages[sampled]
    assert words[words.index("--checkpoint") + 1] == str(tmp_path / reasoning)
    assert words[words.index("--output") + 1] == flags["data.train"]
    assert "--modes" not in words
    assert stages[last][0]["reward.parts"] == "answer, format:think_answer, language"


def test_qwen3_each_stage_from_the_one_before(capsys, tmp_path):
    """REC-12: cold start, reasoning RL, fusion of both modes, general RL."""
    stages = planned(capsys, tmp_path, "qwen3", "--preference=0.5*judge")
    names = list(stages)
    starts = [flags.get("model.path") for flags, _ in stages.values()]
    assert starts == [None, *(str(tmp_path / name / "model") for name in names[:-1])]
    assert "--modes" in stages["thinking-mode-fusion"][1]
    assert stages["general-rl"][0]["reward.parts"].endswith("answer, 0.5*judge")


def test_settings_reach_the_stages_that_read_them(capsys, tmp_path):
    flags = ("--config.steps=3", "--config.warmup.steps=7", "--config.data.shuffle=no")
    stages = planned(capsys, tmp_path, "r1", *flags)
    steps = [flags.get("steps") for flags, _ in stages.values()]
    assert steps == ["0", "0", "3", "0", "3"]
    warm = [flags["warmup.steps"] for flags, _ in stages.values()]
    assert warm == ["0", "7", "0", "7", "0"]
    assert all(flags["data.shuffle"] == "no" for flags, _ in stages.values())


def test_a_model_that_is_there_is_the_base():
    base = Config(model=ModelConfig(path="models/base"))
    folder = pathlib.Path("runs/x")
    (only,) = pipeline.plan(pipeline.PIPELINES["r1_zero"], base, folder, {})
    assert only.cell.run_dir == folder / "reasoning-rl"
    assert "--config.model.path=models/base" in only.cell.flags


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config.warmup.steps=0"], "give --config.warmup.steps=N"),
        (["--config.warmpu.steps=3"], "did you mean warmup.steps?"),
        (["--steps=3"], "unexpected argument '--steps=3'"),
    ],
)
def test_faults_are_named(arguments, message, capsys, tmp_path):
    assert run("--pipeline", "r1", "--output", tmp_path, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_another_pipeline_in_the_same_folder_is_refused(capsys, tmp_path):
    (tmp_path / "pipeline.json").write_text(json.dumps(["other"]))
    assert run("--pipeline", "r1", "--output", tmp_path) == 2
    assert "choose another --output" in capsys.readouterr().err


@pytest.mark.parametrize("name", pipeline.PIPELINES)
def test_training_accepts_the_settings_of_every_stage(name, tmp_path):
    """As launch.train checks them, what a stage would not read included."""
    stages = pipeline.PIPELINES[name]
    for job in pipeline.plan(stages, get_config(), tmp_path, {"steps": 3}):
        validate(changed(get_config(), job.cell.flags))


# Leaves what a run leaves and says that it ran; fails where the stage is `broken`.
STAND_IN = """
import json, pathlib, sys
*_, word = sys.argv
out = pathlib.Path(word.partition("=")[2] or word)
with (out.parent / "calls").open("a") as calls:
    calls.write(out.name + " ")
if (out.parent / "broken").is_file() and out.name == "rejection-sampling":
    sys.exit(3)
if "jsonl" in out.name:
    out.write_text("{}")
else:
    out.mkdir()
    (out / "summary.json").write_text(json.dumps({"finished": True}))
"""


def test_stages_run_in_order_once_and_go_on_where_one_failed(tmp_path, monkeypatch):
    """REC-04: one command runs them all; none after a failed one, none twice."""
    script, folder = tmp_path / "stand_in.py", tmp_path / "out"
    script.write_text(STAND_IN)

    def train(recipe, cell):
        return [sys.executable, "-I", str(script), f"--run_dir={cell.run_dir}"]

    def demonstrate(job, output):
        return [sys.executable, "-I", str(script), str(output)]

    monkeypatch.setattr(cells, "command", train)
    monkeypatch.setattr(pipeline, "_demonstrate", demonstrate)
    folder.mkdir()
    (folder / "broken").touch()
    words = ("--pipeline", "r1", "--output", folder)
    assert run(*words) == 1
    rows = ".rejection-sampling.jsonl.new"
    first = ["base", "cold-start", "reasoning-rl", rows, "rejection-sampling"]
    assert (folder / "calls").read_text().split() == first
    (folder / "broken").unlink()
    assert run(*words) == 0
    everything = [*first, "rejection-sampling", "all-scenarios"]
    assert (folder / "calls").read_text().split() == everything
    assert run(*words) == 0
    assert (folder / "calls").read_text().split() == everything


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r1", "qwen3"])
def test_a_pipeline_runs_and_is_not_run_again(name, capfd, tmp_path, monkeypatch):
    """REC-04, REC-12: all stages by one command; the second time none."""
    monkeypatch.setenv("XLA_FLAGS", "")  # one device, unlike the tests' process
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    words = ("--pipeline", name, "--output", tmp_path, "--config.steps=1")
    # Room for " /no_think" and the empty block of an answer without thoughts.
    words += ("--config.data.max_prompt_tokens=32",)
    words += ("--config.rollout.max_completion_tokens=32",)
    assert run(*words) == 0, capfd.readouterr().out
    folders = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert len(folders) == 5
    assert all((path / "model" / "model.safetensors").is_file() for path in folders)
    capfd.readouterr()
    assert run(*words) == 0
    assert capfd.readouterr().out.count("finished before") == 5
