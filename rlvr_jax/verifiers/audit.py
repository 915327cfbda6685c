"""A second, stricter verifier on a share of the completions, and when to worry.

A policy that learns its verifier's holes shows in one place only: the share that the
training verifier accepts goes up, and the share that a stricter one accepts does not.
Rewards never see the second verdict.
"""

import collections
import math
from collections.abc import Mapping, Sequence

from rlvr_jax.verifiers.base import Status, Verdict
from rlvr_jax.verifiers.noise import Draws

_JUDGED = (Status.CORRECT, Status.WRONG, Status.UNPARSEABLE)
_STANDARD_ERRORS = 2.0


class AuditStream:
    """The last `window` audited completions, and the gap between the two verifiers.

        gap = share accepted in training - share accepted by the stricter verifier

    The alarm sounds when the gap exceeds `max_gap` by more than two standard errors.

    Args:
      share: of the completions that are audited, drawn by their contents.
      max_gap: as far as the two may differ.
      window: how many audited completions the gap is over. It fills up anew after a
        resume.
      seed: of the draw.
    """

    def __init__(self, share: float, max_gap: float, window: int, seed: int = 0):
        """Nothing has been audited yet."""
        self._share, self._seed = share, seed
        self.max_gap = max_gap
        self._pairs: collections.deque[tuple[bool, bool]] = collections.deque(
            maxlen=window
        )

    def chosen(self, problem: str, completions: Sequence[str]) -> list[bool]:
        """Which completions of a group are audited."""
        draws = Draws(self._seed, problem, completions)
        return [
            draws.uniform("audit", index) < self._share
            for index in range(len(completions))
        ]

    def add(
        self, training: Sequence[Verdict], strict: Sequence[Verdict]
    ) -> dict[str, float]:
        """Takes in the verdicts of both on the same completions.

        Pairs of which either failed (crash, timeout, bad reference) are left out.

        Returns:
          the metrics of this step and, under audit/gap and audit/alarm, of the window.
        """
        pairs = [
            (one.status is Status.CORRECT, other.status is Status.CORRECT)
            for one, other in zip(training, strict, strict=True)
            if one.status in _JUDGED and other.status in _JUDGED
        ]
        self._pairs.extend(pairs)
        found = {
            "audit/completions": float(len(pairs)),
            "audit/failures": float(len(training) - len(pairs)),
            "audit/gap": self.gap,
            "audit/alarm": float(self.alarm),
        }
        if pairs:
            found["audit/accuracy"] = sum(one for one, _ in pairs) / len(pairs)
            found["audit/strict_accuracy"] = sum(s for _, s in pairs) / len(pairs)
        accepted = [strict for one, strict in self._pairs if one]
        rejected = [strict for one, strict in self._pairs if not one]
        if accepted:  # what a reader takes for success, and is not
            found["audit/false_share"] = 1 - sum(accepted) / len(accepted)
        if rejected:
            found["audit/missed_share"] = sum(rejected) / len(rejected)
        return found

    @property
    def gap(self) -> float:
        """The gap over the window; 0 before the first audit."""
        if not self._pairs:
            return 0.0
        return sum(one - strict for one, strict in self._pairs) / len(self._pairs)

    @property
    def alarm(self) -> bool:
        """Whether the gap is too large to be chance."""
        count = len(self._pairs)
        if count < 2:
            return False
        gap = self.gap
        squares = sum((one - strict) ** 2 for one, strict in self._pairs)
        variance = (squares - count * gap**2) / (count - 1)
        # Whatever the sample, one more pair could differ: never quite certain.
        error = max(math.sqrt(max(variance, 0.0) / count), 1 / count)
        return gap - _STANDARD_ERRORS * error > self.max_gap

    @property
    def explanation(self) -> str:
        """What the alarm means, in words."""
        return (
            f"audit: over the last {len(self._pairs)} audited completions the training "
            f"verifier accepts {self.gap:+.0%} more than audit.verifier does, and "
            f"audit.max_gap={self.max_gap:.0%}. The policy may be learning a hole of "
            "the training verifier: read `python -m launch.audit read RUN_DIR`"
        )


def last_step_below(shares: Sequence[tuple[int, float]], limit: float) -> int | None:
    """The last step before a share, as of hacked solutions, first reached `limit`.

    That is the checkpoint to train on from, once the hole is mended: a later dip below
    the limit does not make a policy clean again.

    Args:
      shares: (step, share) in the order of the steps.
      limit: the first share that is too much.

    Returns:
      the step, or None if the first one is too much already.

    Example:
      >>> last_step_below([(0, 0.0), (10, 0.02), (20, 0.4), (30, 0.01)], 0.05)
      10
    """
    clean = None
    for step, share in shares:
        if share >= limit:
            break
        clean = step
    return clean


def spread_of_hacking(
    shares: Mapping[str, Sequence[tuple[int, float]]], limit: float, trained: str
) -> tuple[int | None, dict[str, int]]:
    """Whether hacking learned in one domain shows in others, and where it is clean.

    Args:
      shares: domain -> (step, share of hacked solutions) at the same steps in each.
      limit: the first share that is too much.
      trained: the domain whose verifier had the hole, as "code".

    Returns:
      the last step at which every domain was still below the limit (None for none):
      the checkpoint to train on from; and for each other domain that reached it, the
      step at which it did.

    Raises:
      ValueError: `trained` is not among the domains, or their steps differ.

    Example:
      >>> shares = {"code": [(0, 0.0), (9, 0.4)], "maths": [(0, 0.1), (9, 0.1)]}
      >>> spread_of_hacking(shares, 0.2, "code")
      (0, {})
    """
    steps = [[step for step, _ in series] for series in shares.values()]
    if trained not in shares or any(series != steps[0] for series in steps):
        raise ValueError(
            f"spread_of_hacking: needs {trained!r} among {sorted(shares)} and the same "
            "steps in each; measure every domain at every checkpoint."
        )
    worst = [
        (at[0][0], max(share for _, share in at))
        for at in zip(*shares.values(), strict=True)
    ]
    reached = {
        domain: next((step for step, share in series if share >= limit), None)
        for domain, series in shares.items()
        if domain != trained
    }
    found = {domain: step for domain, step in reached.items() if step is not None}
    return last_step_below(worst, limit), found
