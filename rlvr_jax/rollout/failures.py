"""Verifiers that crash or take too long: how many of a step's, and when that is enough.

Counted per verifier: many good verdicts do not make up for a dead one.
"""

import dataclasses
from collections.abc import Mapping

from rlvr_jax.rollout.rewards import ANSWER
from rlvr_jax.verifiers import judge as judge_lib
from rlvr_jax.verifiers.base import Status, Verdict

_FAILED = (Status.CRASH, Status.TIMEOUT)


class VerifierFailure(RuntimeError):
    """Too many verifiers crashed or timed out for the rewards to mean anything."""


@dataclasses.dataclass(frozen=True)
class Checks:
    """What one verifier was asked, and how often it failed."""

    count: int
    failed: int
    example: Verdict | None
    """One that failed."""

    def __add__(self, other: "Checks") -> "Checks":
        """Both together."""
        return Checks(
            self.count + other.count,
            self.failed + other.failed,
            self.example or other.example,
        )


def checks_of(judged: Mapping[str, Mapping[int, Verdict]]) -> dict[str, Checks]:
    """Of verdicts by verifier and place."""
    found = {}
    for name, verdicts in judged.items():
        failed = [v for v in verdicts.values() if v.status in _FAILED]
        example = failed[0] if failed else None
        found[name] = Checks(len(verdicts), len(failed), example)
    return found


def added(one: Mapping[str, Checks], other: Mapping[str, Checks]) -> dict[str, Checks]:
    """The checks of two batches, by verifier."""
    nothing = Checks(0, 0, None)
    return {
        name: one.get(name, nothing) + other.get(name, nothing)
        for name in dict(one) | dict(other)
    }


def check_failures(checks: Mapping[str, Checks], max_failure_rate: float) -> None:
    """Raises a VerifierFailure where a verifier failed more often than it may."""
    for name, found in checks.items():
        share = found.failed / max(found.count, 1)
        if found.example is None or share <= max_failure_rate:
            continue
        who = "verifiers" if name == ANSWER else f"verifiers: {name}"
        limit = "judge" if name in judge_lib.NAMES else "reward"
        raise VerifierFailure(
            f"{who}: {share:.0%} of {found.count} checks crashed or timed out, more "
            f"than reward.max_failure_rate={max_failure_rate:.0%}; for example "
            f"{found.example.status}: {found.example.detail}. Mend the verifier, raise "
            f"{limit}.timeout_s, or raise the limit."
        )
