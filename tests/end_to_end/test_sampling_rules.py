"""Whole runs under the sampling rules: full batches, stages, and exact continuation."""

import collections
import json

import pytest

from tests.end_to_end import command

STAGES = '[{"until": 2, "max_completion_tokens": 2}, {}]'
RULES = (
    "--config.objective=dapo",
    "--config.curriculum.filter=dynamic",
    "--config.curriculum.max_generation_batches=6",
    "--config.curriculum.drop_pass_rate=1.0",
    f"--config.curriculum.stages={STAGES}",
    '--config.data.task_options={"operators": "+", "max_operand": 12, "count": 120}',
    "--config.warmup.steps=40",
    "--config.evaluation.prompts=0",
    "--config.evaluation.num_generations=8",
    "--config.logging.completions_every_steps=1",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("rules") / "whole"
    return run_dir, command.run(run_dir, *RULES)


def groups_by_step(run_dir):
    """step -> prompt -> verdicts, for what the step learned from."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in (run_dir / "completions.jsonl").read_text().splitlines():
        row = json.loads(line)
        found[row["step"]][row["prompt"]].append(row["verdict"] == "correct")
    return found


def test_every_group_of_a_dapo_update_has_both_outcomes(whole):
    """CLIP-06, DATA-01: 0 < #correct < G for each of the groups in the update."""
    run_dir, printed = whole
    assert "dynamic sampling: refilled (whole batches)" in " ".join(printed.split())
    metrics = {m["step"]: m for m in command.metrics(run_dir) if "reward/mean" in m}
    groups = groups_by_step(run_dir)
    full = [step for step, m in metrics.items() if m["curriculum/batch_filled"] == 1]
    assert len(full) >= 3
    for step in full:
        assert len(groups[step]) == 8
        for verdicts in groups[step].values():
            assert 0 < sum(verdicts) < len(verdicts) == 4
        assert metrics[step]["pass_rate/all_correct"] == 0
        assert metrics[step]["pass_rate/all_wrong"] == 0
    # Where the bound was hit, as many groups are mixed as the loss takes.
    for step, m in metrics.items():
        mixed = sum(0 < sum(v) < 4 for v in groups[step].values())
        assert mixed == 8 * m["curriculum/batch_filled"]
        assert m["curriculum/generation_batches"] <= 6


def test_fewer_completions_are_cut_once_a_stage_allows_more(whole):
    """DATA-17: of two tokens, then of four, for sums of up to two digits and an end."""
    shares = {
        m["step"]: m["completion/truncated_share"]
        for m in command.metrics(whole[0])
        if "reward/mean" in m
    }
    assert min(shares[0], shares[1]) > 2 * max(shares[step] for step in (2, 3, 4, 5))
    lengths = [
        m["curriculum/max_completion_tokens"]
        for m in command.metrics(whole[0])
        if "reward/mean" in m
    ]
    assert lengths == [2, 2, 4, 4, 4, 4]


@pytest.mark.slow
def test_a_resumed_run_draws_what_the_whole_run_draws(whole, tmp_path):
    """The rules' memory is part of the checkpoint: weights, metrics, completions."""
    run_dir = tmp_path / "parts"
    command.run(run_dir, *RULES, "--config.steps=3")
    command.run(run_dir, *RULES)
    assert command.metrics(run_dir) == command.metrics(whole[0])
    assert command.weights(run_dir) == command.weights(whole[0])
    texts = [(d / "completions.jsonl").read_text() for d in (run_dir, whole[0])]
    assert texts[0] == texts[1]
    pass_rates = [
        json.loads((d / "summary.json").read_text())["pass_rates"]
        for d in (run_dir, whole[0])
    ]
    assert pass_rates[0] == pass_rates[1]
    assert sum(pass_rates[0]) > 48
