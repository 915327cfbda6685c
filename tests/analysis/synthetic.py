"""Run folders as a training run writes them, with invented but plausible numbers."""

import math
import pathlib

import numpy as np

from rlvr_jax import config as settings
from rlvr_jax.train import metrics

VERSIONS = {
    "rlvr_jax": "0.1.0",
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "python": "3.11.7",
    "jax": "0.10.2",
    "flax": "0.12.4",
    "devices": "1 x cpu",
    "command": "train --config configs/quickstart.py",
}


def step_metrics(step: int, steps: int, rng: np.random.Generator) -> dict[str, float]:
    """The metrics of one step: a pass rate that rises and an entropy that falls."""
    done = step / steps
    rate = float(
        np.clip(0.3 + 0.5 * (1 - np.exp(-3 * done)) + rng.normal(0, 0.04), 0, 1)
    )
    entropy = 0.25 + 0.6 * np.exp(-3 * done) + rng.normal(0, 0.01)
    length = 90 + 60 * done + rng.normal(0, 5)
    all_correct, all_wrong = rate**4, (1 - rate) ** 4
    rollout, verify, update = 1.4 + length / 200, 0.2 + rng.random() / 10, 1.1
    histogram = {
        f"pass_rate/histogram_{count}": math.comb(4, count)
        * rate**count
        * (1 - rate) ** (4 - count)
        for count in range(5)
    }
    return histogram | {
        "reward/mean": rate - 0.03,
        "reward/std": np.sqrt(rate * (1 - rate)),
        "pass_rate/mean": rate,
        "pass_rate/all_correct": all_correct,
        "pass_rate/all_wrong": all_wrong,
        "advantage/zero_share": all_correct + all_wrong,
        "advantage/abs_mean": 0.8 * (1 - all_correct - all_wrong),
        "loss/total": rng.normal(0, 0.02),
        "loss/policy": rng.normal(0, 0.02),
        "entropy/mean": entropy,
        "entropy/correct": entropy * 0.9,
        "entropy/wrong": entropy * 1.2,
        **{f"entropy/quarter_{k}": entropy * (1.3 - 0.1 * k) for k in range(1, 5)},
        "entropy/covariance": 0.05 * entropy,
        "logprob/mean": -entropy,
        "ratio/std": 0.02 + 0.01 * done,
        "clip/high_probability": 0.1 + 0.05 * done,
        **{f"clip/probability_bin_{k}": 0.01 / k for k in range(1, 6)},
        "clip/low": 0.001 + 0.002 * rng.random(),
        "clip/high": 0.003 + 0.004 * rng.random(),
        "ratio/mean": 1 + rng.normal(0, 1e-3),
        "ratio/max": 1.3 + rng.random(),
        "ratio/min": 0.5 + 0.2 * rng.random(),
        "kl/old_policy": 1e-3 * rng.random(),
        "mismatch/abs_logprob_mean": 1e-6 * (1 + rng.random()),
        "mismatch/abs_logprob_max": 1e-4 * (1 + rng.random()),
        "mismatch/kl": 1e-9 * rng.random(),
        "completion/length_mean": length,
        # As train_step does it: 0 in a step without a correct completion.
        "completion/length_correct": length * 0.9 if step != 3 else 0.0,
        "completion/length_wrong": length * 1.3,
        "completion/length_max": 256.0,
        "completion/truncated_share": 0.02 + 0.05 * rng.random(),
        "grad/norm": 0.4 * np.exp(rng.normal(0, 0.3)),
        "optimizer/learning_rate": 1e-6 * min(1, (step + 1) / 10),
        "optimizer/skipped": 0.0,
        "verifier/correct": rate,
        "verifier/wrong": 0.9 * (1 - rate),
        "verifier/unparseable": 0.09 * (1 - rate),
        "verifier/timeout": 0.01 * (1 - rate),
        "verifier/crash": 0.0,
        "verifier/bad_reference": 0.0,
        "mine/curiosity": rng.random(),
        "verifier/read_reasoning_share": 0.0,
        "format/rate": 0.6 + 0.35 * done,
        "time/rollout_s": rollout,
        "time/verify_s": verify,
        "time/update_s": update,
        "time/step_s": rollout + verify + update + 0.1,
        "speed/tokens_per_s": 64 * length / rollout,
        "memory/peak_rss_gib": 2.1 + 0.2 * min(1, step / 5),
    }


def completion_rows(step: int, rng: np.random.Generator) -> list[dict]:
    """Three completions of a step: one correct, one wrong, one cut."""
    a, b = (int(number) for number in rng.integers(2, 99, 2))
    prompt = f"Question: What is {a} + {b}? Put the answer in \\boxed{{}}.\nAnswer:"
    row = {"prompt": prompt, "reference": str(a + b), "truncated": False}
    right = f"{a} + {b}: I add the tens, then the ones.\nSo it is \\boxed{{{a + b}}}."
    return [
        row
        | {
            "completion": right,
            "answer": str(a + b),
            "verdict": "correct",
            "reward": 1.0,
            "advantage": 0.97,
            "tokens": 24,
        },
        row
        | {
            "completion": f"The sum <b>is</b> {a + b + 1}. \\boxed{{{a + b + 1}}}",
            "answer": str(a + b + 1),
            "verdict": "wrong",
            "reward": 0.0,
            "advantage": -1.02,
            "tokens": 17,
        },
        row
        | {
            "completion": "Wait, let me check again. " * 30,
            "answer": None,
            "verdict": "unparseable",
            "reward": 0.0,
            "advantage": -1.02,
            "tokens": 256,
            "truncated": True,
        },
    ]


def write_run(
    folder: pathlib.Path,
    *,
    steps: int = 60,
    seed: int = 0,
    learning_rate: float = 1e-6,
    only: str = "",
) -> pathlib.Path:
    """A finished run of `steps` steps with four evaluations.

    Of the training metrics, those whose names start with `only` are written.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    resolved = settings.Config(run_dir=str(folder), seed=seed, steps=steps)
    resolved.optimizer.learning_rate = learning_rate
    settings.save(resolved, folder / "config.json")
    metrics.write_json(folder / "versions.json", VERSIONS)
    with metrics.RunWriter(folder, tensorboard=False, resume_step=0) as writer:
        for step in range(steps + 1):
            if step % max(1, steps // 3) == 0:
                writer.metrics(step, evaluation(step / steps))
            if step < steps:
                values = step_metrics(step, steps, rng)
                kept = {k: v for k, v in values.items() if k.startswith(only)}
                writer.metrics(step, kept)
                if step % 10 == 0:
                    writer.completions(step, completion_rows(step, rng))
    scores = {"before": evaluation(0.0), "after": evaluation(1.0)}
    metrics.write_summary(
        folder,
        {
            "seconds": 3.1 * steps,
            "eval": {
                when: {
                    k: [score[f"evaluation/{k}{end}"] for end in ("", "_low", "_high")]
                    for k in ("pass@1", "pass@8")
                }
                for when, score in scores.items()
            },
        },
    )
    return folder


def evaluation(done: float) -> dict[str, float]:
    """Scores that rise from 0.31 and 0.70 with the share of training done."""
    found = {"evaluation/truncated_share": 0.05}
    for k, low, gain in (("pass@1", 0.31, 0.34), ("pass@8", 0.70, 0.16)):
        mean = low + gain * done
        found |= {
            f"evaluation/{k}": mean,
            f"evaluation/{k}_low": mean - 0.06,
            f"evaluation/{k}_high": mean + 0.06,
        }
    return found
