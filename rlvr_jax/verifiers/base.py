"""What a verifier is: a plain function from a `Sample` to a `Verdict`.

    def my_verifier(sample):
        return sample.completion.strip() == sample.answer

The function may return a `Verdict`, a bool (correct or wrong) or a number (the score;
1 and above counts as correct). It sees the text after the thinking block, unless it
declares `my_verifier.reads = "completion"`.
"""

import collections
import dataclasses
import enum
import math
import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any

from rlvr_jax.errors import UserError

READS = ("answer", "completion")


class Status(enum.StrEnum):
    """How the check of one completion ended."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSEABLE = "unparseable"
    """The completion holds no answer, or more than one."""
    TIMEOUT = "timeout"
    CRASH = "crash"
    """The verifier raised, died or returned something that is no verdict."""
    BAD_REFERENCE = "bad_reference"
    """The reference itself cannot be read; the completion was not judged."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The outcome of one check; only `correct` and `wrong` judge the policy."""

    status: Status
    score: float
    """1 for correct, 0 for wrong, between for partial credit."""
    detail: str = ""
    """What was extracted and compared, or what went wrong; for people."""
    seconds: float = dataclasses.field(default=0.0, compare=False, repr=False)
    """Wall-clock time of the check inside its worker; 0 outside of a pool."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One completion with what it takes to check it. JSON values only."""

    verifier: str
    """A registered name, "path/file.py:function" or "package.module:function"."""
    completion: str
    answer: Any
    """The reference: text, number, list or dictionary, as the verifier wants it."""
    question: str = ""
    meta: dict[str, Any] = dataclasses.field(default_factory=dict)


Verifier = Callable[[Sample], Verdict | bool | float]


def answer_segment(completion: str) -> str:
    """The text after the thinking block, which is all that a reward may read.

    A block that never closes leaves only what came before it: the answer was not
    reached. A completion whose prompt already opened the block has only `</think>`.

    Example:
      >>> answer_segment("<think>maybe 5</think>It is 4.")
      'It is 4.'
      >>> answer_segment("<think>it is 4, but wait")
      ''
    """
    _, close, after = completion.rpartition("</think>")
    if close:
        after = after.lstrip("\n")  # the blank lines belong to the block
    return after.partition("<think>")[0]


def reads_of(verifier: Verifier) -> str:
    """The part of the completion that a verifier asks for, "answer" by default.

    Raises:
      UserError: its `reads` is neither "answer" nor "completion".
    """
    reads = getattr(verifier, "reads", "answer")
    if reads not in READS:
        raise UserError(
            f"{getattr(verifier, '__name__', verifier)!s}.reads is {reads!r}; "
            f"a verifier reads one of {', '.join(READS)}"
        )
    return reads


def as_verdict(value: Any) -> Verdict:
    """What a verifier returned, as a `Verdict`; anything unusable is a crash.

    Example:
      >>> as_verdict(0.25)
      Verdict(status=<Status.WRONG: 'wrong'>, score=0.25, detail='')
      >>> as_verdict("yes").status
      <Status.CRASH: 'crash'>
    """
    if isinstance(value, Verdict):
        score = value.score
        if isinstance(value.status, Status) and _is_finite_number(score):
            return dataclasses.replace(
                value, score=float(score), detail=str(value.detail)
            )
        return Verdict(Status.CRASH, 0.0, f"not a usable verdict: {value!r:.200}")
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy scalar, without importing NumPy
    if not _is_finite_number(value):
        return Verdict(
            Status.CRASH,
            0.0,
            "a verifier returns a Verdict, a bool or a finite number, not "
            f"{type(value).__name__} {value!r:.100}",
        )
    score = float(value)
    return Verdict(Status.CORRECT if score >= 1 else Status.WRONG, score)


def apply(verifier: Verifier, sample: Sample) -> Verdict:
    """Runs a verifier on the part of the completion that it declares to read.

    An exception passes through; the pool turns it into a crash verdict.
    """
    if reads_of(verifier) == "answer":
        segment = answer_segment(sample.completion)
        sample = dataclasses.replace(sample, completion=segment)
    return as_verdict(verifier(sample))


def rates(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """The share of each status; every status is a key, and no verdicts give zeros.

    Example:
      >>> rates([Verdict(Status.CORRECT, 1.0), Verdict(Status.TIMEOUT, 0.0)])["timeout"]
      0.5
    """
    counts = collections.Counter(verdict.status for verdict in verdicts)
    total = max(len(verdicts), 1)
    return {str(status): counts[status] / total for status in Status}


def text_reference(answer: Any) -> str | None:
    """A reference as text, where it is text or a plain number; else None.

    Example:
      >>> text_reference(4), text_reference("4"), text_reference([4])
      ('4', '4', None)
    """
    if isinstance(answer, str):
        return answer
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return repr(answer)
    return None


def normalised_space(text: str) -> str:
    """The text with runs of white space as one blank and none at the ends."""
    return re.sub(r"\s+", " ", text).strip()


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and math.isfinite(value)
