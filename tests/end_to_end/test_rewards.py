"""Runs with composed and wrong rewards, a judge and an audit, from the command line."""

import json

import pytest

from launch import audit
from tests.end_to_end import command
from tests.verifiers.judge_server import serving

PARTS = "answer if ended, 0.5*format:boxed if answer, -1*truncated, 0.1*judge"


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A run under a weak verifier with the strict one watching, and what it printed."""
    run_dir = tmp_path_factory.mktemp("runs") / "watched"
    with serving(lambda messages, _: "Verdict: correct") as (url, _):
        printed = command.run(
            run_dir,
            f"--config.reward.parts={PARTS}",
            "--config.reward.verifier=weak:last_number",
            f"--config.judge.url={url}",
            "--config.judge.model=stub",
            "--config.noise.false_positive_rate=0.3",
            "--config.noise.seed=4",
            "--config.audit.verifier=math",
            "--config.audit.share=0.5",
            "--config.steps=3",
        )
    return run_dir, printed


def test_every_part_is_in_the_metrics(watched):
    """The parts sum to the mean reward, step by step."""
    run_dir, _ = watched
    steps = [m for m in command.metrics(run_dir) if "reward/mean" in m]
    assert len(steps) == 3
    for step in steps:
        parts = {n: v for n, v in step.items() if n.startswith("part/")}
        assert set(parts) == {
            "part/answer",
            "part/format_boxed",
            "part/truncated",
            "part/judge",
        }
        assert sum(parts.values()) == pytest.approx(step["reward/mean"], abs=1e-5)
        assert step["part/judge"] > 0
        assert 0 < step["judge/calls"] <= 32
        assert step["judge/prompt_tokens"] == 10 * step["judge/calls"]
        assert step["audit/completions"] > 0
        assert "noise/changed_share" in step
    assert any(step["noise/false_positive_share"] > 0 for step in steps)


def test_completions_say_what_they_were_paid_for(watched):
    run_dir, _ = watched
    lines = (run_dir / "completions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(set(row["parts"]) >= {"answer", "judge"} for row in rows)
    assert any("audit" in row for row in rows)
    assert any(
        row.get("paid_score") == 1.0 and row["verdict"] != "correct" for row in rows
    )


def test_the_audit_can_be_looked_at(watched, capsys):
    run_dir, _ = watched
    audit.main(["gap", str(run_dir)])
    printed = capsys.readouterr().out
    assert "watched: math" in printed
    assert "accepted in training" in printed
    audit.main(["read", str(run_dir), "--count", "1"])
    printed = capsys.readouterr().out
    assert "high: row" in printed
    assert "completion: " in printed


def test_a_fault_of_the_parts_is_said_before_the_run(tmp_path):
    flag = "--config.reward.parts=answer, 0.1*judge"
    printed = command.run(tmp_path / "run", flag, expect=2)
    assert "error: verifier 'judge' is a language model: set judge.url" in printed
