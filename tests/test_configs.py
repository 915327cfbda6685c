"""Every recipe is valid; the quickstart makes two steps through the command line."""

import importlib.util
import pathlib

import pytest

from rlvr_jax.config import Config
from rlvr_jax.validate import validate
from tests import smollm2
from tests.end_to_end import command

ROOT = pathlib.Path(__file__).parents[1]
RECIPES = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "configs").rglob("*.py"))
SHORT = ("--config.steps=2", "--config.evaluation.prompts=4")


def recipe(path: str) -> Config:
    spec = importlib.util.spec_from_file_location("recipe", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config()


@pytest.mark.parametrize("path", RECIPES)
def test_recipes_are_valid_and_say_what_they_are(path):
    validate(recipe(path))
    opening = (ROOT / path).read_text()
    assert opening.startswith('"""')
    assert f"--config {path}" in opening.split('"""')[1]


def test_two_steps_of_the_quickstart(tmp_path):
    command.run(
        tmp_path / "run",
        *SHORT,
        "--config.warmup.steps=2",
        recipe="configs/quickstart.py",
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gsm8k_smollm2", "arith_smollm2"])
def test_two_steps_of_a_real_model(tmp_path, name):
    printed = command.run(
        tmp_path / "run",
        *SHORT,
        f"--config.model.path={smollm2.directory()}",
        "--config.batch.prompts_per_step=2",
        recipe=f"configs/{name}.py",
    )
    assert "2/2 steps" in printed
