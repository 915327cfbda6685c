"""A task outside of a base's reach: it knows every step, and never the chain."""

import json

import pytest

from launch import evaluate
from rlvr_jax.analysis.counts import read_counts
from tests.end_to_end import command

SINGLE = {"length": 6, "max_operations": 1, "count": 2048}
CHAINS = {"length": 6, "min_operations": 8, "max_operations": 8}


@pytest.mark.slow
def test_a_base_that_knows_the_steps_never_solves_the_chain(tmp_path):
    """DATA-23: the quickstart's decoder after a cold start on single operations: above
    90 % of these on rows that it never saw, and c = 0 of n = 64 on each of 32 chains of
    eight. By that, rates of 4.6 % and more are ruled out for each chain."""
    base = tmp_path / "base"
    command.run(
        base,
        "--config.data.train=task:letters",
        f"--config.data.task_options={json.dumps(SINGLE)}",
        "--config.steps=0",
        "--config.warmup.steps=300",
        "--config.evaluation.prompts=1",
        "--config.rollout.max_completion_tokens=16",
        recipe="configs/quickstart.py",
    )
    found = {}
    for name, options, n in (("single", SINGLE, 8), ("chains", CHAINS, 64)):
        output = tmp_path / f"{name}.jsonl"
        asked = ["--data", "task:letters", "--task_options", json.dumps(options)]
        sizes = ["--n", str(n), "--prompts", "32", "--output", str(output)]
        evaluate.main(["--checkpoint", str(base), *asked, *sizes, "--json"])
        found[name] = read_counts(output)
    assert sum(problem.rate for problem in found["single"]) > 0.9 * 32
    assert [problem.c for problem in found["chains"]] == [0] * 32
    assert {problem.n for problem in found["chains"]} == {64}
