"""From sampled tokens to rewards: decode, verify in the pool, pay."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int

from rlvr_jax.config import NoiseConfig, RewardConfig
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.mesh.processes import from_first
from rlvr_jax.rollout.failures import (
    Checks,
    VerifierFailure,
    check_failures,
    checks_of,
)
from rlvr_jax.rollout.model_judge import ModelJudge
from rlvr_jax.rollout.records import notes_on, part_metrics
from rlvr_jax.rollout.rewards import (
    ANSWER,
    Part,
    labels,
    part_values,
    parts_of,
    verifiers_of,
)
from rlvr_jax.rollout.wrong_rewards import needed_verifier, noise_metrics, paid_scores
from rlvr_jax.verifiers import judge as judge_lib
from rlvr_jax.verifiers.audit import AuditStream
from rlvr_jax.verifiers.base import Sample, Status, Verdict, rates
from rlvr_jax.verifiers.judge import Judge
from rlvr_jax.verifiers.pool import VerifierPool

AUDIT = "audit"
_LOG = logging.getLogger(__name__)


class AuditAlarm(VerifierFailure):
    """The training verifier accepts what the stricter one does not (audit.stop)."""


@dataclasses.dataclass(frozen=True)
class Scores:
    """What the verifiers said about P x G completions."""

    rewards: Float32[np.ndarray, "P G"]
    correct: Float32[np.ndarray, "P G"]
    """1 where the verdict is correct, whatever that pays."""
    texts: list[str]
    """Completions without their end token; P * G of them, row by row."""
    verdicts: list[Verdict]
    """Of each row's own verifier."""
    metrics: dict[str, float]
    parts: Float32[np.ndarray, "P G R"]
    """What each part of the reward is worth, before its weight; their weighted sum is
    `rewards`."""
    part_names: tuple[str, ...]
    part_weights: tuple[float, ...]
    notes: list[dict[str, Any]]
    """Per completion, what a reader should know beside reward and verdict."""
    checks: dict[str, Checks] = dataclasses.field(default_factory=dict)
    """By verifier of the reward, how many failed."""


@dataclasses.dataclass(frozen=True)
class Audit:
    """The stricter verifier of the audit stream, and what it saw so far."""

    verifier: str
    stream: AuditStream
    stop: bool = False


@dataclasses.dataclass(frozen=True)
class Scorer:
    """Judges completions of known problems by `reward`'s settings."""

    tokenizer: Tokenizer
    problems: Sequence[Problem]
    reward: RewardConfig
    reads: Mapping[str, str]
    """Verifier name -> "answer" or "completion", as `VerifierPool.check` returns."""
    pool: VerifierPool
    end_ids: tuple[int, ...]
    """Tokens that end a completion and are no part of its text."""
    noise: NoiseConfig = dataclasses.field(default_factory=NoiseConfig)
    judge: Judge | ModelJudge | None = None
    audit: Audit | None = None

    def for_evaluation(self, problems: Sequence[Problem]) -> "Scorer":
        """The same verdicts on other problems, and nothing else to pay or to watch."""
        plain = dataclasses.replace(self.reward, parts=ANSWER, format="")
        return dataclasses.replace(
            self, problems=problems, reward=plain, noise=NoiseConfig(), audit=None
        )

    def __call__(
        self,
        indices: Int[np.ndarray, " P"],
        tokens: Int[np.ndarray, "P G T"],
        lengths: Int[np.ndarray, "P G"],
        ended: Bool[np.ndarray, "P G"],
    ) -> Scores:
        """As `judged`, for completions that make up a whole batch.

        Raises:
          VerifierFailure: the share of crashes and timeouts exceeds
            reward.max_failure_rate.
        """
        scores = self.judged(indices, tokens, lengths, ended)
        check_failures(scores.checks, self.reward.max_failure_rate)
        return scores

    def judged(
        self,
        indices: Int[np.ndarray, " P"],
        tokens: Int[np.ndarray, "P G T"],
        lengths: Int[np.ndarray, "P G"],
        ended: Bool[np.ndarray, "P G"],
    ) -> Scores:
        """Scores the completions `tokens` of problems `indices`.

        Failures of the verifiers are counted, in `Scores.checks`.

        reward = sum over `reward.parts` of weight * value, the value of `answer` being
        wrong + (correct - wrong) * score

        Raises:
          AuditAlarm: the audit stream's alarm, under audit.stop.
        """
        texts = self._decode(tokens, lengths, ended)
        problems = [self.problems[i] for i in indices]
        parts = parts_of(self.reward)
        asked = self._asked(problems, texts, parts, lengths.shape[1])
        judged = self._judge(asked)
        verdicts = list(judged[ANSWER].values())
        metrics = {f"verifier/{k}": v for k, v in rates(verdicts).items()}
        metrics["verifier/read_reasoning_share"] = self._read_reasoning(asked)
        metrics |= self._watch(judged)

        shape = lengths.shape
        scores = {n: _scores(found, shape) for n, found in judged.items()}
        scores["ended"] = ended.astype(np.float32)
        scores["truncated"] = 1 - scores["ended"]
        true = scores[ANSWER]
        true = np.where(true >= self.reward.min_score, true, np.float32(0))
        ids = [problem.id for problem in problems]
        paid = paid_scores(self.noise, true, judged, texts, ids)
        metrics |= noise_metrics(self.noise, true, paid, texts)
        scores[ANSWER] = paid
        worth = self._worth(parts, scores, problems)
        weights = np.array([part.weight for part in parts], np.float32)
        names = labels(parts)
        metrics |= part_metrics(self.reward, names, worth * weights, scores)
        if self.judge is not None:
            metrics |= self.judge.metrics()
        is_correct = [verdict.status is Status.CORRECT for verdict in verdicts]
        correct = np.array(is_correct, np.float32).reshape(shape)
        worth, correct = from_first((worth, correct))
        return Scores(
            rewards=(worth * weights).sum(axis=-1, dtype=np.float32),
            correct=correct,
            texts=texts,
            verdicts=verdicts,
            metrics=metrics,
            parts=worth,
            part_names=tuple(names),
            part_weights=tuple(part.weight for part in parts),
            notes=notes_on(names, worth, true, paid, judged.get(AUDIT, {})),
            checks=checks_of({n: judged[n] for n in judged if n != AUDIT}),
        )

    def _decode(self, tokens, lengths, ended) -> list[str]:
        # The end token is no part of the text; one that was cut has none, and one
        # that a text ended (control.stop) keeps it.
        rows = tokens.reshape(-1, tokens.shape[-1])
        texts = []
        for row, count, closed in zip(rows, lengths.flat, ended.flat, strict=True):
            has_end = closed and count > 0 and row[count - 1] in self.end_ids
            texts.append(self.tokenizer.decode(row[: count - has_end].tolist()))
        return texts

    def _asked(
        self,
        problems: Sequence[Problem],
        texts: Sequence[str],
        parts: Sequence[Part],
        generations: int,
    ) -> dict[str, dict[int, Sample]]:
        """Which verifier sees which completions: name -> place in the batch -> sample.

        A part that is about certain data rows is asked about those alone.
        """
        own = {
            i: Sample(p.verifier, text, p.answer, p.question, p.meta)
            for i, (text, p) in enumerate(
                zip(
                    texts,
                    (p for p in problems for _ in range(generations)),
                    strict=True,
                )
            )
        }
        asked = {ANSWER: own}
        for part in parts:
            for name in verifiers_of([part]):
                found = asked.setdefault(name, {})
                for i, sample in own.items():
                    if part.applies_to(sample.meta):
                        found[i] = dataclasses.replace(sample, verifier=name)
        if name := needed_verifier(self.noise):
            asked[name] = {
                i: dataclasses.replace(sample, verifier=name)
                for i, sample in own.items()
            }
        if self.audit is not None:
            asked[AUDIT] = {}
            for row, problem in enumerate(problems):
                places = range(row * generations, (row + 1) * generations)
                chosen = self.audit.stream.chosen(
                    problem.id, [texts[i] for i in places]
                )
                asked[AUDIT] |= {
                    i: dataclasses.replace(own[i], verifier=self.audit.verifier)
                    for i, is_chosen in zip(places, chosen, strict=True)
                    if is_chosen
                }
        return asked

    def _judge(
        self, asked: dict[str, dict[int, Sample]]
    ) -> dict[str, dict[int, Verdict]]:
        """All verdicts; the judge's calls wait while the pool works."""
        samples = [sample for found in asked.values() for sample in found.values()]
        for_judge = [s for s in samples if s.verifier in judge_lib.NAMES]
        if for_judge and self.judge is None:
            raise VerifierFailure(
                f"verifiers: {for_judge[0].verifier!r} needs a model: set judge.url "
                "and judge.model, or judge.path"
            )
        waiting = self.judge.submit(for_judge) if self.judge and for_judge else list
        pooled = iter(
            self.pool.verify([s for s in samples if s.verifier not in judge_lib.NAMES])
        )
        by_judge = iter(waiting())
        verdicts = (
            next(by_judge if sample.verifier in judge_lib.NAMES else pooled)
            for sample in samples
        )
        return {
            name: {i: next(verdicts) for i in found} for name, found in asked.items()
        }

    def _worth(
        self,
        parts: Sequence[Part],
        scores: dict[str, Float32[np.ndarray, "P G"]],
        problems: Sequence[Problem],
    ) -> Float32[np.ndarray, "P G R"]:
        """What each part is worth before its weight."""
        passed = {name: score >= 1 for name, score in scores.items()}
        span = np.float32(self.reward.correct - self.reward.wrong)
        values = scores | {
            ANSWER: np.float32(self.reward.wrong) + span * scores[ANSWER]
        }
        shape = scores[ANSWER].shape
        worth = []
        for part in parts:
            applies = [part.applies_to(problem.meta) for problem in problems]
            where = np.broadcast_to(np.array(applies)[:, None], shape)
            worth.append(part_values(part, values, passed, where))
        return np.stack(worth, axis=-1).astype(np.float32)

    def _watch(self, judged: dict[str, dict[int, Verdict]]) -> dict[str, float]:
        """Feeds the audit stream; says so, or stops, when the verifiers part ways."""
        if self.audit is None:
            return {}
        strict, stream = judged[AUDIT], self.audit.stream
        training = [judged[ANSWER][i] for i in strict]
        metrics = stream.add(training, list(strict.values()))
        if stream.alarm:
            if self.audit.stop:
                raise AuditAlarm(stream.explanation)
            _LOG.warning(stream.explanation)
        return metrics

    def _read_reasoning(self, asked: dict[str, dict[int, Sample]]) -> float:
        """Share of completions of which some verifier read more than the answer.

        The audit is none of the reward's business and does not count.
        """
        read = {
            i
            for name, found in asked.items()
            if name != AUDIT
            for i, sample in found.items()
            if self.reads.get(sample.verifier, "answer") == "completion"
        }
        return len(read) / max(len(asked[ANSWER]), 1)


def _scores(
    found: dict[int, Verdict], shape: tuple[int, ...]
) -> Float32[np.ndarray, "P G"]:
    """Scores in their places; 0 where the verifier was not asked."""
    scores = np.zeros(int(np.prod(shape)), np.float32)
    for i, verdict in found.items():
        scores[i] = verdict.score
    return scores.reshape(shape)
