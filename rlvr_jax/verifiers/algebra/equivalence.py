"""Whether two written answers are the same: from text to tree to verdict.

The ladder: equal as text; else equal as trees; else equal in value, exactly where both
are rational and by many digits where they are not (`compare`, `scalars`, `numeric`).
"""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlvr_jax.verifiers.algebra import compare, phrases
from rlvr_jax.verifiers.algebra.normalise import latex
from rlvr_jax.verifiers.algebra.numbers import number_node
from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.scalars import decimal
from rlvr_jax.verifiers.algebra.tree import (
    MAX_CHARACTERS,
    Node,
    ParseError,
    TooLarge,
    Undefined,
)

_WORDS = re.compile(r"\\[a-zA-Z]+|[\s{}\\$()*_^~.,;:!?'\"`-]")
_SPACES = re.compile(r"(?<![0-9\s])\s+|\s+(?![0-9\s])|\\(?=[{}])")
"""But those between two numbers, which are not one."""
_GROUPED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9]|,(?!\s))")
_SPACED = re.compile(
    r"([-+]?[1-9][0-9]{0,2}(?: [0-9]{3})+(?:[.,][0-9]+)?)(?![0-9])( [0-9]+/[0-9]+)?"
)
_POINTED = re.compile(
    r"[-+]?[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+,[0-9]+|(?:\.[0-9]{3}){2,})"
)
_MARKED = re.compile(
    r"[-+]?[1-9][0-9]{0,2}(?:(?:'[0-9]{3})+|(?:_[0-9]{3})+)(?:\.[0-9]+)?"
)
"""As in 1'000'000 and 1_000_000."""
_COMMA_NUMBER = re.compile(r"(?<![0-9,])[0-9]+,[0-9]+(?![0-9,])")
_BASED = re.compile(
    r"[({]*\s*([0-9A-Fa-f]{1,60})\s*[)}]*\s*(?:_|(?:in\s+)?base[\s-])[\s{]*"
    r"([0-9]{1,2}|[a-z]{3,8})[\s}]*"
)
_BASES: Sequence[str] = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen"
).split()
_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textrm|mbox)\s*(\{[^{}]*\})")
_CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?::(?P<second>[0-9]{2}))?"
    r"\s*(?:\\(?:text|textrm|mathrm)\{)?\s*(?P<half>[ap]\.?\s?m\.?)?\s*\}?",
    re.IGNORECASE,
)


class Reading(NamedTuple):
    """One answer: its text, and what it may stand for."""

    text: str
    trees: tuple[Node, ...]
    decimals: tuple[Node, ...] = ()
    """With commas as decimal points: 3,5 as 3.5; only compared with decimals."""
    lists: tuple[Node, ...] = ()
    """With commas between three digits as those of a list: 100,200 as 100 and 200;
    only compared with what is a list beyond doubt."""
    problem: str = ""
    """Why it could not be read as mathematics; it is compared as text then."""


def read(written: str) -> Reading:
    """All that a written answer may mean."""
    if len(written) > MAX_CHARACTERS:
        text = written.strip()
        return Reading(text, (), problem=f"{len(written)} characters are too many")
    text = latex(written)
    if (based := _based(text)) is not None:
        return Reading(text, (based,))
    if (phrase := phrases.meaning(text)) is not None:
        return Reading(text, (phrase,))
    plain, decimal_comma, listed = _variants(text)
    trees, problem = _parsed(plain)
    decimals, lists = _parsed(decimal_comma)[0], _parsed(listed)[0]
    if trees or decimals or lists:
        problem = ""
    return Reading(text, trees, decimals, lists, problem)


def _based(text: str) -> Node | None:
    """A number with its base: 101_2, (2A)_{16}, 12 base five."""
    if "_" not in text and "base" not in text:
        return None
    match = _BASED.fullmatch(_WRAPPER.sub(r"\1", text).replace("{ ", "{"))
    if match is None:
        return None
    if match[2].isdigit():
        base = int(match[2])
    elif match[2] in _BASES:
        base = 2 + _BASES.index(match[2])
    else:
        return None
    digits = match[1].lstrip("0") or "0"
    if not 2 <= base <= 16 or any(int(digit, 16) >= base for digit in digits):
        return None
    if digits.isalpha() and (len(digits) == 1 or base != 16):  # a variable
        return None
    if base == 10:
        return number_node(digits)
    return Node("base", (), (digits.upper(), base))


def _parsed(text: str | None) -> tuple[tuple[Node, ...], str]:
    if text is None:
        return (), ""
    try:
        return (parse(text),), ""
    except (ParseError, TooLarge) as error:
        return (), str(error)


def same(gold: Reading, answer: Reading) -> bool:
    """Whether an answer means what the reference means, in any of their readings.

    Raises:
      tree.TooLarge: it takes too much to find out.
      tree.Undefined: one has no value.
    """
    if same_text(gold.text, answer.text):
        return True
    if (times := _clocks(gold.text, answer.text)) is not None:
        return times
    problem: Exception | None = None
    for one, other in _pairs(gold, answer):
        try:
            if compare.same(one, other):
                return True
        except (TooLarge, Undefined) as error:
            problem = error
    if problem is not None:
        raise problem
    return False


def _pairs(gold: Reading, answer: Reading) -> Iterator[tuple[Node, Node]]:
    yield from itertools.product(gold.trees, answer.trees)
    yield from itertools.product(gold.lists, answer.trees)
    yield from itertools.product(gold.trees, answer.lists)
    if gold.decimals or answer.decimals:
        yield from itertools.product(_decimals(gold), _decimals(answer))


def _decimals(reading: Reading) -> list[Node]:
    return [*reading.decimals, *(node for node in reading.trees if decimal(node))]


def same_text(gold: str, answer: str) -> bool:
    """Letter for letter but for white space; words also in another case.

    Example:
      >>> same_text("\\\\text{Evelyn}", "evelyn"), same_text("x", "X")
      (True, False)
    """
    if _SPACES.sub("", gold) == _SPACES.sub("", answer):
        return bool(gold)
    words = _WORDS.sub("", gold)
    other = _WORDS.sub("", answer)
    if not words.isalpha() or len(words) != len(other) or "\\frac" in gold + answer:
        return False
    if "\\text" in gold + answer:
        same_case = len(words) < 3
    elif len(words) > 3:
        same_case = False
    else:
        return False
    return words == other if same_case else words.casefold() == other.casefold()


def _variants(text: str) -> tuple[str, str | None, str | None]:
    """The text, with its commas as decimal points, and with those in 1,234 as a list's.

    None where a reading makes no sense.
    """
    if spaced := _SPACED.fullmatch(text):
        whole = spaced[1].replace(" ", "").replace(",", ".")
        return whole + (spaced[2] or ""), None, None
    if _MARKED.fullmatch(text):
        return re.sub("['_]", "", text), None, None
    if _POINTED.fullmatch(text):
        return text.replace(".", "").replace(",", "."), None, None
    if "," not in text:
        return text, None, None
    if _GROUPED.search(text):
        ungrouped = _ungrouped(text)
        return ungrouped, None, text if text != ungrouped else None
    commas = text.count(",") == len(_COMMA_NUMBER.findall(text))
    if commas and not re.search(r"[()\[\]{}]", text):
        return text, text.replace(",", "."), None
    return text, None, None


def _ungrouped(text: str) -> str:
    """Without thousands separators; inside brackets only if the list is spaced."""
    pieces, depth, last = [], 0, 0
    for match in re.finditer(r"[(\[{]|[)\]}]|" + _GROUPED.pattern, text):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
        elif depth <= 0 or re.search(r"[0-9],\s|;", text):
            pieces += [text[last : match.start()], match[0].replace(",", "")]
            last = match.end()
    return "".join([*pieces, text[last:]])


def _clocks(gold: str, answer: str) -> bool | None:
    """Compares times of day; None if one is none, or if both may be ratios."""
    first, second = _CLOCK.fullmatch(gold), _CLOCK.fullmatch(answer)
    if not (first and second and _is_time(first) and _is_time(second)):
        return None
    if not any(_is_surely_time(match) for match in (first, second)):
        return None
    return _seconds(first) == _seconds(second)


def _is_time(match: re.Match) -> bool:
    if int(match["hour"]) > 24 or int(match["minute"] or 0) > 59:
        return False
    return bool(match["minute"] or match["half"])


def _is_surely_time(match: re.Match) -> bool:
    """12:05, 3:15 p.m. and 10:20:30 are no ratios, nor is 9:15, not being reduced."""
    if match["half"] or match["second"] or match["minute"].startswith("0"):
        return True
    return math.gcd(int(match["hour"]), int(match["minute"])) != 1


def _seconds(match: re.Match) -> int:
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return 3600 * hour + 60 * int(match["minute"] or 0) + int(match["second"] or 0)
