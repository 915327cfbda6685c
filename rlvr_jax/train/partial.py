"""Batches from completions that may take several steps (rollout.token_budget).

    draw      new groups, until prompts_per_step * (1 + waiting_batches) are under way
    sample    each unfinished completion, up to token_budget tokens more
    finish    whatever the budget: groups that would grow older than max_group_age (or
              drop them), and the oldest ones where too few are complete for a batch
    hand over complete groups, oldest first; the others wait for the next policy

A group is handed over at most max_group_age steps after it was drawn. Completions are
stopped as in Kimi k1.5 (https://arxiv.org/abs/2501.12599), and more are begun than a
step needs as in APRIL (https://arxiv.org/abs/2509.18521).
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from rlvr_jax.data.curriculum import Curriculum, CurriculumExhausted
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.rollout.completions import joined
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.passage import EngineStats
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.train.collect import Batch, Collector, Tally, filled_up
from rlvr_jax.train.rollouts import Scored, engine_for, told_apart
from rlvr_jax.train.setup import Setup
from rlvr_jax.train.waiting import Group, Waiting, packed, unpacked


@dataclasses.dataclass
class _Step:
    """What one step did beyond its batch."""

    number: int = -1
    stats: list[EngineStats] = dataclasses.field(default_factory=list)
    finished: int = 0
    """Groups that were finished whatever the budget."""
    dropped: int = 0


class PartialCollector(Collector):
    """Collects the batches of a run whose completions may wait for later steps."""

    def __init__(self, setup: Setup, curriculum: Curriculum):
        """Compiles nothing yet."""
        super().__init__(setup, curriculum)
        self._rollout = setup.config.rollout
        self._waiting = Waiting(setup.sampled_batches, setup.config.seed)
        self._now = _Step()

    def state(self) -> dict[str, Any]:
        """As of every collector, and the groups under way."""
        return super().state() | {"waiting": self._waiting.groups}

    def as_json(self, state: dict[str, Any]) -> dict[str, Any]:
        """The groups as text."""
        return super().as_json(state) | {"waiting": packed(state["waiting"])}

    def restore(self, saved: dict[str, Any]) -> None:
        """Puts back what `as_json` gave."""
        super().restore(saved)
        self._waiting.groups = unpacked(saved["waiting"])

    def _sampled(self, weights, step, sampling: Sampling, size: int, tally: Tally):
        """Up to `size` complete groups; in a step's first round after a pass."""
        go_on = _Pass(self, weights, step, sampling)
        if self._now.number != step:
            self._now = _Step(step)
            self._draw(go_on, self._room(), tally)
            go_on(self._waiting.incomplete(), self._rollout.token_budget)
            self._overdue(go_on)
        missing = size - sum(group.is_complete for group in self._waiting.groups)
        if missing > len(self._waiting.incomplete()):  # a later round of a filter
            self._draw(go_on, missing - len(self._waiting.incomplete()), tally)
        if missing > 0:
            go_on(self._waiting.incomplete()[:missing], None)
        tally.tokens += sum(stats.tokens for stats in go_on.stats)
        taken = self._waiting.take(size)
        if not taken:
            return None
        indices = np.array([group.index for group in taken])
        scored = self._scored(go_on, taken, size)
        return filled_up(indices, size), len(taken), scored

    def _room(self) -> int:
        """Groups that may be begun."""
        allowed = self.size * (1 + self._rollout.waiting_batches)
        return max(0, allowed - len(self._waiting.groups))

    def _draw(self, go_on: "_Pass", count: int, tally: Tally) -> None:
        """Begins up to `count` groups."""
        if count == 0:
            return
        try:
            fresh = self.curriculum.draw(go_on.step, count, tally.drawn)
        except CurriculumExhausted:
            if not self._waiting.groups:
                raise
            return
        # A problem that the step has drawn before gets other keys.
        problems = len(self._setup.train.problems)
        named = told_apart(np.concatenate([tally.drawn, fresh]).astype(int), problems)
        self._waiting.add(go_on.engine, fresh, named[len(tally.drawn) :], go_on.step)
        tally.drawn += fresh.tolist()

    def _overdue(self, go_on: "_Pass") -> None:
        """Finishes, or drops, what could not be handed over in time otherwise."""
        limit = self._rollout.max_group_age
        ages = [go_on.step - group.step for group in self._waiting.groups]
        due = self._waiting.groups[: due_now(ages, self.size, limit)]
        late = [group for group in due if not group.is_complete]
        if self._rollout.overdue == "drop":
            gone = [group for group in late if go_on.step - group.step >= limit]
            self._waiting.drop(gone)
            self._now.dropped += len(gone)
            late = [group for group in late if go_on.step - group.step < limit]
        go_on(late, None)

    def _scored(self, go_on: "_Pass", taken: list[Group], size: int) -> Scored:
        """Verdicts of complete groups; the first one again in the places left."""
        groups = [*taken, *[taken[0]] * (size - len(taken))]
        prompts = self._waiting.prompts(groups)
        found = [g.prompt_routes for g in groups if g.prompt_routes is not None]
        routes = np.stack(found) if found else None
        rollouts = joined([group.rows for group in groups]).as_rollouts(
            prompts.tokens,
            prompts.lengths,
            routes,
            steered=go_on.engine.control != Control(),
            with_versions=True,
        )
        batches = dataclasses.replace(self._setup.sampled_batches, size=size)
        host = (
            rollouts.completion_tokens,
            rollouts.completion_lengths,
            rollouts.ended,
        )
        tokens, lengths, ended = (np.asarray(array) for array in host)
        begun = time.perf_counter()
        indices = np.array([group.index for group in groups])
        scores = self._setup.scorer.judged(indices, tokens, lengths, ended)
        verify_s = time.perf_counter() - begun
        put = lambda leaf: batches.put(np.asarray(leaf))
        return Scored(jax.tree.map(put, rollouts), scores, lengths, verify_s)

    def _metrics(
        self, batch: Batch, step: int, sampling: Sampling, tally: Tally
    ) -> dict[str, float]:
        found = super()._metrics(batch, step, sampling, tally)
        mask, versions = fetch((batch.rollouts.token_mask, batch.rollouts.versions))
        gaps = step - versions[mask & batch.kept[:, None, None]]
        newest = self._version(step)
        slot_steps = sum(stats.slot_steps for stats in self._now.stats)
        return found | {
            "rollout/token_gap_mean": float(gaps.mean()) if gaps.size else 0.0,
            "rollout/token_gap_max": int(gaps.max(initial=0)),
            "rollout/old_token_share": float((step - gaps < newest).mean())
            if gaps.size
            else 0.0,
            "rollout/waiting_groups": len(self._waiting.groups),
            "rollout/finished_groups": self._now.finished,
            "rollout/dropped_groups": self._now.dropped,
            "rollout/decode_steps": sum(s.decode_steps for s in self._now.stats),
            "rollout/padding_share": 1 - tally.tokens / max(slot_steps, 1),
        }

    def _version(self, step: int) -> int:
        """Of the policy that samples the batch of a step (train/ahead.py)."""
        return step - min(step, self._rollout.staleness)


def due_now(ages: Sequence[int], per_step: int, max_age: int) -> int:
    """How many of the oldest groups must be handed over in this step.

    Of those that have j steps left, or fewer, j steps can take j * per_step; the others
    are due, or some would grow older than `max_age`.

    Args:
      ages: of all groups under way, oldest first, in steps.
      per_step: groups that a step takes.
      max_age: at which a group is handed over at the latest.

    Example:
      >>> due_now([2, 2, 2, 0], per_step=2, max_age=2)
      3
      >>> due_now([1, 1, 1, 0], per_step=2, max_age=2)
      1
    """
    found = 0
    for left in range(max_age + 1):
        soon = sum(age >= max_age - left for age in ages)
        found = max(found, soon - left * per_step)
    return found


class _Pass:
    """Goes on with groups under the policy of a step."""

    def __init__(self, collector: PartialCollector, weights, step: int, sampling):
        self.step, self.weights = step, weights
        self.engine = engine_for(collector._setup, sampling)
        self.stats: list[EngineStats] = []
        self._collector = collector

    def __call__(self, groups: list[Group], budget: int | None) -> None:
        """Each unfinished completion gets `budget` tokens more; None finishes it."""
        collector = self._collector
        if budget is None:
            collector._now.finished += len(groups)
        stats = collector._waiting.advance(
            self.engine,
            self.weights,
            groups,
            budget,
            collector._version(self.step),
            1.0 if budget is None else collector._rollout.pause_share,
        )
        self.stats.append(stats)
        collector._now.stats.append(stats)
