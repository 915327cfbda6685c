"""Thinking-mode fusion of a tiny decoder, by a cold start on rows with flags."""

import json

import pytest

from launch import evaluate
from rlvr_jax.analysis.counts import read_counts
from rlvr_jax.data.modes import EMPTY, in_both_modes
from tests.end_to_end import command

pytestmark = pytest.mark.slow


def write_rows(path, sums, **changes):
    rows = []
    for left, right in sums:
        thought = f"<think>\n{left}, {right}\n</think>\n\n{left + right}"
        row = {"id": f"{left}+{right}", "question": f"{left} + {right} ="}
        row |= {"answer": str(left + right), "verifier": "math"}
        rows += in_both_modes({**row, "meta": {"solutions": [thought]}})
    lines = [json.dumps(row | changes) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return len(rows)


def test_a_tuned_decoder_obeys_the_last_flag(tmp_path):
    """REC-13: 250 steps on sums in five ways each; on twelve sums that it never saw
    above 95 % of 4 completions have thoughts exactly where the last flag asks for them,
    also after the other flag, and those of /no_think begin with the empty block."""
    every = [(a, b) for a in range(10) for b in range(10)]
    unseen = every[5::9]
    write_rows(tmp_path / "train.jsonl", [s for s in every if s not in unseen])
    count = write_rows(tmp_path / "new.jsonl", unseen, verifier="format:think_flag")
    run = tmp_path / "run"
    command.run(
        run,
        f"--config.data.train={tmp_path}/train.jsonl",
        "--config.data.task_options={}",
        "--config.data.max_prompt_tokens=32",
        "--config.rollout.max_completion_tokens=40",
        "--config.warmup.steps=250",
        "--config.warmup.batch_size=32",
        "--config.model.hidden_size=64",
        "--config.model.num_layers=2",
        "--config.steps=0",
    )
    output = tmp_path / "counts.jsonl"
    asked = ["--checkpoint", str(run), "--data", str(tmp_path / "new.jsonl")]
    evaluate.main([*asked, "--n", "4", "--texts", "--output", str(output), "--json"])
    found = read_counts(output)
    assert len(found) == count == 5 * len(unseen)
    assert sum(problem.rate for problem in found) / len(found) > 0.95
    silent = [p for p in found if p.id.endswith(("/3", "/4"))]
    texts = [text.lstrip(" ") for p in silent for text in p.completions]
    assert sum(text.startswith(EMPTY) for text in texts) > 0.95 * len(texts)
