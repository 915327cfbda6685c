"""Wrong verdicts on purpose, to study what a checker's errors do to training.

What a sample is paid is changed, never what metrics call correct. Draws are a function
of the seed, the problem and the completions of its group, so a run that resumes sees
the same ones; equal completions within a group draw apart.
"""

import dataclasses
import functools
import hashlib
import re
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Noise:
    """How verdicts go wrong.

    Patterns are the systematic errors: they hold for every completion that they match,
    and replace the rates there.
    """

    false_positive_rate: float = 0.0
    """Share of wrong completions that are accepted."""
    false_negative_rate: float = 0.0
    """Share of correct completions that are rejected."""
    group_flip_rate: float = 0.0
    """Share of groups all of whose verdicts are turned around."""
    accept_pattern: str = ""
    """A regular expression; a completion that contains it is accepted."""
    reject_pattern: str = ""
    """The same, rejected; where both match, accepted."""
    seed: int = 0

    @property
    def is_active(self) -> bool:
        """Whether it changes anything."""
        return any(
            getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "seed"
        )


def noisy_scores(
    scores: Sequence[float], completions: Sequence[str], problem: str, noise: Noise
) -> list[float]:
    """The scores of one group as a checker with these errors would give them.

    With random errors of both kinds, the centred reward keeps its direction and shrinks
    to (true positive rate - false positive rate) of its size; with whole groups flipped
    at rate p, the expected gradient shrinks to 1 - 2p.

    Args:
      scores: of the true verdicts, in 0..1; an error turns s into 1 - s.
      completions: their texts.
      problem: the id of their problem.
      noise: which errors.

    References:
      Random and systematic errors: https://github.com/eth-sri/llm-verifier-noise
      Group-level noise: https://arxiv.org/abs/2604.07666

    Example:
      >>> noise = Noise(accept_pattern="Certainly")
      >>> noisy_scores([1.0, 0.0, 0.0], ["4", "Certainly 5", "6"], "p", noise)
      [1.0, 1.0, 0.0]
    """
    draws = Draws(noise.seed, problem, completions)
    flip_group = draws.uniform("group") < noise.group_flip_rate
    return [
        1.0 - judged if flip_group else judged
        for index, (score, text) in enumerate(zip(scores, completions, strict=True))
        for judged in [_judged(score, text, index, noise, draws)]
    ]


def matches(completion: str, noise: Noise) -> bool:
    """Whether a completion meets one of the systematic errors."""
    patterns = (noise.accept_pattern, noise.reject_pattern)
    return any(p and _compiled(p).search(completion) for p in patterns)


class Draws:
    """Uniform numbers in [0, 1) that belong to one group of completions."""

    def __init__(self, seed: int, problem: str, completions: Sequence[str]):
        """Takes the group's contents as the key."""
        digest = hashlib.blake2b(f"{seed}\0{problem}".encode(errors="replace"))
        for text in completions:
            digest.update(hashlib.blake2b(text.encode(errors="replace")).digest())
        self._digest = digest

    def uniform(self, name: str, index: int = 0) -> float:
        """The number of that name, for completion `index`."""
        digest = self._digest.copy()
        digest.update(f"{name}\0{index}".encode())
        return int.from_bytes(digest.digest()[:7], "big") / 2**56


def _judged(score: float, text: str, index: int, noise: Noise, draws: Draws) -> float:
    if noise.accept_pattern and _compiled(noise.accept_pattern).search(text):
        return 1.0
    if noise.reject_pattern and _compiled(noise.reject_pattern).search(text):
        return 0.0
    rate = noise.false_negative_rate if score >= 1 else noise.false_positive_rate
    return 1.0 - score if draws.uniform("sample", index) < rate else score


@functools.cache
def _compiled(pattern: str) -> re.Pattern:
    return re.compile(pattern, re.DOTALL)
