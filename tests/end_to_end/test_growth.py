"""RL that pays for right answers alone, on a base with a rare habit of checking."""

import json
import random

import pytest

from launch import report
from tests.end_to_end import command

pytestmark = pytest.mark.slow


def write_sums(path):
    """Sums to imitate: of ten solutions eight are guesses, off by up to five; two make
    such a guess, recheck it and say the sum."""
    draw, lines = random.Random(0), []
    for left in range(5):
        for right in range(5):
            total = left + right
            guesses = [str(max(0, total + draw.randint(-5, 5))) for _ in range(10)]
            rechecked = [f"{guess}\nWait, recheck.\n{total}" for guess in guesses[8:]]
            row = {"question": f"{left} + {right} =", "answer": str(total)}
            lines.append(json.dumps(row | {"solutions": [*guesses[:8], *rechecked]}))
    path.write_text("\n".join(lines))


@pytest.mark.parametrize("aggregation", ["sequence_mean", "constant"])
def test_length_and_reflection_grow_without_being_paid(tmp_path, capsys, aggregation):
    """REC-03: real runs, without a length term, with the division by each answer's own
    length and with that by a constant: length and accuracy rise by more than two
    standard errors, as right answers are those that recheck; at the end more than twice
    as many completions do so as at the start, and all are longer by half or more."""
    write_sums(tmp_path / "sums.jsonl")
    run = tmp_path / aggregation
    command.run(
        run,
        f"--config.data.train={tmp_path}/sums.jsonl",
        "--config.data.task_options={}",
        "--config.rollout.max_completion_tokens=24",
        "--config.rollout.num_generations=8",
        "--config.batch.prompts_per_step=16",
        "--config.model.hidden_size=64",
        "--config.model.num_layers=2",
        "--config.warmup.steps=400",
        "--config.warmup.batch_size=64",
        "--config.warmup.learning_rate=3e-3",
        "--config.objective.beta=0",
        f"--config.objective.loss_aggregation={aggregation}",
        "--config.steps=20",
        "--config.logging.completions_every_steps=4",
        "--config.checkpoint.every_steps=20",
    )
    report.main(["--growth", str(run), "--json"])
    found = json.loads(capsys.readouterr().out)
    for name in ("length", "accuracy"):
        value, error = found["slopes"][name]
        assert value > 2 * error, name
    first, last = found["logged"][0], found["logged"][-1]
    assert last["reflection"] > 2 * first["reflection"] > 0
    assert last["tokens"] > 1.5 * first["tokens"]
    assert found["slopes"]["reflection"][0] > 0
    assert bool(found["paid"]) == (aggregation == "sequence_mean")
