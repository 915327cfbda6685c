"""Accuracy over training and over thinking: both curves of one policy."""

import json
import random

import pytest

from launch import evaluate, report
from tests.end_to_end import command

pytestmark = pytest.mark.slow


def write_sums(path, count, seed):
    """Sums of four numbers, to imitate: thoughts that stop at any line, of ten five
    before the first, and a guess from there: each number that is left counts 2, and one
    more or less now and then."""
    draw, lines = random.Random(seed), []
    questions = {tuple(draw.choices(range(5), k=4)) for _ in range(2 * count)}
    for numbers in sorted(questions)[:count]:
        solutions = []
        for done in (0, 0, 0, 0, 0, 1, 2, 3, 3, 3):
            left, thoughts = list(numbers), []
            for _ in range(done):
                left = [left[0] + left[1], *left[2:]]
                thoughts.append(" + ".join(map(str, left)))
            more = len(left) - 1
            guess = left[0] + more * 2 + (draw.choice((-1, 0, 1)) if more else 0)
            thought = "\n".join(thoughts)
            solutions.append(f"<think>\n{thought}\n</think>\n\n{guess}")
        row = {"question": " + ".join(map(str, numbers)) + " ="}
        row |= {"answer": str(sum(numbers)), "verifier": "math", "solutions": solutions}
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n")


def test_accuracy_rises_with_training_and_with_thinking(tmp_path, capsys):
    """REC-39: a policy that has learned to think or not, paid for right answers alone.

    On sums it never saw: pass@1 every five steps rises, by a fit that never falls,
    which fewer than 5 of 100 orders of its values match. At the end, with thoughts
    closed after none, one and two of their lines, and never: the last is right more
    than twice as often as the first (when written 49 % and 13 %), and most often.
    """
    write_sums(tmp_path / "train.jsonl", 400, seed=0)
    run = tmp_path / "run"
    command.run(
        run,
        f"--config.data.train={tmp_path}/train.jsonl",
        "--config.data.task_options={}",
        "--config.data.max_prompt_tokens=32",
        "--config.rollout.max_completion_tokens=60",
        "--config.rollout.num_generations=8",
        "--config.batch.prompts_per_step=32",
        "--config.model.hidden_size=128",
        "--config.model.intermediate_size=384",
        "--config.model.num_layers=3",
        "--config.model.num_heads=4",
        "--config.model.num_kv_heads=2",
        "--config.warmup.steps=1000",
        "--config.warmup.batch_size=64",
        "--config.warmup.learning_rate=2e-3",
        "--config.optimizer.learning_rate=2e-4",
        "--config.objective.beta=0",
        "--config.steps=40",
        "--config.evaluation.prompts=64",
        "--config.evaluation.every_steps=5",
        "--config.checkpoint.every_steps=40",
    )
    report.main(["--growth", str(run), "--json"])
    rises = json.loads(capsys.readouterr().out)["rises"]["pass@1"]
    assert rises["p"] < 0.05
    assert rises["fitted"][-1] > rises["fitted"][0] + 0.2
    files = []
    for budget in (len(" <think>\n"), 19, 25, 60):
        files.append(str(tmp_path / f"{budget}.jsonl"))
        asked = ["--checkpoint", str(run), "--thinking_budget", str(budget)]
        asked += ["--budget_text", "", "--n", "16"]
        evaluate.main([*asked, "--output", files[-1], "--json"])
    capsys.readouterr()
    evaluate.main(["--scaling", *files, "--json"])
    thinking = json.loads(capsys.readouterr().out)["thinking"]
    tokens, shares = zip(*thinking["points"], strict=True)
    assert list(tokens) == sorted(tokens)
    assert max(shares) == shares[-1] > 2 * shares[0]
    assert set(thinking["rise"]) == {"fitted", "explained", "p"}
