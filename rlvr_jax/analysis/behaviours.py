"""What a chain of thought does: checks, turns back, plans, works backwards; by words.

A small model cannot judge traces, and a large one is not always at hand: these are
keyword counts, cheap and the same for every run. They show a change better than a
level: a word is not a deed. Gandhi et al. counted with a language model.
"""

import dataclasses
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rlvr_jax.analysis.correlation import rank_correlation

_PATTERNS = {
    "verification": (
        r"let(?:'s| me| us) (?:check|verify|confirm|test)",
        r"(?:double|cross)-?check",
        r"\bto (?:check|verify|confirm)\b",
        r"\b(?:check|verification|verify)(?:ing)?:",
        r"plug(?:ging)? (?:it|this|that|them|back)\b",
        r"\bconfirms?\b",
    ),
    "backtracking": (
        r"\bwait\b",
        r"\b(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect)\b",
        r"\b(?:not|isn't|wasn't) (?:right|correct)\b",
        r"\b(?:doesn't|does not|didn't|did not|won't) work\b",
        r"\blet(?:'s| me| us) (?:try (?:again|another|a different)|go back|start over)",
        r"\bscratch that\b",
        r"\bi (?:missed|forgot|made (?:a|an) (?:mistake|error))\b",
    ),
    "subgoal setting": (
        r"\bstep \d+\b",
        r"\bfirst,? (?:i|we|let|find|compute|get|make)\b",
        r"\bthe plan\b|\bplan:",
        r"\bbreak (?:it|this|the problem) (?:down|into)\b",
        r"\b(?:then|next),? (?:i|we) (?:need|can|will|count|find)\b",
        r"\bsub-?goal\b",
    ),
    "backward chaining": (
        r"\bwork(?:ing)? backwards?\b",
        r"\bstart(?:ing)? (?:from|with) the (?:target|goal|answer|end)\b",
        r"\bto (?:get|reach|make) (?:the target|\d+),? (?:i|we) (?:need|must|could)\b",
        r"\bwhat (?:would )?(?:gives?|makes?) (?:the target|\d+)\b",
    ),
}
_FOUND = {
    name: re.compile("|".join(f"(?:{each})" for each in patterns), re.IGNORECASE)
    for name, patterns in _PATTERNS.items()
}
BEHAVIOURS = tuple(_PATTERNS)

_REFLECTION = re.compile(
    r"\bre-?check|\bre-?think|\bre-?assess|\bre-?evaluat|\bre-?examin|\breconsider"
    r"|\bre-?analy[sz]|\bdouble-?check|\b(?:check|think|verify|go over)\b[^.\n]{0,20}"
    r"\bagain\b|\baha\b|\bwait\b[,.!]|\blet me (?:check|verify)",
    re.IGNORECASE,
)
_SWITCH = re.compile(
    r"\b(?:alternatively|another (?:approach|way|idea|method)|let(?:'s| me) try "
    r"(?:another|a different|something else)|on second thought|hmm)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"\b[Pp]ython\b|```|^\s*(?:def \w+\(|import \w+|from \w+ import|print\("
    r"|for \w+ in .*:\s*$)",
    re.MULTILINE,
)


def count_behaviours(text: str) -> dict[str, int]:
    """How often each of `BEHAVIOURS` shows in a trace.

    References:
      Gandhi et al. 2025, Cognitive Behaviors. https://arxiv.org/abs/2503.01307

    Example:
      >>> found = count_behaviours("Let me check: 3 + 4 = 7. That's wrong. Step 2: 5.")
      >>> [name for name, count in found.items() if count]
      ['verification', 'backtracking', 'subgoal setting']
    """
    return {name: len(found.findall(text)) for name, found in _FOUND.items()}


def reflects(text: str) -> bool:
    """Has a word of self-reflection ("recheck", "think again", "wait, ...").

    References:
      Liu et al. 2025, There may not be an aha moment. https://oatllm.notion.site/oat-zero

    Example:
      >>> reflects("Wait, I should recheck this."), reflects("He had to wait an hour.")
      (True, False)
    """
    return _REFLECTION.search(text) is not None


def reasons_in_code(text: str) -> bool:
    """Mentions Python or holds lines that look like it, fenced or not.

    References:
      Spurious Rewards, sec. 4. https://arxiv.org/abs/2506.10947

    Example:
      >>> reasons_in_code("python:\\nprint(3 * 4)"), reasons_in_code("for two apples")
      (True, False)
    """
    return _CODE.search(text) is not None


def thought_switches(text: str) -> int:
    """How often a trace leaves an idea for another ("alternatively", ...).

    References:
      Underthinking. https://arxiv.org/abs/2501.18585

    Example:
      >>> thought_switches("Alternatively, try 5. Hmm, another approach is 7.")
      3
    """
    return len(_SWITCH.findall(text))


@dataclasses.dataclass(frozen=True)
class Contrast:
    """Accuracy with a behaviour against accuracy without it."""

    with_correct: int
    with_wrong: int
    without_correct: int
    without_wrong: int
    difference: float
    """Risk difference: accuracy with - accuracy without."""
    low: float
    high: float
    """95 %; see `accuracy_contrast`."""

    @property
    def share(self) -> float:
        """Of all traces, those that have the behaviour."""
        having = self.with_correct + self.with_wrong
        return having / (having + self.without_correct + self.without_wrong)


def accuracy_contrast(
    has: Bool[np.ndarray, " N"],
    correct: Bool[np.ndarray, " N"],
    problems: Sequence[Hashable] = (),
    *,
    seed: int = 0,
) -> Contrast:
    """The 2 x 2 table of a behaviour and correctness, and the risk difference.

    More words of reflection on a hard problem is no effect of reflection; but if the
    interval holds 0, even the correlation is not there.

    Args:
      has: the trace has the behaviour.
      correct: the verifier accepted it.
      problems: which problem each trace answers; empty where all are different.
        Traces of one problem share its difficulty: they are no independent evidence.
      seed: of the bootstrap.

    Returns:
      the table and the difference with an interval that also holds for 0 or all
      correct: Newcombe's score interval for one trace per problem, else the Bayesian
      bootstrap over problems, with a best and a worst one added as in
      `core.passk.mean_interval`.

    Raises:
      ValueError: one of the groups is empty.

    References:
      Newcombe 1998, method 10.
    """
    a, b = int((has & correct).sum()), int((has & ~correct).sum())
    c, d = int((~has & correct).sum()), int((~has & ~correct).sum())
    if a + b == 0 or c + d == 0:
        raise ValueError(
            "accuracy_contrast: needs traces with the behaviour and without, got "
            f"{a + b} and {c + d}."
        )
    difference = a / (a + b) - c / (c + d)
    _, number = np.unique([str(p) for p in problems], return_inverse=True)
    if number.size in (0, number.max(initial=-1) + 1):
        low, high = _newcombe(a, b, c, d)
    else:
        cells = np.stack(
            [has & correct, has & ~correct, ~has & correct, ~has & ~correct]
        )
        counts = np.stack([np.bincount(number, cell) for cell in cells], axis=1)
        low, high = _over_problems(counts, seed)
    return Contrast(a, b, c, d, difference, min(low, difference), max(high, difference))


def behaviour_table(
    texts: Sequence[str],
    correct: Sequence[float] | Sequence[int],
    problems: Sequence[Hashable] = (),
) -> dict[str, Any]:
    """Shares of traces with each behaviour, and what they go with.

    Args:
      texts: completions.
      correct: 1 or 0 of each.
      problems: as in `accuracy_contrast`.

    Returns:
      behaviour -> {"share", "per_trace", "accuracy_difference": [mean, low, high] or
      None}; the four behaviours, "reflection", "code" and "switches".
    """
    behaviours = [count_behaviours(text) for text in texts]
    counts = {
        name: np.array([each[name] for each in behaviours]) for name in BEHAVIOURS
    }
    counts["reflection"] = np.array([int(reflects(text)) for text in texts])
    counts["code"] = np.array([int(reasons_in_code(text)) for text in texts])
    counts["switches"] = np.array([thought_switches(text) for text in texts])
    right = np.asarray(correct) >= 1
    found = {}
    for name, number in counts.items():
        has = number > 0
        contrast = None
        if has.any() and not has.all():
            table = accuracy_contrast(has, right, problems)
            contrast = [table.difference, table.low, table.high]
        found[name] = {
            "share": float(has.mean()),
            "per_trace": float(number.mean()),
            "accuracy_difference": contrast,
        }
    return found


def behaviours_by_family(
    traces: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, float]]:
    """Model family -> share of its traces with each behaviour and with reflection."""
    return {
        family: {
            name: entry["share"]
            for name, entry in behaviour_table(texts, [0] * len(texts)).items()
        }
        for family, texts in traces.items()
    }


def length_with_behaviour(
    lengths: Sequence[tuple[float, float]], rates: Sequence[tuple[float, float]]
) -> float | None:
    """Do runs whose answers grew also behave differently? Rank correlation of changes.

    Args:
      lengths: (before, after) of each run, in tokens.
      rates: (before, after) of a behaviour's share, of the same runs.

    Returns:
      Spearman's coefficient over runs; None where nothing changed.

    References:
      SimpleRL-Zoo, sec. 3. https://arxiv.org/abs/2503.18892
    """
    changes = [
        np.diff(np.asarray(pairs, np.float64), axis=1)[:, 0]
        for pairs in (lengths, rates)
    ]
    return rank_correlation(changes[0], changes[1])


def _newcombe(a: int, b: int, c: int, d: int) -> tuple[float, float]:
    """Of a / (a + b) - c / (c + d), all traces independent."""
    one, two = _wilson(a, a + b), _wilson(c, c + d)
    rates = a / (a + b), c / (c + d)
    below = np.hypot(rates[0] - one[0], two[1] - rates[1])
    above = np.hypot(one[1] - rates[0], rates[1] - two[0])
    difference = rates[0] - rates[1]
    return float(difference - below), float(difference + above)


def _over_problems(
    counts: Float[np.ndarray, "P 4"], seed: int, resamples: int = 4000
) -> tuple[float, float]:
    """Of the same difference, where each row has the four counts of one problem."""
    having = counts[:, :2].sum() / len(counts)
    without = counts[:, 2:].sum() / len(counts)
    best, worst = [having, 0, 0, without], [0, having, without, 0]
    counts = np.concatenate([counts, [best, worst]])
    rng, found = np.random.default_rng(seed), []
    for _ in range(resamples):
        a, b, c, d = rng.standard_exponential(len(counts)) @ counts
        found.append(a / (a + b) - c / (c + d))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _wilson(hits: int, count: int) -> tuple[float, float]:
    z = 1.959963984540054
    rate = hits / count
    centre = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count)
    half *= np.sqrt(rate * (1 - rate) / count + z * z / (4 * count**2))
    return float(centre - half), float(centre + half)
