"""The batch of a step under the sampling rules: draw, sample, keep what teaches.

    none, mask   one batch of prompts; "mask" takes unanimous groups out of the loss
    dynamic      further batches until prompts_per_step groups are informative
    active       the same, each batch no larger than what is missing asks for

The arrays keep one shape: what a step lacks is filled up with groups outside the loss.
"""

import dataclasses

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
from rlvr_jax.mesh.mesh import row_spec
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train.merging import (
    RolloutMerger,
    informative_first,
    joined_scores,
    mean_metrics,
)
from rlvr_jax.train.rollouts import Roller
from rlvr_jax.train.setup import Setup
from rlvr_jax.types import Rollouts

REFILLS = ("dynamic", "active")


@dataclasses.dataclass(frozen=True)
class Batch:
    """Sampled and scored groups."""

    indices: Int[np.ndarray, " P"]
    rollouts: Rollouts
    scores: Scores
    kept: Bool[np.ndarray, " P"]
    """Groups that the loss takes."""


@dataclasses.dataclass
class Tally:
    """What the rounds of one step came to, kept groups or not."""

    drawn: list[int] = dataclasses.field(default_factory=list)
    rounds: list[tuple[dict[str, float], int]] = dataclasses.field(default_factory=list)
    """Metrics and groups of each."""
    informative: int = 0
    correct: float = 0.0
    tokens: int = 0
    verify_s: float = 0.0


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
          VerifierFailure: as the scorer.
        """
        tally = Tally()
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
        return dataclasses.replace(batch, scores=scores), tally

    def _round(self, weights, step, sampling, size: int, tally: Tally) -> Batch | None:
        """Samples `size` groups; None where no problem is left to draw."""
        fresh = self.curriculum.draw(step, size, tally.drawn)
        if len(fresh) == 0:
            return None
        count = len(fresh)
        # The shape is fixed: places without a problem sample the first one again.
        indices = np.concatenate([fresh, np.full(size - count, fresh[0], fresh.dtype)])
        scored = self._roll(weights, indices, step, sampling)
        scores = scored.scores
        self.curriculum.record(fresh, scores.correct[:count], step)
        kept = np.arange(size) < count
        teaches = kept & informative(
            scores.correct if self.settings.judged_on == "correct" else scores.rewards
        )
        tally.drawn += fresh.tolist()
        tally.rounds.append((scores.metrics, count))
        tally.informative += int(teaches.sum())
        tally.correct += float(scores.correct[:count].mean(axis=1).sum())
        tally.tokens += int(scored.lengths.sum())
        tally.verify_s += scored.verify_s
        kept = kept if self.settings.filter == "none" else teaches
        return Batch(indices, scored.rollouts, scores, kept)

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
        try:
            row_spec(self._setup.mesh, (size, self._setup.batches.num_generations))
        except ValueError:
            return False
        return True

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
            f"{self.size} groups are informative after {len(tally.drawn)} sampled "
            "ones. The problems are too easy or too hard for this policy: change the "
            "data, raise curriculum.max_generation_batches="
            f"{self.settings.max_generation_batches}, or set "
            "curriculum.when_short='mask'."
        )

    def _metrics(
        self, batch: Batch, step: int, sampling: Sampling, tally: Tally
    ) -> dict[str, float]:
        found = {}
        if self.decides:
            groups, kept = len(tally.drawn), int(batch.kept.sum())
            found |= {
                "curriculum/keep_rate": tally.informative / groups,
                "curriculum/batch_filled": kept / self.size,
                "curriculum/sampled_prompts": groups,
                "curriculum/generation_batches": len(tally.rounds),
                "curriculum/sampled_pass_rate": tally.correct / groups,
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
