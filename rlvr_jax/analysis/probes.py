"""Questions to given samples: memorised? labels right? form or ability?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rlvr_jax.core.passk import mean_interval


def partial_prompt(question: str, share: float) -> tuple[str, str]:
    """The first `share` of a question's words, and the rest that a model must guess.

    Example:
      >>> partial_prompt("How many apples are left now", 0.5)
      ('How many apples', 'are left now')
    """
    words = question.split()
    kept = min(max(1, round(share * len(words))), len(words))
    return " ".join(words[:kept]), " ".join(words[kept:])


def memory_scores(rests: Sequence[str], completions: Sequence[str]) -> dict[str, float]:
    """How well completions of cut questions match what was cut off.

    A model that never saw the questions writes something else. Contaminated ones
    complete them word by word.

    Args:
      rests: the second parts of `partial_prompt`.
      completions: what the model wrote, greedily and without a template.

    Returns:
      "exact" (share that begins with the whole rest, spaces aside) and "rouge_l" (mean
      F1 of the longest common subsequence of words, against as many words as the rest
      has).

    References:
      Wu et al. 2025, Reasoning or Memorization. https://arxiv.org/abs/2507.10532

    Example:
      >>> memory_scores(["are left now"], ["are left  now ?"])
      {'exact': 1.0, 'rouge_l': 1.0}
    """
    exact, rouge = [], []
    for rest, completion in zip(rests, completions, strict=True):
        wanted, words = rest.split(), completion.split()[: len(rest.split())]
        exact.append(wanted == words)
        rouge.append(_rouge_l(wanted, words))
    return {"exact": float(np.mean(exact)), "rouge_l": float(np.mean(rouge))}


def relabelled_share(
    called_wrong: Sequence[str], solved: Sequence[str]
) -> tuple[float, float, float]:
    """Of labels that a study calls wrong, the share that another solver confirms.

    A gain from "wrong" labels says little if many of them are right.

    Args:
      called_wrong: the labels that were rewarded as wrong ones.
      solved: what the solver answers, in the same writing.

    Returns:
      (share, low, high), 95 % over problems.
    """
    agree = [
        float(label == answer)
        for label, answer in zip(called_wrong, solved, strict=True)
    ]
    return mean_interval(agree)


def rank_for_one_shot(history: Float[np.ndarray, "N E"]) -> Int[np.ndarray, " N"]:
    """Problems by the variance of their accuracy over epochs, largest first.

    One-shot RLVR trains on the first alone. A problem always or never solved teaches
    nothing; one that is solved in half of the epochs varies most.

    Args:
      history: accuracy of each problem in each epoch of an earlier run.

    Returns:
      places of the problems; ties in their own order.

    References:
      Wang et al. 2025, One-shot RLVR. https://arxiv.org/abs/2504.20571
    """
    return np.argsort(-history.var(axis=1), kind="stable")


def tilt_to_majority(
    probabilities: Float[np.ndarray, "N A"], step: float
) -> Float[np.ndarray, "N A"]:
    """Policies after learning from their own majority vote (TTRL, many votes).

        p'(a) ~ p(a) exp(step 1[a = argmax p])

    The right answer gains iff it is the mode; else it loses. The first of equally
    likely answers is the mode.

    Args:
      probabilities: of the answers to each problem.
      step: size of the tilt.

    Returns:
      the tilted ones, in the same shape.

    References:
      TTRL. https://arxiv.org/abs/2504.16084
    """
    mode = np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]
    tilted = probabilities * np.exp(step * mode)
    return tilted / tilted.sum(axis=1, keepdims=True)


class FormatShare(NamedTuple):
    """A change of accuracy, taken apart: the two parts sum to it."""

    change: float
    from_format: float
    """By more answers that can be read, at the mean accuracy of read ones."""
    from_ability: float
    """By more right ones among those read, at the mean share of read ones."""


def format_decomposition(
    read_before: Bool[np.ndarray, " N"],
    right_before: Bool[np.ndarray, " M"],
    read_after: Bool[np.ndarray, " K"],
    right_after: Bool[np.ndarray, " L"],
) -> FormatShare:
    """accuracy = P(an answer is read) P(right | read), before and after training.

    Args:
      read_before: of each completion: the verifier found one answer.
      right_before: it was right; only where it was read.
      read_after: the same after training.
      right_after: the same.

    Returns:
      the change and its parts, each factor's change at the mean of the other.

    Raises:
      ValueError: right where nothing was read.

    Example:
      >>> half, all_ = np.array([True, False]), np.array([True, True])
      >>> format_decomposition(half, half, all_, all_)
      FormatShare(change=0.5, from_format=0.5, from_ability=0.0)
    """
    if (right_before & ~read_before).any() or (right_after & ~read_after).any():
        raise ValueError("format_decomposition: right needs an answer that was read.")
    shares = float(read_before.mean()), float(read_after.mean())
    rates = [
        float(right.sum() / max(int(read.sum()), 1))
        for right, read in ((right_before, read_before), (right_after, read_after))
    ]
    return FormatShare(
        shares[1] * rates[1] - shares[0] * rates[0],
        (shares[1] - shares[0]) * (rates[0] + rates[1]) / 2,
        (rates[1] - rates[0]) * (shares[0] + shares[1]) / 2,
    )


def _rouge_l(wanted: Sequence[str], words: Sequence[str]) -> float:
    if not wanted or not words:
        return float(not wanted and not words)
    row = np.zeros(len(words) + 1, int)
    for want in wanted:
        diagonal = 0
        for place, word in enumerate(words, 1):
            above = row[place]
            row[place] = diagonal + 1 if want == word else max(above, row[place - 1])
            diagonal = above
    common = int(row[-1])
    return 2 * common / (len(wanted) + len(words))
