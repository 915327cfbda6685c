"""Traces that keep starting over: how much of one proposes instead of deducing.

Students of two teachers on the same verified problems differ: traces of DeepSeek-R1 are
learned to a lower loss than those of gpt-oss and generalise worse, and a third of their
steps propose something new, where the other teacher's are a fifth. Leaving out the
traces that branch most helps the student; leaving out the longest is another filter.

References:
  Li et al. 2026. https://arxiv.org/abs/2604.01702
"""

import math
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

_BRANCH = re.compile(
    r"\b(?:perhaps|maybe|alternatively|what if|wait|hmm|let me (?:try|reconsider)"
    r"|let's (?:try|reconsider)|(?:an)?other (?:approach|way|idea|method|option)"
    r"|on second thought|or else)\b",
    re.IGNORECASE,
)
_BLANK_LINE = re.compile(r"\n\s*\n")


def steps_of(trace: str) -> list[str]:
    """Its paragraphs; its lines, where no blank line parts it.

    Example:
      >>> steps_of("2 + 2 = 4\\n\\nso 8"), steps_of("a = 1\\nb = 2")
      (['2 + 2 = 4', 'so 8'], ['a = 1', 'b = 2'])
    """
    parts = _BLANK_LINE.split(trace.strip())
    if len(parts) == 1:
        parts = trace.split("\n")
    return [part.strip() for part in parts if part.strip()]


def branch_share(trace: str) -> float:
    """Share of the steps that have a word of branching; 0 for an empty trace.

    Words stand for what the paper has a language model label ("Propose").

    Example:
      >>> branch_share("x = 3\\nWait, maybe x = 4\\nPerhaps not\\nso x = 3")
      0.5
    """
    steps = steps_of(trace)
    branching = sum(_BRANCH.search(step) is not None for step in steps)
    return branching / max(1, len(steps))


def without_branching(traces: Sequence[str], drop: float) -> Bool[np.ndarray, " N"]:
    """Which traces stay when those that branch most are left out.

    Args:
      traces: solutions to imitate.
      drop: share of them to leave out, in [0, 1): floor(drop N) go, of equal ones the
        later. The paper's own cut-off is not published.

    Returns:
      True where a trace stays.

    Raises:
      ValueError: `drop` is outside of [0, 1).

    Example:
      >>> print(without_branching(["so 2", "Wait, perhaps 3", "thus 4"], 0.4))
      [ True False  True]
    """
    if not 0 <= drop < 1:
        raise ValueError(f"without_branching: drop is in [0, 1), got {drop}")
    shares = np.array([branch_share(trace) for trace in traces])
    # A share as .3 is below itself in floating point: 10 x .3 are 3 traces.
    kept = len(traces) - math.floor(drop * len(traces) + 1e-9)
    stays = np.zeros(len(traces), bool)
    stays[np.argsort(shares, kind="stable")[:kept]] = True
    return stays
