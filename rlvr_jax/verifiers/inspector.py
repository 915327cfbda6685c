r"""Checkers side by side: what each accepts, and what its errors have in common.

A checker is not known by its error rate alone. Two with equal rates can differ in what
they miss, and a policy finds the pattern that pays.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.pool import VerifierPool

CHECKERS = (
    "math",
    "exact",
    "weak:exact_string",
    "weak:any_boxed",
    "weak:last_number",
    "weak:mentions",
)
QUESTION = "Two fair coins are flipped. What is the probability of exactly one head?"
REFERENCE = "1/2"
EIGHT = (
    (r"HT and TH out of four, so \boxed{1/2}", True),
    (r"2 of the 4 outcomes: \boxed{\frac{1}{2}}", True),
    (r"The probability is \boxed{0.5}", True),
    ("One head comes up half the time, so the answer is 50%", True),
    (r"It is \boxed{1/2} or \boxed{1/4}", False),
    (
        "Each flip is fair and shows a head with probability 1/2. The flips are "
        "independent, so by the product rule the answer follows at once and with full "
        r"rigour: \boxed{1/4}",
        False,
    ),
    (r"Counting the cases gives \boxed{2/4... no 3/4}", False),
    (r"It is \boxed{1/2}, by going through all of 4 cases", True),
)
"""Outputs for `QUESTION`, and whether each is right."""


@dataclasses.dataclass(frozen=True)
class Counts:
    """How a checker did on rows whose truth is known."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0

    @property
    def true_positive_rate(self) -> float | None:
        """Accepted / right; None without right ones."""
        right = self.true_positives + self.false_negatives
        return self.true_positives / right if right else None

    @property
    def false_positive_rate(self) -> float | None:
        """Accepted / wrong; None without wrong ones."""
        wrong = self.false_positives + self.true_negatives
        return self.false_positives / wrong if wrong else None


def eight_samples() -> list[Sample]:
    """The eight outputs, to be given a verifier."""
    return [Sample("", text, REFERENCE, QUESTION) for text, _ in EIGHT]


def matrix(
    samples: Sequence[Sample], checkers: Sequence[str], pool: VerifierPool
) -> dict[str, list[Verdict]]:
    """Each checker's verdict on each sample, whatever verifier the sample names."""
    asked = [
        dataclasses.replace(sample, verifier=name)
        for name in checkers
        for sample in samples
    ]
    verdicts = pool.verify(asked)
    count = len(samples)
    return {
        name: verdicts[i * count : (i + 1) * count] for i, name in enumerate(checkers)
    }


def confusion(
    verdicts: Sequence[Verdict],
    right: Sequence[bool],
    completions: Sequence[str] = (),
    patterns: Mapping[str, str] | None = None,
) -> dict[str, Counts]:
    """A checker's hits and errors, over all rows and over those of each pattern.

    Args:
      verdicts: the checker's.
      right: the truth: labels, or what a stricter verifier accepts.
      completions: the texts; needed for patterns alone.
      patterns: name -> regular expression; a row belongs to each that it contains.

    Returns:
      "all" and each pattern's name -> counts.

    Example:
      >>> judged = [Verdict(Status.CORRECT, 1.0), Verdict(Status.WRONG, 0.0)]
      >>> found = confusion(judged, [False, False], ["Surely 4", "5"], {"sure": "Sure"})
      >>> found["all"].false_positive_rate, found["sure"].false_positive_rate
      (0.5, 1.0)
    """
    accepted = [verdict.status is Status.CORRECT for verdict in verdicts]
    found = {"all": _counts(accepted, right)}
    for name, pattern in (patterns or {}).items():
        regex = re.compile(pattern, re.DOTALL)
        here = [i for i, text in enumerate(completions) if regex.search(text)]
        found[name] = _counts([accepted[i] for i in here], [right[i] for i in here])
    return found


def _counts(accepted: Sequence[bool], right: Sequence[bool]) -> Counts:
    pairs = list(zip(accepted, right, strict=True))
    return Counts(
        true_positives=pairs.count((True, True)),
        false_positives=pairs.count((True, False)),
        false_negatives=pairs.count((False, True)),
        true_negatives=pairs.count((False, False)),
    )
