"""How often a verifier is right: accuracy, false positives, false negatives, speed."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from rlvr_jax.verifiers.base import Sample, Status, Verdict


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A row with the verdict it should get and the one it got."""

    name: str
    kind: str
    expected: bool | None
    """Whether the verifier should accept it; None: nobody knows."""
    contested: bool
    """Experts differ on what is right; left out of the headline figures."""
    sample: Sample
    verdict: Verdict

    @property
    def accepted(self) -> bool:
        """The verifier calls it correct."""
        return self.verdict.status is Status.CORRECT

    @property
    def is_error(self) -> bool:
        """The verifier is not right about it, or nobody knows and it is not correct."""
        return self.accepted != (self.expected is not False)


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Rows, accuracy (0 for no rows), false positives and negatives (counts)."""
    wrong = [outcome for outcome in outcomes if outcome.is_error]
    return {
        "rows": len(outcomes),
        "accuracy": 1 - len(wrong) / len(outcomes) if outcomes else 0.0,
        "false_positives": sum(outcome.accepted for outcome in wrong),
        "false_negatives": sum(
            not outcome.accepted and outcome.expected is True for outcome in wrong
        ),
    }


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All figures of a file, with and without contested rows, and the speed.

    `rows_per_s` is for one core: rows over the sum of the seconds each took.
    """
    seconds = [outcome.verdict.seconds for outcome in outcomes]
    statuses = [outcome.verdict.status for outcome in outcomes]
    return {
        "rows": len(outcomes),
        "uncontested": figures([each for each in outcomes if not each.contested]),
        "all": figures(outcomes),
        "timeouts": statuses.count(Status.TIMEOUT),
        "crashes": statuses.count(Status.CRASH),
        "rows_per_s": len(outcomes) / max(sum(seconds), 1e-9),
        "slowest_s": max(seconds, default=0.0),
    }
