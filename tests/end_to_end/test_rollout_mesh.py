"""Whole runs that sample on another mesh than they train on."""

import json

import pytest
from safetensors.numpy import load_file

from tests.end_to_end import command
from tests.end_to_end.test_processes import (
    assert_equal_runs,
    finish,
    pair,  # noqa: F401 - a fixture
    start,
)
from tests.end_to_end.test_train import assert_same_run

ONE = "--config.mesh.shape=(1,2,1)"
TWO = (ONE, "--config.mesh.rollout_shape=(1,1,2)")
SHORT = (
    "--config.steps=3",
    "--config.warmup.steps=2",
    "--config.logging.completions_every_steps=1",
    "--config.logging.report=false",
)
WAYS = {
    "batch": ("--config.evaluation.input_dependence=True",),
    "ahead": (
        "--config.rollout.staleness=1",
        "--config.objective.importance_correction=clamp",
    ),
    "greedy": (
        "--config.objective=remax",
        "--config.curriculum.filter=active",
        "--config.curriculum.max_generation_batches=3",
    ),
    "callback": ("--config.reward.execution=callback",),
    "slots": ("--config.rollout.engine=slots", "--config.rollout.slots=8"),
    "partial": (
        "--config.rollout.engine=slots",
        "--config.rollout.slots=8",
        "--config.rollout.token_budget=2",
        "--config.objective.importance_correction=clamp",
    ),
}
"""Everything that reads the sampler's weights or its rollouts."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS)
def test_a_run_does_not_depend_on_where_it_samples(tmp_path, way):
    """Completions exactly, numbers to what another order of sums makes of them."""
    flags = (*SHORT, *WAYS[way])
    command.run(tmp_path / "one", ONE, *flags, devices=2)
    printed = command.run(tmp_path / "two", *TWO, *flags, devices=2)
    said = " ".join(printed.split())
    assert "fsdp 2, tensor 1; sampling as data 1, fsdp 1, tensor 2" in said
    assert_equal_runs(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_was_sampled_ahead_goes_on_where_it_was(tmp_path):
    """Policies of batches under way come back on the mesh of sampling: bit for bit."""
    flags = (*TWO, *SHORT, *WAYS["ahead"])
    command.run(tmp_path / "whole", *flags, devices=2)
    process = command.start(tmp_path / "killed", *flags, devices=2)
    command.wait_for_steps(process, tmp_path / "killed", 1)
    process.kill()
    process.wait()
    command.run(tmp_path / "killed", *flags, devices=2)
    assert_same_run(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_processes_sample_on_another_mesh(pair, tmp_path):  # noqa: F811
    """Weights go from one process to the other: the run of two processes that sample
    where they train."""
    run_dir = tmp_path / "two"
    finish(start(run_dir, 2, "--config.mesh.rollout_shape=(1,1,2)"), run_dir)
    assert_equal_runs(run_dir, pair[0])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_goes_on_and_is_evaluated_on_other_meshes(tmp_path):
    """Checkpoints know nothing of meshes, and `launch.evaluate` reads the run's."""
    run_dir = tmp_path / "run"
    command.run(run_dir, *TWO, *SHORT, "--config.steps=2", devices=2)
    swapped = ("--config.mesh.shape=(1,1,2)", "--config.mesh.rollout_shape=(2,1,1)")
    printed = command.run(run_dir, *swapped, *SHORT, devices=2)
    assert "resumes at 2" in printed
    words = ["launch.evaluate", f"--checkpoint={run_dir}"]
    output = tmp_path / "counts.jsonl"
    words += [f"--output={output}", "--prompts=4"]
    process = command.launch(words, f"{tmp_path}/evaluate.log", devices=2)
    assert process.wait(timeout=600) == 0, (tmp_path / "evaluate.log").read_text()
    assert len(output.read_text().splitlines()) == 4
    assert load_file(run_dir / "model/model.safetensors")
    assert json.loads((run_dir / "summary.json").read_text())["finished"]
