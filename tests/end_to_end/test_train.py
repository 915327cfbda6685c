"""Whole runs from the command line: what they write, and how they go on."""

import json
import shutil
import signal

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.end_to_end import command


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An uninterrupted run, and what it printed."""
    run_dir = tmp_path_factory.mktemp("runs") / "whole"
    return run_dir, command.run(run_dir)


def assert_same_run(run_dir, other):
    """Parameters, metrics and completions, bit for bit."""
    assert command.weights(run_dir) == command.weights(other)
    assert command.metrics(run_dir) == command.metrics(other)
    texts = [(d / "completions.jsonl").read_text() for d in (run_dir, other)]
    assert texts[0] == texts[1]


def test_the_run_folder_holds_what_a_run_should(finished):
    run_dir, printed = finished
    summary = json.loads((run_dir / "summary.json").read_text())
    for when in ("before", "after"):
        for score in ("pass@1", "pass@4"):
            mean, low, high = summary["eval"][when][score]
            assert 0 <= low <= mean <= high <= 1
    assert summary["seconds"] > 0
    assert summary["finished"]
    config = json.loads((run_dir / "config.json").read_text())
    assert config["objective"]["beta"] == 0.01
    assert "jax" in json.loads((run_dir / "versions.json").read_text())
    steps = [m["step"] for m in command.metrics(run_dir) if "reward/mean" in m]
    assert steps == list(range(6))
    assert (run_dir / "report.html").stat().st_size > 10_000
    assert (run_dir / "model" / "tokenizer.json").exists()
    assert {p.name for p in (run_dir / "checkpoints").iterdir()} == {"5", "6"}
    plan, step = printed.index("Plan"), printed.index("1/6 steps")
    assert plan < printed.index("cold start: 30 steps") < step


@pytest.mark.parametrize("steps_before", [1, 4])
def test_kill_9_and_the_same_command_give_the_same_run(
    finished, tmp_path, steps_before
):
    """2N = N + kill -9 + N in a new process: parameters, optimizer, data, metrics."""
    process = command.start(tmp_path / "killed")
    command.wait_for_steps(process, tmp_path / "killed", steps_before)
    process.kill()
    process.wait()
    assert not (tmp_path / "killed" / "summary.json").exists()
    command.run(tmp_path / "killed")
    assert_same_run(tmp_path / "killed", finished[0])


def test_ctrl_c_saves_and_the_same_command_continues(finished, tmp_path):
    process = command.start(tmp_path / "stopped")
    command.wait_for_steps(process, tmp_path / "stopped", 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 0
    printed = (tmp_path / "stopped.log").read_text()
    assert "finishing this step" in printed
    assert "the same command continues" in printed
    summary = json.loads((tmp_path / "stopped" / "summary.json").read_text())
    assert not summary["finished"]
    assert f"resumes at {summary['steps']}" in command.run(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", finished[0])


def test_verifiers_as_callbacks_give_the_same_run(finished, tmp_path):
    """The trainer runs either way by a setting, with equal results."""
    command.run(tmp_path / "callback", "--config.reward.execution=callback")
    assert_same_run(tmp_path / "callback", finished[0])


@pytest.mark.parametrize(
    "rollout_shape", [pytest.param("()", marks=pytest.mark.slow), "(1,4,2)"]
)
def test_eight_devices_give_the_same_completions(finished, tmp_path, rollout_shape):
    """Tokens of the first step exactly, parameters to what Adam makes of rounding; also
    where sampling lays the devices out in another way."""
    run_dir = tmp_path / "eight"
    meshes = (
        "--config.mesh.shape=(2,2,2)",
        f"--config.mesh.rollout_shape={rollout_shape}",
    )
    command.run(run_dir, *meshes, devices=8)
    texts = [(d / "completions.jsonl").read_text() for d in (run_dir, finished[0])]
    lines = [[json.loads(line) for line in text.splitlines()] for text in texts]
    first = [[row for row in rows if row["step"] == 0] for rows in lines]
    assert first[0] == first[1]
    ours, single = (
        load_file(d / "model" / "model.safetensors") for d in (run_dir, finished[0])
    )
    for name, value in single.items():
        np.testing.assert_allclose(ours[name], value, atol=2e-3, err_msg=name)


def test_a_finished_run_is_left_alone(finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "again")
    before = command.weights(tmp_path / "again")
    printed = command.run(tmp_path / "again")
    assert "resumes at 6" in printed
    assert command.weights(tmp_path / "again") == before


def test_other_settings_are_refused_on_resume(finished):
    run_dir, _ = finished
    log = run_dir.with_suffix(".log").read_text()
    printed = command.run(run_dir, "--config.objective.epsilon_high=0.4", expect=2)
    assert "objective.epsilon_high: 0.28 there, 0.4 now" in printed
    run_dir.with_suffix(".log").write_text(log)


def test_a_verifier_of_ones_own_chosen_by_a_row(tmp_path):
    """Rows name their verifier; a plain function in a file pays for even answers."""
    (tmp_path / "mine.py").write_text(
        "def even(sample):\n"
        "    digits = ''.join(c for c in sample.completion if c.isdigit())\n"
        "    return bool(digits) and int(digits[-1]) % 2 == 0\n"
    )
    rows = [
        {
            "question": f"{a} + {b} =",
            "answer": str(a + b),
            "solution": str(a + b),
            "verifier": f"{tmp_path}/mine.py:even" if a % 2 else "math",
        }
        for a in range(5)
        for b in range(8)
    ]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = command.run(
        tmp_path / "own",
        f"--config.data.train={data}",
        "--config.data.task_options={}",
        "--config.steps=1",
    )
    assert "even" in printed
    completions = (tmp_path / "own" / "completions.jsonl").read_text().splitlines()
    by_row = {row["question"]: row for row in rows}
    judged = [json.loads(line) for line in completions]
    evens = [c for c in judged if "even" in by_row[c["prompt"]]["verifier"]]
    assert evens
    for completion in evens:
        digits = "".join(c for c in completion["completion"] if c.isdigit())
        paid = float(bool(digits) and int(digits[-1]) % 2 == 0)
        assert completion["reward"] == paid


def test_the_slot_engine_trains_the_same_run(finished, tmp_path):
    """Rows refilled as they finish, verified meanwhile, sample and
    learn what a batch side by side does."""
    run_dir, _ = finished
    command.run(
        tmp_path / "slots",
        "--config.rollout.engine=slots",
        "--config.rollout.slots=16",
    )
    found = command.metrics(tmp_path / "slots")
    shares = [line.pop("rollout/padding_share", None) for line in found]
    assert any(share is not None and 0 < share < 1 for share in shares)
    for ours, expected in zip(found, command.metrics(run_dir), strict=True):
        assert set(ours) == set(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(ours[name], value, rtol=1e-4, atol=1e-5)


STALE = (
    "--config.rollout.staleness=2",
    "--config.objective.importance_correction=clamp",
)


def test_a_stale_run_is_behind_by_its_bound_and_continues_after_a_kill(tmp_path):
    """CLIP-34: no batch is older than the bound; what was under way at a kill is
    sampled again from the policy that it was being sampled from."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command.run(whole, *STALE)
    trained = [line for line in command.metrics(whole) if "reward/mean" in line]
    assert [line["rollout/version_gap"] for line in trained] == [0, 1, 2, 2, 2, 2]
    # Two updates of the policy show between sampler and trainer.
    assert trained[0]["mismatch/abs_logprob_mean"] < 1e-5
    assert trained[3]["mismatch/abs_logprob_mean"] > 1e-4
    process = command.start(killed, *STALE)
    command.wait_for_steps(process, killed, 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    command.run(killed, *STALE)
    assert_same_run(killed, whole)


PARTIAL = (
    "--config.rollout.engine=slots",
    "--config.rollout.slots=16",
    "--config.rollout.token_budget=1",
    "--config.rollout.waiting_batches=3",
    "--config.rollout.max_group_age=3",
    "--config.rollout.staleness=1",
    "--config.objective.importance_correction=clamp",
)


def test_a_run_of_partial_rollouts_continues_after_a_kill(tmp_path):
    """DATA-07: completions that wait are part of the checkpoint, also while batches
    are sampled ahead; tokens are never older than both bounds together."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command.run(whole, *PARTIAL)
    trained = [line for line in command.metrics(whole) if "reward/mean" in line]
    gaps = [line["rollout/token_gap_max"] for line in trained]
    assert gaps[0] == 0
    assert 3 <= max(gaps) <= 4
    assert [line["rollout/waiting_groups"] for line in trained] == [24] * 6
    assert 0 < trained[-1]["rollout/old_token_share"] < 1
    assert trained[0]["mismatch/abs_logprob_mean"] < 1e-5
    assert trained[-1]["mismatch/abs_logprob_mean"] > 1e-4
    lines = (whole / "completions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(sum(n for _, n in row["versions"]) == row["tokens"] for row in rows)
    assert max(len(row["versions"]) for row in rows) > 1
    process = command.start(killed, *PARTIAL)
    command.wait_for_steps(process, killed, 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    command.run(killed, *PARTIAL)
    assert_same_run(killed, whole)


@pytest.mark.slow
def test_a_run_of_partial_rollouts_learns(tmp_path):
    """With tokens 1.7 versions old on the average, from a weak start (first and last
    ten of 60 steps when this was written: 0.14 and 0.84)."""
    command.run(
        tmp_path / "run",
        "--config.rollout.engine=slots",
        "--config.rollout.slots=32",
        "--config.rollout.token_budget=2",
        "--config.rollout.waiting_batches=2",
        "--config.rollout.max_group_age=3",
        "--config.objective.importance_correction=clamp",
        "--config.objective.beta=0",
        "--config.optimizer.learning_rate=3e-3",
        "--config.warmup.steps=12",
        "--config.steps=60",
        "--config.checkpoint.every_steps=0",
    )
    trained = [m for m in command.metrics(tmp_path / "run") if "pass_rate/mean" in m]
    rates = np.array([line["pass_rate/mean"] for line in trained])
    assert rates[:10].mean() < 0.3
    assert rates[-10:].mean() > rates[:10].mean() + 0.4
    gaps = [line["rollout/token_gap_mean"] for line in trained[5:]]
    assert np.mean(gaps) > 1


@pytest.mark.slow
def test_one_rollout_per_prompt_is_sampled_beside_the_updates(tmp_path):
    """PG-30: SAO's objective and critic on single completions that are sampled ahead
    and in parts; its ratio is to the log-probs of the policies that sampled them."""
    command.run(
        tmp_path / "run",
        *PARTIAL[:-1],
        "--config.objective=sao",
        "--config.rollout.num_generations=1",
        "--config.critic.updates_per_minibatch=2",
        "--config.critic.freeze_attention=True",
        "--config.evaluation.num_generations=2",
    )
    trained = [m for m in command.metrics(tmp_path / "run") if "reward/mean" in m]
    assert len(trained) == 6
    assert trained[-1]["rollout/version_gap"] == 1
    assert trained[-1]["rollout/token_gap_max"] >= 2
    assert trained[0]["mismatch/abs_logprob_mean"] < 1e-5
    assert trained[-1]["mismatch/abs_logprob_mean"] > 1e-4


@pytest.mark.slow
def test_the_best_by_evaluation_stays_also_that_of_the_end(tmp_path):
    """A state evaluated only after it was saved, at the end or as the run goes on."""
    best = ("--config.checkpoint.keep=1", "--config.checkpoint.keep_best=1")
    often = "--config.evaluation.every_steps=2"
    command.run(tmp_path / "run", *best, often, "--config.steps=3")
    command.run(tmp_path / "run", *best, often, "--config.steps=5")
    scores = json.loads((tmp_path / "run" / "checkpoint_scores.json").read_text())
    assert set(scores) == {"0", "2", "3", "4", "5"}
    # That of 0 was never saved; 5 was the newest, and not evaluated yet.
    highest = max("234", key=lambda step: (scores[step], step))
    kept = {path.name for path in (tmp_path / "run" / "checkpoints").iterdir()}
    assert kept == {"5", highest}
