"""Held-out problems: sample n completions each, verify, estimate pass@k."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from flax import nnx

from rlvr_jax.core.passk import mean_intervals, pass_curve
from rlvr_jax.data.prompts import EncodedPrompts
from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.rollout.scoring import Scorer
from rlvr_jax.rollout.scoring import Scores as Scored
from rlvr_jax.train.batches import PromptBatches
from rlvr_jax.train.cross_questions import CrossQuestions
from rlvr_jax.types import Rollouts

EVALUATION_STREAM = 2**31 - 1
"""Stands for the step in sampling keys: each evaluation draws the same numbers, so that
scores before and after differ by the policy alone."""

Scores = dict[str, tuple[float, float, float]]
"""Metric -> (mean, low, high), a 95 % interval over problems."""


class Batch(NamedTuple):
    """Completions of some problems; rows that only fill it up come last."""

    rows: np.ndarray
    """Places of all its problems."""
    used: int
    """How many of them count."""
    rollouts: Rollouts
    tokens: np.ndarray
    lengths: np.ndarray
    ended: np.ndarray
    scores: Scored
    strict: Scored | None
    """By `Evaluation.strict`."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What one evaluation needs beside the parameters."""

    graphdef: nnx.GraphDef
    prompts: EncodedPrompts
    batches: PromptBatches
    scorer: Scorer
    sampling: Sampling
    seed: int
    strict: Scorer | None = None
    """A second verifier on the same completions, which no reward sees."""
    cross: CrossQuestions | None = None
    """Measures input dependence on the first batch."""
    engine: Engine | None = None
    """Samples in place of the plain sampler where completions are steered (control)."""

    def __call__(self, parameters: nnx.State) -> tuple[Scores, dict[str, float]]:
        """pass@k with intervals for k = 1, 2, 4, ..., n; and plain metrics."""
        count, n = len(self.prompts.problems), self.sampling.num_generations
        correct, strict = np.zeros((count, n)), np.zeros((count, n))
        ended, lengths = np.zeros(count), np.zeros(count)
        depends: dict[str, float] = {}
        for batch in self.sampled(parameters):
            used = slice(0, batch.used)
            rows = batch.rows[used]
            correct[rows] = batch.scores.correct[used]
            lengths[rows] = batch.lengths.mean(axis=1)[used]
            ended[rows] = batch.ended.mean(axis=1)[used]
            if batch.strict is not None:
                strict[rows] = batch.strict.correct[used]
            if self.cross is not None and not depends:
                depends = self.cross(parameters, batch.rollouts, batch.used)
        found = _pass_at_k(correct)
        metrics = {
            "evaluation/truncated_share": 1 - float(ended.mean()),
            "evaluation/length_mean": float(lengths.mean()),
            **depends,
        }
        if self.strict is not None:
            found |= {f"strict_{k}": v for k, v in _pass_at_k(strict).items()}
            metrics["evaluation/strict_gap"] = float(correct.mean() - strict.mean())
            if correct.any():
                metrics["evaluation/strict_rejects"] = float(
                    1 - strict[correct > 0].mean()
                )
        return found, metrics

    def sampled(self, parameters: nnx.State) -> Iterator[Batch]:
        """Samples and verifies all problems, a batch at a time."""
        count, n = len(self.prompts.problems), self.sampling.num_generations
        size = self.batches.size
        for start in range(0, count, size):
            # The last batch is filled up with prompts that are then not counted.
            rows = np.arange(start, start + size) % count
            tokens, prompt_lengths = self.batches.arrays(rows)
            keys = row_keys(self.seed, EVALUATION_STREAM, self.batches.put(rows), n)
            rollouts = self._sample(parameters, tokens, prompt_lengths, keys)
            host = fetch(
                (
                    rollouts.completion_tokens,
                    rollouts.completion_lengths,
                    rollouts.ended,
                )
            )
            yield Batch(
                rows,
                min(size, count - start),
                rollouts,
                *host,
                scores=self.scorer(rows, *host),
                strict=None if self.strict is None else self.strict(rows, *host),
            )

    def _sample(self, parameters, tokens, lengths, keys):
        if self.engine is not None:
            prompts = (np.asarray(tokens), np.asarray(lengths))
            return self.engine(parameters, *prompts, keys)[0]
        return sample(
            self.graphdef, parameters, tokens, lengths, keys, sampling=self.sampling
        )


def strict_scorer(
    scorer: Scorer, problems: Sequence[Problem], verifier: str
) -> Scorer | None:
    """`scorer` with another verifier for all problems; None for ""."""
    if not verifier:
        return None
    return scorer.for_evaluation(
        [dataclasses.replace(problem, verifier=verifier) for problem in problems]
    )


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


def _pass_at_k(correct: np.ndarray) -> Scores:
    """Of verdicts [N, n], for the powers of two up to n, and n itself."""
    n = correct.shape[1]
    ks = sorted({2**i for i in range(n.bit_length()) if 2**i <= n} | {n})
    curve = pass_curve(n, correct.sum(axis=1))[:, [k - 1 for k in ks]]
    found = mean_intervals(curve)
    return {
        f"pass@{k}": (float(mean), float(low), float(high))
        for k, (mean, low, high) in zip(ks, found, strict=True)
    }
