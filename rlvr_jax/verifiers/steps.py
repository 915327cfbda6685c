"""The `steps` verifier: whether the sums of a solution are right, not its answer.

An outcome reward pays a right answer in full, also one that two errors cancel into. As
the stricter verifier of an audit this one counts them. It reads the reasoning, so it is
not for rewards.
"""

import itertools
import re

from rlvr_jax.verifiers.algebra import equivalence
from rlvr_jax.verifiers.algebra.tree import TooLarge, Undefined
from rlvr_jax.verifiers.base import Sample, Status, Verdict

_EXPRESSION = r"[-+]?\s*[0-9(][0-9+\-*/(). ]{0,200}"
_CHAIN = re.compile(rf"{_EXPRESSION}(?:=\s*{_EXPRESSION})+")
_LINE = re.compile(_EXPRESSION)


def verify(sample: Sample) -> Verdict:
    """Correct if every equation of numbers holds and every line equals the last.

    Lines that are bare arithmetic ("3 + 4 * 2", "3 + 8", "11") are steps of one sum,
    which the question ("3 + 4 * 2 =") starts. The score is the share of steps that
    hold. Unparseable where there are no steps.
    """
    steps = _steps(sample.completion, sample.question)
    if not steps:
        return Verdict(Status.UNPARSEABLE, 0.0, "no steps")
    wrong = [f"{one} != {other}" for one, other in steps if not _same(one, other)]
    score = 1 - len(wrong) / len(steps)
    if wrong:
        return Verdict(Status.WRONG, score, f"step: {wrong[0]!s:.200}")
    return Verdict(Status.CORRECT, 1.0, f"{len(steps)} steps hold")


verify.reads = "completion"  # type: ignore[attr-defined]


def _steps(text: str, question: str) -> list[tuple[str, str]]:
    """Pairs that must be equal."""
    pairs = []
    for chain in _CHAIN.findall(text):
        sides = [side.strip() for side in chain.split("=")]
        pairs += itertools.pairwise(sides)
    bare = [line.strip() for line in text.splitlines()]
    bare = [line for line in bare if _LINE.fullmatch(line)]
    if bare and _LINE.fullmatch(asked := question.strip().removesuffix("=").strip()):
        bare.insert(0, asked)
    return [*pairs, *itertools.pairwise(bare)]


def _same(one: str, other: str) -> bool:
    try:
        return equivalence.same(equivalence.read(one), equivalence.read(other))
    except (TooLarge, Undefined):
        return False
