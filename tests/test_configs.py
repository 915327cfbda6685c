"""Every recipe is valid; the quickstart makes two steps through the command line."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from rlvr_jax.config import Config
from rlvr_jax.data.stages import parse_stages
from rlvr_jax.planning.abstract_run import abstract_run
from rlvr_jax.planning.chips import parse_topology
from rlvr_jax.planning.pod_plan import has_libtpu, plan_pod
from rlvr_jax.planning.programs import NAMES, lower, topology_meshes
from rlvr_jax.rollout.scorer import reward_verifiers
from rlvr_jax.validate import validate
from rlvr_jax.verifiers.judge import NAMES as JUDGES
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


@pytest.mark.parametrize("path", RECIPES)
def test_questions_of_data_sets_say_what_form_the_answer_has(path):
    """DAPO's own words are taken off its questions, and other sets have none: a model
    that is not told leaves answers that no verifier finds."""
    data = recipe(path).data
    if data.train.startswith("hub:"):
        told = data.question_suffix + data.system_prompt
        assert "Answer:" in told or "boxed" in told or "<answer>" in told


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


def test_no_network_stands_behind_the_rewards_of_r1_zero():
    """REC-40, REC-01: no supervised step; accuracy and format, each a function that a
    process without any array package runs; no judge."""
    config = recipe("configs/r1_zero_qwen32b.py")
    assert config.warmup.steps == 0
    assert config.reward.parts == "answer, format:think_answer"
    assert (config.judge.url, config.judge.path) == ("", "")
    names = sorted({config.reward.verifier, *reward_verifiers(config, [])})
    assert "format:think_answer" in names
    assert not set(names) & set(JUDGES)
    program = (
        "import sys\n"
        "from rlvr_jax.verifiers import registry\n"
        "from rlvr_jax.verifiers.base import Sample\n"
        f"for name in {names}:\n"
        "    text = '<think>1 + 2</think> <answer>3</answer>'\n"
        "    print(registry.resolve(name)(Sample(name, text, '3')).status)\n"
        "networks = {'jax', 'flax', 'torch', 'tensorflow', 'transformers', 'numpy'}\n"
        "print(sorted(networks & {name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.split("\n")[:-1] == ["correct"] * len(names) + ["[]"], done


def test_the_windows_and_the_price_of_minimax_m1():
    """REC-15: 40k to 80k in steps of 8k, loops of 3,000 tokens cut; 534,700 dollars for
    512 GPUs and three weeks are 2.07 per GPU-hour."""
    config = recipe("configs/minimax_m1.py")
    stages = parse_stages(config.curriculum.stages, 80 * 1024)
    windows = [
        stage.max_completion_tokens or config.rollout.max_completion_tokens
        for stage in stages
    ]
    assert [window // 1024 for window in windows] == [40, 48, 56, 64, 72, 80]
    assert config.control.certain_tokens == 3000
    # Nothing is left out for good after one bad group.
    assert config.curriculum.revisit_after_steps == config.steps // len(windows)
    assert config.objective.surrogate == "cispo"
    price = f"${534_700 / (512 * 21 * 24):.2f}"
    assert price == "$2.07"
    assert price in (ROOT / "configs/minimax_m1.py").read_text()


def test_the_run_of_deepseekmath():
    """PG-32, REC-28: learning rate 1e-6, KL 0.04, 64 outputs per question, at most
    1,024 tokens, a training batch of 1,024, one update per exploration (sec. 4.2)."""
    config = recipe("configs/deepseekmath_7b.py")
    assert config.optimizer.learning_rate == 1e-6
    assert (config.objective.beta, config.objective.kl_estimator) == (0.04, "k3")
    assert config.objective.kl_placement == "loss"
    assert config.objective.loss_aggregation == "sequence_mean"
    assert config.rollout.num_generations == 64
    assert config.rollout.max_completion_tokens == 1024
    assert config.batch.prompts_per_step * config.rollout.num_generations == 1024
    assert config.batch.updates_per_step == 1
    opening = (ROOT / "configs/deepseekmath_7b.py").read_text().split('"""')[1]
    assert "MATH 46.8 -> 51.7" in opening


def test_the_run_of_dr_grpo():
    """AGG-14: no std, a constant divisor, no KL; 8 samples of at most 3,000 tokens,
    learning rate 1e-6 (README of sail-sg/understand-r1-zero); 43.3 on AIME 2024."""
    config = recipe("configs/dr_grpo_qwen7b.py")
    objective, batch = config.objective, config.batch
    assert (objective.scale_rewards, objective.beta) == ("none", 0.0)
    assert objective.loss_aggregation == "constant"
    assert config.rollout.num_generations == 8
    assert config.rollout.max_completion_tokens == 3000
    assert (config.rollout.temperature, config.rollout.top_p) == (1.0, 1.0)
    assert config.optimizer.learning_rate == 1e-6
    assert config.optimizer.schedule == "constant"
    assert config.model.path.endswith("Qwen2.5-Math-7B")
    rows = batch.prompts_per_step * config.rollout.num_generations
    assert rows // batch.minibatches_per_step == 128
    opening = (ROOT / "configs/dr_grpo_qwen7b.py").read_text().split('"""')[1]
    for figure in ("43.3", "27 hours", "8 A100"):
        assert figure in opening


def test_the_run_of_dapo():
    """REC-25: its switches and sizes (sec. 4.1): 512 x 16, 16 updates, 20,480 tokens
    with the penalty over the last 4,096, clip 0.2 / 0.28, dynamic sampling, +1 / -1."""
    config = recipe("configs/dapo_qwen32b.py")
    objective, batch = config.objective, config.batch
    assert (objective.epsilon_low, objective.epsilon_high) == (0.2, 0.28)
    assert (objective.loss_aggregation, objective.beta) == ("token_mean", 0.0)
    assert objective.overlong_filter
    assert objective.overlong_buffer_tokens == 4096
    assert config.rollout.max_completion_tokens == 20_480
    assert config.curriculum.filter == "dynamic"
    assert (config.reward.correct, config.reward.wrong) == (1.0, -1.0)
    assert (batch.prompts_per_step, batch.minibatches_per_step) == (512, 16)
    assert config.rollout.num_generations == 16
    assert config.optimizer.learning_rate == 1e-6
    assert "50 points on AIME 2024" in (ROOT / "configs/dapo_qwen32b.py").read_text()


def test_the_run_of_magistral_leaves_out_groups_without_signal():
    """REC-16: GRPO without KL, total-length norm, std of the minibatch, upper clip .30
    for the small model, zero-advantage groups left out; 65.8 by RL alone, 70.7 after a
    supervised start."""
    config = recipe("configs/magistral_small.py")
    objective = config.objective
    assert (objective.advantage, objective.beta) == ("group", 0.0)
    assert objective.scale_rewards == "minibatch"
    assert objective.loss_aggregation == "prompt_mean"
    assert (objective.epsilon_low, objective.epsilon_high) == (0.2, 0.3)
    assert config.curriculum.filter == "dynamic"
    opening = (ROOT / "configs/magistral_small.py").read_text().split('"""')[1]
    assert "65.8" in opening
    assert "70.7" in opening


def test_the_reward_of_olmo3():
    """REC-18: open-instruct's verification_reward is 10 (F-56), its scripts leave it,
    and advantages are centred without being divided, so that the scale stays."""
    config = recipe("configs/olmo3_think_7b.py")
    assert (config.reward.correct, config.reward.wrong) == (10.0, 0.0)
    assert config.objective.scale_rewards == "none"


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


def test_the_pause_of_kimi_k3():
    """DATA-12: K completions of each of N prompts; a pass pauses at a share below 1,
    and nothing but the share pauses it."""
    config = recipe("configs/kimi_k3_partial.py")
    rollout = config.rollout
    assert rollout.engine == "slots"
    assert rollout.num_generations > 1
    assert 0 < rollout.pause_share < 1
    assert rollout.token_budget == rollout.max_completion_tokens
    assert config.objective.name == "kimi_k3"
    opening = (ROOT / "configs/kimi_k3_partial.py").read_text().split('"""')[1]
    for unpublished in ("64 prompts x 16 is ours", "0.75 is ours", "the band is ours"):
        assert unpublished in opening


def test_the_run_of_olmo_3_refills_what_is_missing():
    """REC-18: active sampling for groups of equal rewards; centred, not divided, token
    mean, no KL, upper clip .272, truncated weights of the sampler."""
    config = recipe("configs/olmo3_think_7b.py")
    objective = config.objective
    assert config.curriculum.filter == "active"
    assert (objective.scale_rewards, objective.beta) == ("none", 0.0)
    assert objective.loss_aggregation == "token_mean"
    assert (objective.epsilon_low, objective.epsilon_high) == (0.2, 0.272)
    assert objective.importance_correction == "clamp"
    assert objective.importance_upper == 2.0
    assert (config.batch.prompts_per_step, config.rollout.num_generations) == (64, 8)


def test_the_run_of_scalerl():
    """REC-23: 48 x 16 completions of 16,384 tokens, 8 steps off policy, CISPO capped at
    5, prompt mean, batch std, float32 logits, zero-variance filter, No-Positive-
    Resampling at 0.9, interruptions, +1 / -1."""
    config = recipe("configs/scalerl_8b.py")
    objective, rollout = config.objective, config.rollout
    assert config.batch.prompts_per_step == 48
    assert rollout.num_generations == 16
    assert rollout.max_completion_tokens == 16_384
    assert (rollout.staleness, objective.old_policy) == (8, "rollout")
    assert (objective.surrogate, objective.ratio_max) == ("cispo_capped", 5.0)
    assert objective.loss_aggregation == "prompt_mean"
    assert objective.scale_rewards == "batch"
    assert config.model.head_dtype == "float32"
    assert config.curriculum.filter == "mask"
    assert config.curriculum.drop_pass_rate == 0.9
    control = config.control
    assert (control.budget, control.budget + control.budget_spread) == (10_240, 12_288)
    assert control.answer_tokens == 2048
    assert (config.reward.correct, config.reward.wrong) == (1.0, -1.0)


@pytest.mark.skipif(not has_libtpu(), reason="needs libtpu")
@pytest.mark.parametrize("path", PODS)
def test_programs_of_pods_are_traced_at_small_depth(path):
    """All four programs, on the devices of the slice, with two layers."""
    config, topology = recipe(path), parse_topology(PODS[path])
    plan = plan_pod(config, topology, layers=2, compile_programs=False)
    meshes = topology_meshes(topology.name, plan.mesh_shape, plan.rollout_shape)
    run = abstract_run(config, plan.architecture, *meshes)
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
