"""What a command line makes of a recipe, and what it says when it cannot."""

import json
import pathlib
import subprocess
import sys

import pytest

from launch import flags
from rlvr_jax.config import Config, Objective, to_dict
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.validate import ConfigError

ROOT = pathlib.Path(__file__).parents[2]
SHOW = """
import json
from launch import flags
from rlvr_jax.config import to_dict
flags.run(lambda config: print(json.dumps(to_dict(config))))
"""
RECIPE = """
from rlvr_jax.config import Config
def get_config():
    return Config(steps=7, seed=3)
"""


@pytest.fixture
def show(tmp_path):
    """Runs a program that prints its settings; the recipe is `recipe.py`."""
    (tmp_path / "recipe.py").write_text(RECIPE)

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", SHOW, *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_flags_change_single_fields_of_a_recipe(show):
    """All other settings are the recipe's or the defaults."""
    done = show(
        "--config=recipe.py",
        "--config.steps=9",
        "--config.mesh.shape=(2,4,1)",
        "--config.mesh.rollout_shape=(1,1,8)",
        "--config.rollout.stop=('###',)",
        "--noconfig.data.shuffle",
        "--config.optimizer.learning_rate=2e-4",
    )
    expected = Config(steps=9, seed=3)
    expected.mesh.shape = (2, 4, 1)
    expected.mesh.rollout_shape = (1, 1, 8)
    expected.rollout.stop = ("###",)
    expected.data.shuffle = False
    expected.optimizer.learning_rate = 2e-4
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == to_dict(expected)


def test_a_preset_then_changes_of_its_fields(show):
    """GRPO has beta 0.04 and epsilon_high 0.2 (core/presets.py)."""
    done = show(
        "--config=recipe.py", "--config.objective=grpo", "--config.objective.beta=0.5"
    )
    assert (done.returncode, done.stderr) == (0, "")
    objective = json.loads(done.stdout)["objective"]
    expected = Objective(name="grpo", **PRESETS["grpo"] | {"beta": 0.5})
    assert objective == to_dict(Config(objective=expected))["objective"]
    assert (objective["epsilon_high"], objective["beta"]) == (0.2, 0.5)


# Arguments, and what standard error must say after "error: ".
FAULTS = {
    "wrong section": (
        ["--config=recipe.py", "--config.optimizer.beta=1"],
        ["unknown setting optimizer.beta; did you mean objective.beta?"],
    ),
    "wrong type": (
        ["--config=recipe.py", "--config.steps=abc"],
        ["--config.steps=abc", "invalid literal for int()"],
    ),
    "unknown preset": (
        ["--config=recipe.py", "--config.objective=grop"],
        ["objective='grop'", "skywork_or1; did you mean grpo?"],
    ),
    "a preset over earlier changes": (
        ["--config=recipe.py", "--config.objective.beta=1", "--config.objective=grpo"],
        ["--config.objective is provided after --config.objective.beta"],
    ),
    "no recipe": ([], ["give a recipe, as --config=configs/quickstart.py"]),
    "settings without a recipe": (
        ["--config.steps=3"],
        ["give a recipe, as --config=configs/quickstart.py"],
    ),
    "missing recipe": (
        ["--config=none.py", "--config.steps=3"],
        ["the recipe cannot be read", "none.py", "No such file"],
    ),
    "stray argument": (
        ["--config=recipe.py", "steps=3"],
        ["unexpected argument 'steps=3'. Settings are written --config.NAME=VALUE."],
    ),
    "unknown flag": (
        ["--config=recipe.py", "--confg=x"],
        ["Unknown command line flag 'confg'. Did you mean: config ?"],
    ),
    "faults of validate": (
        ["--config=recipe.py", "--config.steps=-1", "--config.checkpoint.keep=0"],
        ["steps=-1 must be at least 0.", "checkpoint.keep=0 must be at least 1."],
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_its_message_alone_and_exit_status_2(show, case):
    arguments, expected = FAULTS[case]
    done = show(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    for text in expected:
        assert text in done.stderr


def test_a_recipe_that_returns_something_else(show, tmp_path):
    (tmp_path / "recipe.py").write_text("def get_config():\n    return {}\n")
    done = show("--config=recipe.py")
    assert done.returncode == 2
    assert "must return a rlvr_jax.config.Config, got dict." in done.stderr


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--config.stepz=3", "unknown setting stepz; did you mean steps?"),
        (
            "--config.objective.epsilon_hi=0.3",
            "unknown setting objective.epsilon_hi; did you mean "
            "objective.epsilon_high?",
        ),
        (
            "--config.rollout.weight_decay=1",
            "unknown setting rollout.weight_decay; did you mean "
            "optimizer.weight_decay?",
        ),
        (
            "--noconfig.data.shufle",
            "unknown setting data.shufle; did you mean data.shuffle?",
        ),
        ("--config.qqqq", "unknown setting qqqq"),
    ],
)
def test_an_unknown_setting_names_the_nearest(argument, message):
    with pytest.raises(ConfigError) as caught:
        flags._check_names(["--config=recipe.py", argument])
    assert str(caught.value) == f"config: {message}"


@pytest.mark.parametrize("name", ["mesh", "rollout", "optimizer"])
def test_a_group_of_settings_takes_no_value(name):
    with pytest.raises(ConfigError) as caught:
        flags._check_groups(["--config=recipe.py", f"--config.{name}=3"])
    text = str(caught.value)
    assert text.startswith(f"config: {name} is a group of settings; give one of them")
    assert f"--config.{name}." in text


def test_a_setting_or_a_preset_is_no_group():
    flags._check_groups(["--config=recipe.py", "--config.objective=dapo", "--x"])
    flags._check_groups(["--config.mesh.shape=(1,1,8)", "--noconfig.data.shuffle"])


def test_every_setting_is_known_by_its_dotted_name():
    """Names counted in the JSON form of the settings: sections and fields."""
    sections = to_dict(Config())
    expected = {
        *sections,
        *(f"{s}.{f}" for s, v in sections.items() if isinstance(v, dict) for f in v),
    }
    assert set(flags.setting_names()) == expected
    flags._check_names([f"--config.{name}=1" for name in expected])


def test_no_suggestion_for_a_name_like_no_other():
    assert flags.suggestion("grpo", ["dapo", "grpo"]) == "; did you mean grpo?"
    assert flags.suggestion("zzz", ["dapo", "grpo"]) == ""
