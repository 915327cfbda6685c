"""Which checkpoints of a run stay when a newer one is there."""

import dataclasses
import datetime
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
from orbax.checkpoint.checkpoint_managers import preservation_policy

from rlvr_jax.config import CheckpointConfig
from rlvr_jax.train.metrics import write_json


class Best:
    """A policy of Orbax: the `count` checkpoints of the highest scores.

    Of equal ones the newer. Scores lie in a file of their own, as a state may be
    evaluated after it was saved: at the end of a run, or as it goes on.
    """

    def __init__(self, count: int, path: pathlib.Path):
        """Reads the scores that earlier processes of the run have noted in `path`."""
        self._count, self._path = count, path
        known = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
        self._scores = {int(step): score for step, score in known.items()}

    def note(self, step: int, score: float) -> None:
        """The score of an evaluation of the state of `step`, saved or not."""
        self._scores[step] = score
        if self._count and jax.process_index() == 0:
            write_json(self._path, {str(at): s for at, s in self._scores.items()})

    def should_preserve(
        self, checkpoints: Sequence[Any], *, context: object
    ) -> Sequence[bool]:
        """Of each checkpoint; one that was not evaluated is no candidate."""
        del context
        scored = [c.step for c in checkpoints if c.step in self._scores]
        ranked = sorted(scored, key=lambda step: (self._scores[step], step))
        best = ranked[-self._count :] if self._count else []
        return [c.step in best for c in checkpoints]


def preservation(
    settings: CheckpointConfig, best: Best
) -> preservation_policy.AnyPreservationPolicy:
    """The newest, the best, and every so many steps."""
    policies = [preservation_policy.LatestN(n=settings.keep), best]
    if settings.keep_every_steps:
        policies.append(
            preservation_policy.EveryNSteps(interval_steps=settings.keep_every_steps)
        )
    return preservation_policy.AnyPreservationPolicy(policies)


@dataclasses.dataclass
class _Numbered:
    """What our policies look at in a checkpoint: its step."""

    step: int
    metrics: dict[str, Any] | None = None
    time: datetime.datetime = datetime.datetime.min


def superseded(
    policy: preservation_policy.AnyPreservationPolicy, steps: Sequence[int]
) -> list[int]:
    """Those of the checkpoints at `steps` that the policy does not keep."""
    known = [_Numbered(step) for step in sorted(steps)]
    stay = policy.should_preserve(
        known, context=preservation_policy.PreservationContext()
    )
    return [c.step for c, stays in zip(known, stay, strict=True) if not stays]
