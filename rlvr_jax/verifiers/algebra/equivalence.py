"""Whether two written answers are the same: from text to tree to verdict.

The ladder: equal as text; else equal as trees; else equal in value, exactly where both
are rational and by many digits where they are not (`compare`, `scalars`, `numeric`).
"""

import re
from typing import NamedTuple

from rlvr_jax.verifiers.algebra import compare
from rlvr_jax.verifiers.algebra.normalise import latex
from rlvr_jax.verifiers.algebra.parser import parse
from rlvr_jax.verifiers.algebra.tree import (
    MAX_CHARACTERS,
    Node,
    ParseError,
    TooLarge,
    Undefined,
)

_WORDS = re.compile(r"\\[a-zA-Z]+|[\s{}\\$()*_^~.,;:!?'\"`-]")
_SPACES = re.compile(r"\s|\\(?=[{}])")
_GROUPED = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9,])")
_SPACED = re.compile(r"[-+]?[1-9][0-9]{0,2}(?: [0-9]{3})+(?:[.,][0-9]+)?(?![0-9])")
_POINTED = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+")
_COMMA_NUMBER = re.compile(r"(?<![0-9,])[0-9]+,[0-9]+(?![0-9,])")
_BASED = re.compile(
    r"[({]*\s*((?=[A-F]*[0-9])[0-9A-F]{1,60})\s*[)}]*_\{?([0-9]{1,2})\}?"
)
_CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})\s*(?:\\text\{)?\s*"
    r"(?P<half>[ap]\.?\s?m\.?)?\}?",
    re.IGNORECASE,
)


class Reading(NamedTuple):
    """One answer: its text, and the trees it may stand for."""

    text: str
    trees: tuple[Node, ...]
    problem: str = ""
    """Why it could not be read as mathematics; it is compared as text then."""


def read(written: str) -> Reading:
    """All that a written answer may mean: 1,234 is a number, or a list of two."""
    if len(written) > MAX_CHARACTERS:
        return Reading(written.strip(), (), f"{len(written)} characters are too many")
    text = latex(written)
    trees: list[Node] = []
    problem = ""
    if based := _BASED.fullmatch(text):
        trees.append(Node("base", (), (based[1].lstrip("0") or "0", int(based[2]))))
    for variant in _variants(text):
        try:
            node = parse(variant)
        except (ParseError, TooLarge) as error:
            problem = str(error)
            continue
        if node not in trees:
            trees.append(node)
    return Reading(text, tuple(trees), "" if trees else problem)


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
    for one in gold.trees:
        for other in answer.trees:
            try:
                if compare.same(one, other):
                    return True
            except (TooLarge, Undefined) as error:
                problem = error
    if problem is not None:
        raise problem
    return False


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


def _variants(text: str) -> list[str]:
    """The text, with commas in numbers read as thousands, as lists, as decimals."""
    if _SPACED.fullmatch(text):
        return [text.replace(" ", "").replace(",", ".")]
    if _POINTED.fullmatch(text):
        return [text.replace(".", "").replace(",", ".")]
    if "," not in text:
        return [text]
    found = []
    if _GROUPED.search(text):
        found.append(_ungrouped(text))
    found.append(text)
    plain = not re.search(r"[()\[\]{}]", text)
    if plain and text.count(",") == len(_COMMA_NUMBER.findall(text)):
        if not _GROUPED.search(text):
            found.append(text.replace(",", "."))
    return found


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
    """Compares times of day, if at least one says a.m. or p.m."""
    matches = _CLOCK.fullmatch(gold), _CLOCK.fullmatch(answer)
    if None in matches or not any(match and match["half"] for match in matches):
        return None
    minutes = {_minutes(match) for match in matches if match}
    return len(minutes) == 1


def _minutes(match: re.Match) -> int:
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return 60 * hour + int(match["minute"])
