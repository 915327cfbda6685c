"""A critic from a reward model, as a user gets there: train, judge, train again."""

import pathlib
import shutil

import pytest

from tests.end_to_end import command
from tests.end_to_end.test_train import assert_same_run

pytestmark = pytest.mark.slow

SHORT = (
    "--config.evaluation.prompts=0",
    "--config.evaluation.num_generations=8",
    "--config.logging.report=False",
)
CRITIC = (
    "--config.objective=tulu3",
    # Cut completions earn what the verifier says, as in the reward model's data.
    "--config.objective.replace_unfinished=False",
    "--config.critic.learning_rate=1e-3",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A cold start in `start`, and in `scores` a reward model of its completions."""
    folder = tmp_path_factory.mktemp("reward_model")
    command.run(folder / "start", *SHORT, "--config.steps=0")
    words = ["launch.reward_model", "--predict=tokens", "--n=16", "--prompts=40"]
    words += [f"--checkpoint={folder / 'start'}", f"--output={folder / 'scores'}"]
    log = folder / "scores.log"
    trained = command.launch(
        [*words, "--epochs=8", "--batch_size=32", "--learning_rate=3e-3"], str(log)
    )
    assert trained.wait(timeout=900) == 0, log.read_text()
    assert "held out: " in log.read_text()
    return folder


def first_step(run_dir: pathlib.Path) -> dict:
    return next(m for m in command.metrics(run_dir) if "reward/mean" in m)


def test_a_run_starts_its_critic_from_a_reward_model(folder, tmp_path):
    """OBJ-04, whole: beside one from zero on the same completions; and it goes on after
    the reward model is gone, as the critic is in the checkpoint."""
    copy = shutil.copytree(folder / "scores", tmp_path / "copy")
    flags = (*SHORT, *CRITIC, f"--config.critic.path={copy}")
    command.run(tmp_path / "whole", *flags, "--config.steps=3")
    command.run(tmp_path / "stopped", *flags, "--config.steps=1")
    shutil.rmtree(copy)
    command.run(tmp_path / "stopped", *flags, "--config.steps=3")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")

    command.run(tmp_path / "zero", *SHORT, *CRITIC, "--config.steps=1")
    zero, scores = first_step(tmp_path / "zero"), first_step(tmp_path / "whole")
    assert scores["critic/return_mean"] == zero["critic/return_mean"]
    assert zero["critic/value_mean"] == 0
    assert zero["critic/explained_variance"] == 0
    assert zero["critic/bias_first"] < 0
    # Nearer to the return than 0 is, along the whole completion.
    for part in ("critic/bias_first", "critic/bias_last"):
        assert abs(scores[part]) < abs(zero[part])


def test_another_architecture_is_refused_before_step_0(folder, tmp_path):
    """OBJ-04"""
    printed = command.run(
        tmp_path / "run",
        *CRITIC,
        f"--config.critic.path={folder / 'scores'}",
        "--config.model.hidden_size=64",
        expect=2,
    )
    assert printed.count("error: ") == 1, printed
    assert "Traceback" not in printed, printed
    assert "is not of the policy's architecture: hidden_size 32 against 64" in printed
    assert "cold start" not in printed
