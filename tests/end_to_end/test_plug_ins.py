"""The same loop with a learned reward model or with a checker, by one setting."""

import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.preferences import bradley_terry_loss
from tests.end_to_end import command, learned_reward

SHORT = (
    "--config.steps=2",
    "--config.warmup.steps=30",
    "--config.evaluation.prompts=0",
    "--config.evaluation.num_generations=8",
    "--config.checkpoint.every_steps=0",
    "--config.audit.verifier=math",
    "--config.audit.share=1",
)


def fitted():
    """Weights that prefer numbers to words: 64 comparisons, seed 0."""
    rng = np.random.default_rng(0)
    chosen = [str(rng.integers(0, 20)) for _ in range(64)]
    rejected = ["".join(rng.choice(list("+ abc"), 3)) for _ in range(64)]
    good, bad = (
        jnp.array([learned_reward.features(text) for text in texts])
        for texts in (chosen, rejected)
    )
    weights = jnp.zeros(3)
    loss = lambda w: bradley_terry_loss(good @ w, bad @ w).mean()
    for _ in range(100):
        weights = weights - 0.5 * jax.grad(loss)(weights)
    return [float(w) for w in weights]


@pytest.mark.slow
def test_a_reward_model_or_a_checker_by_one_setting(tmp_path):
    """OBJ-17: RLHF and RLVR differ in the plug-in alone: the two configurations in one
    setting, both runs learn, and only the model's pay is what no check gives."""
    model = pathlib.Path(
        shutil.copy(learned_reward.__file__, tmp_path / "learned_reward.py")
    )
    model.with_name("weights.json").write_text(json.dumps(fitted()))
    paid, configs = {}, {}
    for name, verifier in (("checker", "math"), ("model", f"{model}:score")):
        run_dir = tmp_path / name
        command.run(
            run_dir,
            *SHORT,
            f"--config.reward.verifier={verifier}",
            "--config.reward.check_references=0",
        )
        steps = [m for m in command.metrics(run_dir) if "reward/mean" in m]
        assert len(steps) == 2
        rows = (run_dir / "completions.jsonl").read_text().splitlines()
        paid[name] = [json.loads(row)["reward"] for row in rows]
        configs[name] = json.loads((run_dir / "config.json").read_text())
        assert all(step["audit/completions"] > 0 for step in steps)
    assert set(paid["checker"]) <= {0.0, 1.0}
    assert all(0 < reward < 1 for reward in paid["model"])
    assert len(set(paid["model"])) > 2
    one, other = configs["checker"], configs["model"]
    assert {name for name in one if one[name] != other[name]} == {"run_dir", "reward"}
    changed = {n for n in one["reward"] if one["reward"][n] != other["reward"][n]}
    assert changed == {"verifier"}


def test_the_model_prefers_what_was_chosen():
    """OBJ-17: held-out comparisons of the same kind (seed 1)."""
    weights, rng = np.array(fitted()), np.random.default_rng(1)
    value = lambda text: weights @ learned_reward.features(text)
    for _ in range(50):
        number = str(rng.integers(0, 20))
        assert value(number) > value("".join(rng.choice(list("+ abc"), 3)))
    assert value("999") == pytest.approx(value("123"))  # it does no sums
