"""Every recipe is valid; the quickstart makes two steps through the command line."""

import importlib.util
import pathlib

import pytest

from rlvr_jax.config import Config
from rlvr_jax.data.stages import parse_stages
from rlvr_jax.planning.chips import parse_topology
from rlvr_jax.planning.pod_plan import has_libtpu, plan_pod
from rlvr_jax.planning.programs import NAMES, abstract_run, lower, topology_mesh
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


PODS = {
    "configs/dapo_qwen32b.py": "v5p:4x4x4",
    "configs/qwen7b_gsm8k.py": "v5e:16x16",
    "configs/r1_zero_qwen32b.py": "v5p:4x4x8",
    "configs/magistral_small.py": "v5p:4x4x4",
    "configs/olmo3_think_7b.py": "v5p:4x4x4",
}
"""Recipes for pods, and the slice that each was planned for."""


@pytest.mark.parametrize("path", PODS)
def test_recipes_for_pods_are_planned(path):
    """At full size by the estimate, which is the one that the recipe states."""
    config, topology = recipe(path), parse_topology(PODS[path])
    plan = plan_pod(config, topology, compile_programs=False)
    assert plan.fits
    opening = (ROOT / path).read_text().split('"""')[1]
    assert f"--config {path} --topology {PODS[path]}" in opening
    assert f"{plan.time.total_s:,.0f} s" in opening
    assert plan_pod(config, topology, layers=2, compile_programs=False).fits


def test_the_schedule_of_r1_zero():
    """REC-02: 512 samples per update, 10,400 updates of 32 questions, 26 refreshes of
    the reference, 32,768 tokens and from update 8,192 on 65,536."""
    config = recipe("configs/r1_zero_qwen32b.py")
    batch, updates = config.batch, config.batch.minibatches_per_step
    questions = batch.prompts_per_step // updates
    assert questions == 32
    assert questions * config.rollout.num_generations == 512
    assert config.steps * updates == 10_400
    assert config.objective.reference_update == "copy"
    assert config.objective.reference_every_steps * updates == 400
    assert config.steps // config.objective.reference_every_steps == 26
    first, last = parse_stages(
        config.curriculum.stages, config.rollout.max_completion_tokens
    )
    assert first.max_completion_tokens == 32_768
    assert last.max_completion_tokens is None  # the rollout's own
    assert config.rollout.max_completion_tokens == 65_536
    assert last.start * updates == 8192
    assert (config.optimizer.learning_rate, config.objective.beta) == (3e-6, 1e-3)


def test_the_sizes_of_mimo():
    """DATA-11: 16 completions of 1,568 prompts a step, partial rollouts, and no token
    more than 4 versions behind."""
    config = recipe("configs/mimo_async.py")
    rollout = config.rollout
    assert rollout.num_generations == 16
    assert config.batch.prompts_per_step == 1568
    assert 0 < rollout.token_budget < rollout.max_completion_tokens
    assert rollout.staleness + rollout.max_group_age == 4
    assert config.objective.name == "mimo"


@pytest.mark.skipif(not has_libtpu(), reason="needs libtpu")
@pytest.mark.parametrize("path", PODS)
def test_programs_of_pods_are_traced_at_small_depth(path):
    """All three programs, on the devices of the slice, with two layers."""
    config, topology = recipe(path), parse_topology(PODS[path])
    plan = plan_pod(config, topology, layers=2, compile_programs=False)
    mesh = topology_mesh(topology.name, plan.mesh_shape)
    run = abstract_run(config, plan.architecture, mesh)
    for name in NAMES:
        assert lower(run, name).as_text()


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
