"""Loops and gibberish: what a policy writes when its length or entropy runs away.

Four measures, each with a limit that ordinary text, solutions and code stay clear of.
On 14,367 problems, solutions, programs and responses (GSM8K, MATH-500, OlympiadBench,
Minerva, IFEval, MBPP, HumanEval) the worst were: 72 % of the 6-grams repeated, no loop,
compressed to 20 %; non-words passed their limit in 3, programs whose subject is strings
of letters.
"""

import dataclasses
import re
import unicodedata
import zlib

from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.identify import words
from rlvr_jax.verifiers.language import prose

NGRAM = 6
MIN_UNITS = 50
"""Words (or characters where no blanks are set) below which n-grams say nothing."""
MIN_BYTES = 500
"""UTF-8 bytes below which compression says nothing."""
MIN_LOOP = 100
"""Characters that a loop at the end must fill."""
LOOPS = 4
"""Times that a block at the end must stand there to be a loop."""
TAIL = 8000
"""Characters at the end that are searched for a loop."""
MIN_WORDS = 8
"""Distinct words of at least four letters below which their form says nothing."""

MAX_REPEATED_NGRAMS = 0.75
MIN_COMPRESSION_RATIO = 0.15
MAX_NON_WORDS = 0.3

_UNIT = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]+|[^\s\w]|\w")
_VOWELS = frozenset("aeiouy\u00e6\u00f8\u0153\u0131")  # marks are taken off first
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{6}")
_MIXED_CASE = re.compile(r"[a-z][A-Z][a-z]+[A-Z]|[a-z]{1,2}[A-Z]{2,}[a-z]")


@dataclasses.dataclass(frozen=True)
class Repetition:
    """The four measures of one text."""

    repeated_ngrams: float
    """1 - distinct / all 6-grams of words and marks; 0 for a short text."""
    loop_characters: int
    """Length of the end of the text that is one block again and again, else 0."""
    compression_ratio: float
    """zlib bytes / bytes; 1 for a short text."""
    non_words: float
    """Share of distinct words that no language writes; 0 for a short text."""

    def faults(self) -> list[str]:
        """The measures that are past their limit, in words; none for ordinary text."""
        checks = {
            f"{self.repeated_ngrams:.0%} of the {NGRAM}-grams are repeated": (
                self.repeated_ngrams > MAX_REPEATED_NGRAMS
            ),
            f"the last {self.loop_characters} characters are a loop": (
                self.loop_characters > 0
            ),
            f"it compresses to {self.compression_ratio:.0%}": (
                self.compression_ratio < MIN_COMPRESSION_RATIO
            ),
            f"{self.non_words:.0%} of the words are none": (
                self.non_words > MAX_NON_WORDS
            ),
        }
        return [text for text, is_past in checks.items() if is_past]


def measure(text: str) -> Repetition:
    """The four measures of a text.

    Example:
      >>> measure("I see. " * 40).loop_characters
      280
    """
    return Repetition(
        repeated_ngrams=_repeated_ngrams(text),
        loop_characters=_loop(text),
        compression_ratio=_compression_ratio(text),
        non_words=_non_words(text),
    )


def readable(sample: Sample) -> Verdict:
    """1 if the whole completion has no fault, else 0.

    In `reward.parts`: "answer if repetition" pays nothing for a loop, and
    "answer, -0.5*ended if not repetition" takes half a point from one that ended.
    """
    if not sample.completion.strip():
        return Verdict(Status.UNPARSEABLE, 0.0, "an empty completion")
    faults = measure(sample.completion).faults()
    status = Status.WRONG if faults else Status.CORRECT
    return Verdict(status, float(not faults), "; ".join(faults) or "no loop, no noise")


readable.reads = "completion"  # type: ignore[attr-defined]


def _repeated_ngrams(text: str) -> float:
    units = _UNIT.findall(text.lower())
    count = len(units) - NGRAM + 1
    if len(units) < MIN_UNITS:
        return 0.0
    return 1 - len({tuple(units[i : i + NGRAM]) for i in range(count)}) / count


def _loop(text: str) -> int:
    """Characters at the end of the text with a period of at most a LOOPS-th of them.

    The failure function of Knuth, Morris and Pratt over the reversed text gives the
    shortest period of each of its prefixes, in linear time.
    """
    tail = text[: -TAIL - 1 : -1]
    borders = [0] * len(tail)
    border = longest = 0
    for end in range(1, len(tail)):
        while border and tail[end] != tail[border]:
            border = borders[border - 1]
        border += tail[end] == tail[border]
        borders[end] = border
        length = end + 1
        if length >= MIN_LOOP and LOOPS * (length - border) <= length:
            longest = length
    return longest


def _compression_ratio(text: str) -> float:
    data = text.encode("utf8", "replace")
    if len(data) < MIN_BYTES:
        return 1.0
    return len(zlib.compress(data, 6)) / len(data)


def _non_words(text: str) -> float:
    plain = prose(text)
    found = {word for word in words(plain) if len(word.text) > 3}
    broken = plain.count("\ufffd")
    if len(found) + broken < MIN_WORDS:
        return 0.0
    latin = [word.text for word in found if word.script == "latin"]
    mixed = len(set(_MIXED_CASE.findall(plain)))
    odd = sum(_is_odd(word) for word in latin)
    return min(1.0, (odd + mixed + broken) / (len(found) + broken))


def _is_odd(word: str) -> bool:
    """Too long, without a vowel, or with six consonants in a row."""
    return (
        len(word) > 30
        or _VOWELS.isdisjoint(unicodedata.normalize("NFD", word))
        or _CONSONANTS.search(word) is not None
    )
