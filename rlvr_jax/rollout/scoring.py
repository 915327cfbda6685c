"""From sampled tokens to rewards: decode, verify in the pool, pay."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float32, Int

from rlvr_jax.config import RewardConfig
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.verifiers.base import Sample, Status, Verdict, rates
from rlvr_jax.verifiers.pool import VerifierPool


class VerifierFailure(RuntimeError):
    """Too many verifiers crashed or timed out for the rewards to mean anything."""


@dataclasses.dataclass(frozen=True)
class Scores:
    """What the verifiers said about P x G completions."""

    rewards: Float32[np.ndarray, "P G"]
    correct: Float32[np.ndarray, "P G"]
    """1 where the verdict is correct, whatever that pays."""
    texts: list[str]
    """Completions without their end token; P * G of them, row by row."""
    verdicts: list[Verdict]
    metrics: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Scorer:
    """Judges completions of known problems by `reward`'s settings."""

    tokenizer: Tokenizer
    problems: Sequence[Problem]
    reward: RewardConfig
    reads: Mapping[str, str]
    """Verifier name -> "answer" or "completion", as `VerifierPool.check` returns."""
    pool: VerifierPool

    def __call__(
        self,
        indices: Int[np.ndarray, " P"],
        tokens: Int[np.ndarray, "P G T"],
        lengths: Int[np.ndarray, "P G"],
        ended: Bool[np.ndarray, "P G"],
    ) -> Scores:
        """Scores the completions `tokens` of problems `indices`.

        reward = wrong + (correct - wrong) * score + format_weight * format score

        Raises:
          VerifierFailure: the share of crashes and timeouts exceeds
            reward.max_failure_rate.
        """
        settings = self.reward
        shape = lengths.shape
        # The end token is no part of the text; a completion that was cut has none.
        used = (lengths - ended).reshape(-1)
        rows = tokens.reshape(-1, tokens.shape[-1])
        texts = [
            self.tokenizer.decode(row[:count].tolist())
            for row, count in zip(rows, used, strict=True)
        ]
        problems = [self.problems[i] for i in indices for _ in range(shape[1])]
        samples = [
            Sample(
                problem.verifier, text, problem.answer, problem.question, problem.meta
            )
            for problem, text in zip(problems, texts, strict=True)
        ]
        formats = []
        if settings.format:
            name = f"format:{settings.format}"
            formats = [dataclasses.replace(s, verifier=name) for s in samples]
        judged = self.pool.verify([*samples, *formats])
        verdicts, format_verdicts = judged[: len(samples)], judged[len(samples) :]
        metrics = {f"verifier/{k}": v for k, v in rates(verdicts).items()}
        metrics["verifier/read_reasoning_share"] = self._read_reasoning(samples)
        self._check_failures(verdicts, metrics)

        scores = np.array([verdict.score for verdict in verdicts], np.float32)
        rewards = settings.wrong + (settings.correct - settings.wrong) * scores
        if format_verdicts:
            format_scores = np.array([v.score for v in format_verdicts], np.float32)
            rewards = rewards + settings.format_weight * format_scores
            metrics["format/rate"] = float(format_scores.mean())
        correct = [verdict.status is Status.CORRECT for verdict in verdicts]
        return Scores(
            rewards=rewards.astype(np.float32).reshape(shape),
            correct=np.array(correct, np.float32).reshape(shape),
            texts=texts,
            verdicts=verdicts,
            metrics=metrics,
        )

    def _read_reasoning(self, samples: list[Sample]) -> float:
        """Share of completions of which some verifier read more than the answer."""
        if self.reward.format and self._reads(f"format:{self.reward.format}"):
            return 1.0
        return float(np.mean([self._reads(sample.verifier) for sample in samples]))

    def _reads(self, verifier: str) -> bool:
        return self.reads[verifier] == "completion"

    def _check_failures(self, verdicts: list[Verdict], metrics: dict[str, float]):
        share = metrics["verifier/crash"] + metrics["verifier/timeout"]
        if share <= self.reward.max_failure_rate:
            return
        failed = (Status.CRASH, Status.TIMEOUT)
        example = next(v for v in verdicts if v.status in failed)
        raise VerifierFailure(
            f"verifiers: {share:.0%} of {len(verdicts)} checks crashed or timed out, "
            "more than reward.max_failure_rate="
            f"{self.reward.max_failure_rate:.0%}; for example {example.status}: "
            f"{example.detail}. Mend the verifier, raise reward.timeout_s, or raise "
            "the limit."
        )
