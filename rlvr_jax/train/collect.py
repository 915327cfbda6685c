"""The batch of a step under the sampling rules: draw, sample, keep what teaches.

    none, mask   one batch of prompts; "mask" takes unanimous groups out of the loss
    dynamic      further batches until prompts_per_step groups are informative
    active       the same, each batch no larger than what is missing asks for

The arrays keep one shape: what a step lacks is filled up with groups outside the loss.
"""

import dataclasses
import time
from typing import Any

import numpy as np
from flax import nnx
from jaxtyping import Bool, Int

from rlvr_jax.data.curriculum import (
    BatchShort,
    Curriculum,
    informative,
    looks_back,
    reads_pass_rates,
)
from rlvr_jax.mesh.mesh import rows_divide
from rlvr_jax.rollout.failures import Checks, added, check_failures
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train.merging import (
    RolloutMerger,
    informative_first,
    joined_scores,
    mean_metrics,
)
from rlvr_jax.train.rollouts import Roller, Scored
from rlvr_jax.train.setup import Setup
from rlvr_jax.types import Rollouts

REFILLS = ("dynamic", "active")


@dataclasses.dataclass(frozen=True)
class Batch:
    """Sampled and scored groups."""

    indices: Int[np.ndarray, " P"]
    rollouts: Rollouts
    """On the mesh of training once the batch is whole."""
    scores: Scores
    kept: Bool[np.ndarray, " P"]
    """Groups that the loss takes."""


@dataclasses.dataclass
class Tally:
    """What the rounds of one step came to, kept groups or not."""

    drawn: list[int] = dataclasses.field(default_factory=list)
    judged: int = 0
    """Groups that the verifiers saw."""
    rounds: list[tuple[dict[str, float], int]] = dataclasses.field(default_factory=list)
    """Metrics and groups of each."""
    checks: dict[str, Checks] = dataclasses.field(default_factory=dict)
    """Of the verifiers."""
    informative: int = 0
    correct: float = 0.0
    tokens: int = 0
    verify_s: float = 0.0
    collect_s: float = 0.0
    """All that the step's batch took, verifying included, wherever it was done."""


class Collector:
    """Collects the batches of a run."""

    def __init__(self, setup: Setup, curriculum: Curriculum):
        """Compiles nothing yet."""
        self.settings, self.curriculum = setup.config.curriculum, curriculum
        self.size = setup.batches.size
        self.decides = self.settings.filter != "none" or looks_back(self.settings)
        """Whether some groups may be outside the loss."""
        self._setup = setup
        self._roll = Roller(setup)
        self._merge = RolloutMerger()

    def __call__(
        self, weights: nnx.State, step: int, sampling: Sampling
    ) -> tuple[Batch, Tally]:
        """The batch of a step, and what it took.

        Args:
          weights: of the policy that samples.
          step: its number.
          sampling: of the step's stage.

        Raises:
          CurriculumExhausted: the rules leave no problem to draw.
          BatchShort: the bound on generation was hit, under when_short="error".
          VerifierFailure: reward.max_failure_rate is exceeded in the step so far.
        """
        begun, tally = time.perf_counter(), Tally()
        batch = self._round(weights, step, sampling, self.size, tally)
        assert batch is not None  # an empty first draw is an error
        if self.settings.filter in REFILLS:
            left = self.size * (self.settings.max_generation_batches - 1)
            while not batch.kept.all():
                count = self._refill(int((~batch.kept).sum()))
                if count > left:
                    break
                more = self._round(weights, step, sampling, count, tally)
                if more is None:  # the step has drawn every problem there is
                    break
                left -= count
                batch = self._merged(batch, more)
            self._check_full(batch, step, tally)
        metrics = mean_metrics(tally.rounds) | self._metrics(
            batch, step, sampling, tally
        )
        scores = dataclasses.replace(batch.scores, metrics=metrics)
        rollouts = self._setup.sampler.for_training(batch.rollouts)
        tally.collect_s = time.perf_counter() - begun
        return dataclasses.replace(batch, rollouts=rollouts, scores=scores), tally

    def state(self) -> dict[str, Any]:
        """What the next batch depends on beside weights and step; costs nothing."""
        return {"curriculum": self.curriculum.state()}

    def as_json(self, state: dict[str, Any]) -> dict[str, Any]:
        """What `state` gave, as JSON values for a checkpoint."""
        return state

    def restore(self, saved: dict[str, Any]) -> None:
        """Puts back what `as_json` gave."""
        self.curriculum.restore(saved["curriculum"])

    def _round(self, weights, step, sampling, size: int, tally: Tally) -> Batch | None:
        """Samples `size` groups; None where no problem is left to draw."""
        found = self._sampled(weights, step, sampling, size, tally)
        if found is None:
            return None
        indices, count, scored = found
        scores = scored.scores
        tally.checks = added(tally.checks, scores.checks)
        check_failures(tally.checks, self._setup.config.reward.max_failure_rate)
        self.curriculum.record(indices[:count], scores.correct[:count], step)
        kept = np.arange(size) < count
        teaches = kept & informative(
            scores.correct if self.settings.judged_on == "correct" else scores.rewards
        )
        tally.judged += count
        tally.rounds.append((scores.metrics, count))
        tally.informative += int(teaches.sum())
        tally.correct += float(scores.correct[:count].mean(axis=1).sum())
        tally.verify_s += scored.verify_s
        kept = kept if self.settings.filter == "none" else teaches
        return Batch(indices, scored.rollouts, scores, kept)

    def _sampled(
        self, weights, step, sampling, size: int, tally: Tally
    ) -> tuple[Int[np.ndarray, " P"], int, Scored] | None:
        """`size` groups, how many of them count, and their scores."""
        fresh = self.curriculum.draw(step, size, tally.drawn)
        if len(fresh) == 0:
            return None
        # The shape is fixed: places without a problem sample the first one again.
        indices = filled_up(fresh, size)
        scored = self._roll(weights, indices, step, sampling)
        tally.drawn += fresh.tolist()
        tally.tokens += int(scored.lengths.sum())
        return indices, len(fresh), scored

    def _refill(self, missing: int) -> int:
        """Prompts of the next round."""
        if self.settings.filter == "dynamic":
            return self.size
        # Halves only, so that few programs are compiled.
        size = self.size
        while size % 2 == 0 and size // 2 >= missing and self._fits(size // 2):
            size //= 2
        return size

    def _fits(self, size: int) -> bool:
        shape = (size, self._setup.batches.num_generations)
        if not rows_divide(self._setup.sampler.mesh, shape):
            return False
        at_once = self._setup.config.rollout.prompts_at_once
        return at_once == 0 or size <= at_once or size % at_once == 0

    def _merged(self, held: Batch, more: Batch) -> Batch:
        rows = informative_first(held.kept, more.kept)
        return Batch(
            np.concatenate([held.indices, more.indices])[rows],
            self._merge(held.rollouts, more.rollouts, rows),
            joined_scores([held.scores, more.scores], rows),
            np.concatenate([held.kept, more.kept])[rows],
        )

    def _check_full(self, batch: Batch, step: int, tally: Tally) -> None:
        if batch.kept.all() or self.settings.when_short == "mask":
            return
        raise BatchShort(
            f"curriculum: at step {step} only {int(batch.kept.sum())} of "
            f"{self.size} groups are informative after {tally.judged} sampled "
            "ones. The problems are too easy or too hard for this policy: raise "
            "curriculum.max_generation_batches="
            f"{self.settings.max_generation_batches}, or set "
            "curriculum.when_short='mask', and start the same command again; or take "
            "other data, in another run_dir."
        )

    def _metrics(
        self, batch: Batch, step: int, sampling: Sampling, tally: Tally
    ) -> dict[str, float]:
        found = {}
        if self.decides:
            kept = int(batch.kept.sum())
            found |= {
                "curriculum/keep_rate": tally.informative / tally.judged,
                "curriculum/batch_filled": kept / self.size,
                "curriculum/sampled_prompts": len(tally.drawn),
                "curriculum/generation_batches": len(tally.rounds),
                "curriculum/sampled_pass_rate": tally.correct / tally.judged,
                "curriculum/tokens_per_kept_group": tally.tokens / max(kept, 1),
            }
        if reads_pass_rates(self.settings):
            eligible = self.curriculum.eligible(step)
            found["curriculum/eligible_share"] = float(eligible.mean())
        if len(self.curriculum.stages) > 1:
            found |= {
                "curriculum/stage": self.curriculum.stage(step),
                "curriculum/max_completion_tokens": sampling.max_completion_tokens,
            }
        return found


def filled_up(indices: Int[np.ndarray, " K"], size: int) -> Int[np.ndarray, " P"]:
    """`size` problems: those given, and the first of them again in the places left.

    Example:
      >>> filled_up(np.array([3, 1]), 4)
      array([3, 1, 3, 3])
    """
    spare = np.full(size - len(indices), indices[0], indices.dtype)
    return np.concatenate([indices, spare])
