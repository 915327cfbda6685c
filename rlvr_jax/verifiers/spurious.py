"""Rewards that do not know the answer: random, majority vote, a wrong label.

Control arms. A gain under one of them is not learned from the truth; it shows what
sampling, clipping or the base model does by itself.
"""

import collections
import hashlib
from collections.abc import Sequence

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.algebra import canonical, equivalence
from rlvr_jax.verifiers.base import Sample, Status, Verdict, normalised_space
from rlvr_jax.verifiers.noise import Draws

KEY_VERIFIER = "answer_key"
"""Says what a completion's answer is; majority and incorrect need it."""
_SHOWN = 300


def random_scores(
    completions: Sequence[str], problem: str, *, rate: float, seed: int
) -> list[float]:
    """1 with probability `rate`, whatever the completion says.

    References:
      Spurious Rewards. https://arxiv.org/abs/2506.10947
    """
    draws = Draws(seed, problem, completions)
    return [
        float(draws.uniform("random", index) < rate)
        for index in range(len(completions))
    ]


def majority_scores(keys: Sequence[str | None]) -> list[float]:
    """1 where the answer is the most frequent one of the group.

    A tie goes to the answer that came first. Completions without an answer (None) have
    no vote and get 0.

    References:
      TTRL. https://arxiv.org/abs/2504.16084

    Example:
      >>> majority_scores(["4", "5", None, "5"])
      [0.0, 1.0, 0.0, 1.0]
    """
    counts = collections.Counter(key for key in keys if key is not None)
    winner = counts.most_common(1)[0][0] if counts else None
    return [float(key is not None and key == winner) for key in keys]


def incorrect_scores(
    keys: Sequence[str | None], correct: Sequence[bool]
) -> list[float]:
    """1 where the answer is the most frequent wrong one of the group.

    An answer is wrong if no completion that gives it was verified. The paper instead
    fixes one wrong label per problem, from a vote before training.

    Example:
      >>> incorrect_scores(["4", "4", "5", "6", "6"], [True, True, False, False, False])
      [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    right = {key for key, good in zip(keys, correct, strict=True) if good}
    return majority_scores([None if key in right else key for key in keys])


def answer_key(sample: Sample) -> Verdict:
    """A text that completions share when they give the same answer, as the detail.

    Numbers agree by value, other answers by their text. Unparseable where a completion
    gives no answer, or several.
    """
    kind = (
        "letter" if str(sample.answer).strip("() .") in list("ABCDEFGHIJ") else "value"
    )
    answers = extract.final_answers(sample.completion, kind).answers
    keys = {_key(answer) for answer in answers}
    if len(keys) != 1:
        return Verdict(Status.UNPARSEABLE, 0.0, f"{len(keys)} answers")
    key = keys.pop()
    if len(key) > _SHOWN:
        key = hashlib.blake2b(key.encode(errors="replace"), digest_size=16).hexdigest()
    return Verdict(Status.CORRECT, 1.0, key)


def _key(answer: str) -> str:
    reading = equivalence.read(answer)
    if reading.trees and reading.trees[0].op != "text":
        return repr(canonical.key(reading.trees[0]))
    return normalised_space(extract.without_text_wrapper(answer)).casefold()
