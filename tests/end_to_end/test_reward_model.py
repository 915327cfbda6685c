"""A critic from a reward model, as a user gets there: train, judge, train again."""

import pathlib
import shutil

import pytest

from tests.end_to_end import command
from tests.end_to_end.test_train import assert_same_run

pytestmark = pytest.mark.slow

# Sums of three numbers that the cold start guesses or works out: part of what there is
# to know about an answer can be seen along the way.
TASK = (
    "--config.data.task_options="
    '{"operators": "+", "max_operand": 4, "terms": 3, "guesses": 4, "count": 400}',
    "--config.rollout.max_completion_tokens=16",
    "--config.rollout.num_generations=8",
    "--config.batch.prompts_per_step=32",
    "--config.warmup.steps=200",
    "--config.warmup.batch_size=32",
    "--config.evaluation.prompts=0",
    "--config.evaluation.num_generations=8",
)
CRITIC = (
    "--config.objective=tulu3",
    # Cut completions earn what the verifier says, as in the data of the reward model.
    "--config.objective.replace_unfinished=False",
    "--config.objective.unfinished_reward=-10",
    "--config.critic.learning_rate=1e-3",
)


def judged(target, output, *flags: str) -> str:
    """Trains a reward model and returns what was printed."""
    words = ["launch.reward_model", f"--checkpoint={target}", f"--output={output}"]
    process = command.launch([*words, *flags], f"{output}.log")
    code = process.wait(timeout=600)
    printed = pathlib.Path(f"{output}.log").read_text()
    assert code == 0, printed
    return printed


def first_step(run_dir) -> dict:
    return next(m for m in command.metrics(run_dir) if "reward/mean" in m)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A cold start in `start`, reward models of its completions in `end`, `tokens`."""
    folder = tmp_path_factory.mktemp("reward_model")
    command.run(folder / "start", *TASK, "--config.steps=0")
    for predict in ("end", "tokens"):
        printed = judged(
            folder / "start",
            folder / predict,
            f"--predict={predict}",
            "--n=16",
            "--prompts=400",
            "--epochs=4",
            "--learning_rate=1e-3",
        )
        print(printed)
    return folder


def test_values_at_step_0_from_a_reward_model_and_from_zero(folder):
    """OBJ-04"""
    for name in ("", "end", "tokens"):
        path = f"--config.critic.path={folder / name if name else ''}"
        run_dir = folder / f"from-{name or 'zero'}"
        command.run(run_dir, *TASK, *CRITIC, path, "--config.steps=1")
        found = first_step(run_dir)
        print(name, {k: v for k, v in found.items() if k.startswith("critic/")})
        print(found["advantage/abs_mean"], found["pass_rate/mean"])


def test_a_run_goes_on_without_the_reward_model(folder, tmp_path):
    """OBJ-04: the critic is in the checkpoint; its start is not read again."""
    copy = shutil.copytree(folder / "end", tmp_path / "copy")
    flags = (*TASK, *CRITIC, f"--config.critic.path={copy}")
    command.run(tmp_path / "whole", *flags, "--config.steps=3")
    command.run(tmp_path / "stopped", *flags, "--config.steps=1")
    shutil.rmtree(copy)
    command.run(tmp_path / "stopped", *flags, "--config.steps=3")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_another_architecture_is_refused_before_step_0(folder, tmp_path):
    printed = command.run(
        tmp_path / "run",
        *TASK,
        *CRITIC,
        f"--config.critic.path={folder / 'end'}",
        "--config.model.hidden_size=64",
        expect=2,
    )
    assert printed.count("error: ") == 1, printed
    assert "Traceback" not in printed, printed
    assert "is not of the policy's architecture: hidden_size 32 against 64" in printed
    assert "cold start" not in printed
