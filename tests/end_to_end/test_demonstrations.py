"""Traces of a teacher, verified, imitated by a student: the commands of a user."""

import json
import re

import pytest

from launch import evaluate, report, sweep
from rlvr_jax.analysis.counts import read_counts
from rlvr_jax.config import ModelConfig, WarmupConfig
from rlvr_jax.ignored import NEW_MODEL
from tests.end_to_end import command

pytestmark = pytest.mark.slow

SUMS = {"operators": "+", "max_operand": 4, "count": 40}
SIZES = ("--config.rollout.max_completion_tokens=12", "--config.logging.report=False")
SHAPE = ("--config.model.hidden_size=64", "--config.model.num_layers=2")
LEARNING = "--config.warmup.learning_rate=3e-3"
DEFAULT_SHAPE = [f"--config.model.{f}={getattr(ModelConfig(), f)}" for f in NEW_MODEL]
NO_WARMUP = [
    f"--config.warmup.{f}={getattr(WarmupConfig(), f)}"
    for f in ("steps", "batch_size", "learning_rate")
]


def options(**more):
    return f"--config.data.task_options={json.dumps(SUMS | more)}"


def scores(run, problems):
    """(pass@1, share in a box) on these problems, 8 completions each."""
    output = run.with_suffix(".counts.jsonl")
    asked = ["--checkpoint", str(run), "--data", str(problems), "--n", "8"]
    evaluate.main([*asked, "--texts", "--output", str(output), "--json"])
    counts = read_counts(output)
    texts = [text for problem in counts for text in problem.completions]
    boxed = [r"\boxed{" in text for text in texts]
    return sum(p.rate for p in counts) / len(counts), sum(boxed) / len(boxed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`teacher`, which boxes right sums; `base`, a student that guesses bare numbers;
    `solved.jsonl`, what the teacher wrote and the verifier accepted."""
    folder = tmp_path_factory.mktemp("demonstrations")
    taught = (options(boxed=True), "--config.warmup.steps=300", LEARNING)
    command.run(folder / "teacher", "--config.steps=0", *SIZES, *SHAPE, *taught)
    guesses = (options(guesses=10), "--config.warmup.steps=60", LEARNING)
    command.run(
        folder / "base", "--config.steps=0", "--config.seed=1", *SIZES, *SHAPE, *guesses
    )
    words = ["launch.demonstrate", f"--checkpoint={folder / 'teacher'}", "--n=4"]
    words += [f"--output={folder / 'solved.jsonl'}", "--per_problem=2"]
    log = folder / "demonstrate.log"
    assert command.launch(words, str(log)).wait(timeout=600) == 0, log.read_text()
    return folder


def test_the_rows_are_what_was_verified(folder):
    """REC-06: every solution of every row ends in the sum, worked out here; none comes
    twice, no problem has more than two; the counts printed are those of the file."""
    rows = [json.loads(x) for x in (folder / "solved.jsonl").read_text().splitlines()]
    for row in rows:
        left, right = re.fullmatch(r"(\d+) \+ (\d+) =", row["question"]).groups()
        solutions = row["meta"]["solutions"]
        boxes = [re.search(r"\\boxed\{(\d+)\}$", text) for text in solutions]
        assert [box and int(box[1]) for box in boxes] == [int(left) + int(right)] * len(
            boxes
        )
        assert 1 <= len(set(solutions)) == len(solutions) <= 2
    printed = (folder / "demonstrate.log").read_text()
    kept = sum(len(row["meta"]["solutions"]) for row in rows)
    assert f"kept {kept} solutions of {len(rows)}" in printed
    completions, correct = map(
        int, re.search(r"(\d+) completions, (\d+) correct", printed).groups()
    )
    assert kept <= correct <= completions
    assert len(rows) > 5


def test_a_cold_start_brings_loss_down_and_format_up(folder, tmp_path, capsys):
    """REC-05, REC-08, SFT-11: a student that never boxed anything, tuned on the rows
    before any RL: the loss falls to a quarter or less, the share of boxed answers goes
    from 0 to above 90 %. At as many completions, 3,200, RL from the same base on
    the same problems ends at least 20 points below it, and boxes nothing."""
    rows, given = (
        folder / "solved.jsonl",
        f"--config.model.path={folder / 'base/model'}",
    )
    common = [*SIZES, *DEFAULT_SHAPE, given, f"--config.data.train={rows}"]
    common += ["--config.data.task_options={}", "--config.seed=2"]
    by_traces, by_rewards = tmp_path / "by_traces", tmp_path / "by_rewards"
    tuned = ("--config.warmup.steps=200", "--config.steps=0", LEARNING)
    printed = command.run(by_traces, *common, *tuned)
    first, last = re.search(r"loss ([\d.]+) -> ([\d.]+)", printed).groups()
    assert float(last) < float(first) / 4
    command.run(by_rewards, *common, *NO_WARMUP, "--config.steps=100")
    base, traces, rewards = (
        scores(run, rows) for run in (folder / "base", by_traces, by_rewards)
    )
    assert base[1] == 0.0
    assert traces[1] > 0.9
    assert rewards[1] == 0.0
    assert traces[0] > rewards[0] + 0.2 > base[0] - 0.1
    capsys.readouterr()
    files = [str(run.with_suffix(".counts.jsonl")) for run in (by_rewards, by_traces)]
    evaluate.main(["--counts", *files])
    table = capsys.readouterr().out
    apart = 100 * (traces[0] - rewards[0])
    assert f"│ {apart:+.1f} [" in table.replace("│  ", "│ ")
    assert "gain" in table


RECIPE = """
from rlvr_jax.config import ModelConfig, WarmupConfig
from tests.end_to_end import tiny_recipe


def get_config():
    config = tiny_recipe.get_config()
    config.steps = 4
    config.model, config.warmup = ModelConfig(path={path!r}), WarmupConfig()
    config.rollout.max_completion_tokens = 12
    config.logging.report = False
    return config
"""


def test_the_four_arms_of_the_distillation_sweep_run(folder, capsys, monkeypatch):
    """SFT-17: RL, distillation, on-policy distillation and both, from the student of
    this folder, at four steps' worth of completions each; the table has a score of
    every arm, and the cold start of one is as many solutions as RL has completions."""
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    recipe = folder / "recipe.py"
    recipe.write_text(RECIPE.format(path=str(folder / "base" / "model")))
    output = folder / "sweep"
    words = ["--config=configs/sweeps/distillation.py", f"--base={recipe}"]
    assert sweep.main([*words, f"--output={output}", "--seeds=0"]) == 0
    capsys.readouterr()
    report.main([str(output), "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == [
        "RL",
        "distillation",
        "on-policy distillation",
        "distillation, then RL",
    ]
    assert all(row["seeds"] == 1 and 0 <= row["mean"] <= 100 for row in rows)
    config = json.loads((output / "distillation" / "seed0" / "config.json").read_text())
    assert config["warmup"]["steps"] * config["warmup"]["batch_size"] == 4 * 8 * 4
    assert config["steps"] == 0
