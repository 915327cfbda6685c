"""Held-out problems: sample n completions each, verify, estimate pass@k."""

import dataclasses

import numpy as np
from flax import nnx

from rlvr_jax.core.passk import mean_interval, pass_at_k
from rlvr_jax.data.prompts import EncodedPrompts
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.rollout.scoring import Scorer
from rlvr_jax.train.batches import PromptBatches

EVALUATION_STREAM = 2**31 - 1
"""Stands for the step in sampling keys: each evaluation draws the same numbers, so that
scores before and after differ by the policy alone."""

Scores = dict[str, tuple[float, float, float]]
"""Metric -> (mean, low, high), a 95 % interval over problems."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What one evaluation needs beside the parameters."""

    graphdef: nnx.GraphDef
    prompts: EncodedPrompts
    batches: PromptBatches
    scorer: Scorer
    sampling: Sampling
    seed: int

    def __call__(self, parameters: nnx.State) -> tuple[Scores, dict[str, float]]:
        """pass@k with intervals for k = 1, 2, 4, ..., n; and plain metrics."""
        count, n = len(self.prompts.problems), self.sampling.num_generations
        correct = np.zeros(count, np.int64)
        ended = np.zeros(count)
        lengths = np.zeros(count)
        size = self.batches.size
        for start in range(0, count, size):
            # The last batch is filled up with prompts that are then not counted.
            rows = np.arange(start, start + size) % count
            tokens, prompt_lengths = self.batches.arrays(rows)
            rollouts = sample(
                self.graphdef,
                parameters,
                tokens,
                prompt_lengths,
                row_keys(self.seed, EVALUATION_STREAM, self.batches.put(rows), n),
                sampling=self.sampling,
            )
            host = fetch(
                (
                    rollouts.completion_tokens,
                    rollouts.completion_lengths,
                    rollouts.ended,
                )
            )
            scores = self.scorer(rows, *host)
            used = slice(0, min(size, count - start))
            correct[rows[used]] = scores.correct.sum(axis=1)[used]
            lengths[rows[used]] = host[1].mean(axis=1)[used]
            ended[rows[used]] = host[2].mean(axis=1)[used]
        ks = sorted({2**i for i in range(n.bit_length()) if 2**i <= n} | {n})
        found = {
            f"pass@{k}": mean_interval(pass_at_k(np.full(count, n), correct, k))
            for k in ks
        }
        return found, {
            "evaluation/truncated_share": 1 - float(ended.mean()),
            "evaluation/length_mean": float(lengths.mean()),
        }


def as_metrics(scores: Scores) -> dict[str, float]:
    """Scores as flat metrics: evaluation/pass@1, evaluation/pass@1_low, ..._high."""
    flat: dict[str, float] = {}
    for name, (mean, low, high) in scores.items():
        flat |= {
            f"evaluation/{name}": mean,
            f"evaluation/{name}_low": low,
            f"evaluation/{name}_high": high,
        }
    return flat
