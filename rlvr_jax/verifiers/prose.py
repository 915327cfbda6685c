"""Answers in running text: "the answer is 5", "so they need 12 more."

Sentences that name their answer come first; without one, the last value of the text
counts. "3 or 4" is a list of two, so it can only match a list of two.

What the reference is (`kind`: value, letter or words) says what to look for.
"""

import re
from itertools import pairwise

from rlvr_jax.verifiers import choices, hedges, markers
from rlvr_jax.verifiers.algebra import phrases
from rlvr_jax.verifiers.algebra.lexer import FUNCTIONS
from rlvr_jax.verifiers.algebra.units import UNITS

_SEARCHED = 4000
"""Characters from the end of a text: ample for an answer, and a bound on the time that
a text made of opening brackets can take."""
_LONGEST_PLAIN = 400

_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?:\*\*|\$)?\s+|(?<=[\u3002\uff01\uff1f\u0964])|\n+"
)
_CLOSING = re.compile(r"\s*I hope (?:it|this) (?:is correct|helps)\W*$", re.IGNORECASE)
_FILLER = re.compile(
    r"(?:[\s*_:=\uff1a}]|(?:is|are|either|about|approximately|roughly|exactly|simply|just"
    r"|only|thus|therefore|hence|so|likely|probably|definitely|clearly|indeed|that"
    r"|equal to|given by|now|then|be|for sure|option|choice|letter|est|es|ist)\b)+",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\W*not\b", re.IGNORECASE)
_REASON = re.compile(r",?\s+(?:because|since|as|which|so)\b.*", re.DOTALL)
_FORMULA = re.compile(
    r"\$\$(?P<a>.{1,800}?)\$\$|\\\[(?P<b>.{1,800}?)\\\]|\\\((?P<c>.{1,800}?)\\\)"
    r"|(?<!\\)\$(?P<d>[^$\n]{1,800}?)\$"
    r"|(?P<f>-?[0-9]*\\[dtc]?frac\s*\{[^{}\n]{1,80}\}\s*\{[^{}\n]{1,80}\})"
    r"|(?P<e>[(\[][^()\[\]\n]{0,60}[0-9][^()\[\]\n]{0,60},[^()\[\]\n]{1,60}[)\]])",
    re.DOTALL,
)
_LAST_LETTER = re.compile(r"\s[aI]\s*$")
_DANGLING = " \t\n\r\f\v,;:(*"
_WORD = re.compile(
    r"(?<![\\a-zA-Z_{])[a-zA-Z]{2,}(?![a-zA-Z]*\()"
    r"|[^\x00-\u036f\u0391-\u03c9\u2000-\u2bff]"
)
_NO_PROSE = FUNCTIONS | frozenset(
    "and or pi infinity inf oo base percent pct hundred thousand million billion am "
    "pm".split()
)
_LONGEST_PRODUCT = 3
_SHORT_WORDS = frozenset(
    "is it so we he an at to of in on by if be do go as am us the no my for "
    "are was has had but not its can our you all any one two six ten red "
    "sum she him her his who how why did get got let now see say use way "
    "per out off too yes may i a".split()
)

_PERCENT = re.compile(r"(?:\s?\\?%|\s+(?:percent|pct)\b)")
_NUMBER = re.compile(
    r"(?:(?<![a-zA-Z0-9)\]}.])[-+\u2212]\s?)?(?<![a-zA-Z0-9.,^_{])"
    r"\\?[$\u20ac\u00a3]?\s?\u221a?"
    r"(?:[0-9]{1,2}:[0-9]{2}(?:\s?[aApP]\.?[mM]\b\.?)?"
    r"|(?:[0-9]{1,3}(?:,[0-9]{3})+|[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9])|[0-9]+)"
    r"(?:[.,][0-9]+)?(?:\s?/\s?[0-9]+)?"
    r"(?:\s*(?:\\times|\*|x|\u00d7)\s*10\^\{?-?[0-9]+\}?)?)"
    r"(?:\\pi(?![a-zA-Z])|\\sqrt(?:\{[^{}]{1,30}\}|[0-9])|\s?\u03c0|\s?\u221a(?:[0-9]+|\([0-9]+\)))*"
)
_UNFINISHED = re.compile(r"[-+*/=<>]\s*$")
_BARE = re.compile(
    r"(?:^|(?<=\s))((?=[^\s]{0,60}[a-zA-Z])(?=[^\s]{0,60}[0-9])"
    r"[-(]?[0-9a-zA-Z][0-9a-zA-Z()^*/]{0,20}[-+*/^][-+0-9a-zA-Z^*/()]{0,40}"
    r"|[a-zA-Z]\s*(?:[<>]=?|\u2264|\u2265)\s*-?[0-9]+(?:[./][0-9]+)?)\s*\.?\s*$"
)
"""17x+3 or x < 17 at the end of a sentence, without dollar signs."""
_CALCULATED = re.compile(r"[0-9)%]\s*=\s*$")
_NEW_CLAUSE = re.compile(
    r"[=;:,]|\b(?:so|then|thus|hence|therefore|which|that|leaving|and|but|or|not|is|are)\b"
)
_JOINT = re.compile(
    r"\s*(?:,|;|/|\bor\b|\band\b|\bto\b|\(\s*or\b)\s*"
    r"(?:(?:or|and|maybe|perhaps|even)\b\s*)*"
)
_ONE = rf"{_NUMBER.pattern}(?:{_PERCENT.pattern})?"
_NAMED = r"(?:[a-zA-Z](?:_?[0-9])?\s*=\s*)?"
_NUMBERS = re.compile(rf"{_ONE}(?:{_JOINT.pattern}{_NAMED}{_ONE})*(?![\w^]*[_^])")


def statements(text: str, kind: str) -> list[str]:
    """The values of all sentences that name the answer; "" for one that is hedged."""
    found = []
    text = text[-_SEARCHED:]
    marker = markers.CHOICE if kind == "letter" else markers.ANSWER
    for match in marker.finditer(text):
        after = text[match.end() :]
        sentence = _first_sentence(after)
        if marker.search(sentence) or not sentence.strip(" *_$.:\n"):
            continue
        hedged = hedges.hedged(sentence, after, len(sentence))
        if _NEGATED.match(sentence) and kind == "letter":
            found.append(choices.only(sentence))
        elif _NEGATED.match(sentence) or hedged:
            found.append("")
        elif value := value_at_start(sentence, kind) or _value_in(sentence, kind):
            found.append(value)
    return found


def value_at_start(text: str, kind: str) -> str:
    """The value that a text begins with, after words like "exactly"; "" if none."""
    filler = _FILLER.match(text)
    text = text[filler.end() if filler else 0 :][:_SEARCHED]
    if kind == "letter":
        return choices.at_start(text)
    if kind == "words":
        return _REASON.sub("", text).strip(" .*_\n")
    if match := _FORMULA.match(text):
        return _with_following(text, match)
    if word := _first_word(text):
        text = text[: word.start()]
    text = _LAST_LETTER.sub("", text).rstrip(_DANGLING)
    text = text.removesuffix(".") if not text.endswith("..") else text
    text = text.strip()
    return text if re.search(r"[0-9]|\\[a-z]|^[a-zA-Z]\b|[=<>\[(]", text) else ""


def last_value(text: str, kind: str) -> tuple[str, str]:
    """The last value of a text that marks no answer, and what is wrong if none is.

    Returns:
      (value, ""), or ("", the reason).
    """
    text = _CLOSING.sub("", _one_line_displays(text[-_SEARCHED:])).strip()
    sentences = _SENTENCE_END.split(text)
    if kind == "letter" and (letter := choices.at_start(text)):
        return choices.concluded(sentences[-1]) or letter, ""
    if _is_plain(text, kind):
        return text, ""
    for sentence in reversed(sentences):
        if hedges.either(sentence):
            return "", "a choice of answers"
        if value := _value_in(sentence, kind):
            return value, ""
        if kind == "value" and _NUMBERS.search(sentence):
            return "", "a value that is denied"
    return "", "no answer in the text"


def _first_sentence(text: str) -> str:
    match = _SENTENCE_END.search(text)
    while match and not text[: match.start()].strip(" *_:$\n"):
        match = _SENTENCE_END.search(text, match.end())
    return text[: match.start()] if match else text


def _one_line_displays(text: str) -> str:
    return re.sub(
        r"\\\[.{1,800}?\\\]|\$\$.{1,800}?\$\$",
        lambda match: match[0].replace("\n", " "),
        text,
        flags=re.DOTALL,
    )


def _is_plain(text: str, kind: str) -> bool:
    """Whether the whole text is the answer and nothing besides."""
    if len(text) > _LONGEST_PLAIN or "\n" in text:
        return False
    if kind == "words" or (text.isascii() and not re.search(r"\s", text)):
        return True
    if _first_word(text) is None or phrases.meaning(text) is not None:
        return True
    if not text.isascii() or not re.search(r"[-+*/^=]|\\[a-z]|\bd[a-z]$", text):
        return False
    return ". " not in text and all(map(_is_product, _WORD.findall(text)))


def _is_product(word: str) -> bool:
    """Whether a run of letters in a formula is a product, as in ab + bc."""
    return len(word) <= _LONGEST_PRODUCT and word.lower() not in _SHORT_WORDS


def _first_word(text: str) -> re.Match | None:
    """The first word that belongs to no formula."""
    for word in _WORD.finditer(text):
        if word[0].lower() not in _NO_PROSE and not _is_unit(text, word):
            return word
    return None


def _is_unit(text: str, word: re.Match) -> bool:
    """A unit right behind a number, or anything within a command's braces."""
    if not word[0].isascii():
        return False
    before = text[: word.start()]
    if before.count("{") > before.count("}"):
        return True
    known = word[0] in UNITS and word[0] != "in"
    last = before.rstrip(" \\,;:!~")[-1:]
    return known and (last in tuple("0123456789}") or before.rstrip().endswith("\\pi"))


def _with_following(text: str, match: re.Match) -> str:
    """A formula, with those joined to it by a comma or an "and", and a percent sign."""
    values = [_inside(match)]
    while joint := _JOINT.match(text, match.end()):
        after = _FORMULA.match(text, joint.end())
        if after is None:
            number = _NUMBER.match(text, joint.end())
            if number and "or" in joint[0]:
                values.append(number[0])
            break
        match = after
        values.append(_inside(match))
    percent = _PERCENT.match(text, match.end())
    return ", ".join(values) + (r"\%" if percent else "")


def _inside(formula: re.Match) -> str:
    return next(group for group in formula.groups() if group is not None)


def _value_in(sentence: str, kind: str) -> str:
    """The last value of a sentence: a formula or a number, whichever comes later."""
    if kind == "letter":
        return choices.only(sentence)
    if kind == "words":
        return ""
    if bare := _BARE.search(sentence):
        if not re.search(r"[a-zA-Z]{2}", bare[1]):
            return bare[1]
    formulas = [
        match
        for match in _FORMULA.finditer(sentence)
        if _first_word(_inside(match)) is None  # else it is prose between two prices
        and not _UNFINISHED.search(_inside(match))
        and not hedges.denied(sentence, match.start())
    ]
    numbers = [
        match
        for match in _NUMBERS.finditer(sentence)
        if not any(other.start() <= match.start() < other.end() for other in formulas)
        and not hedges.denied(sentence, match.start())
    ]
    end_of_formula = formulas[-1].end() if formulas else -1
    if numbers and numbers[-1].end() > end_of_formula:
        return _number(_result(sentence, numbers) or numbers[-1])
    return _joined(sentence, formulas) if formulas else ""


def _result(sentence: str, numbers: list[re.Match]) -> re.Match | None:
    """The 9 of "4 + 5 = 9 points in 40 minutes": what a calculation comes to."""
    for match in reversed(numbers):
        if _CALCULATED.search(sentence, 0, match.start()):
            return None if _NEW_CLAUSE.search(sentence, match.end()) else match
    return None


def _joined(sentence: str, formulas: list[re.Match]) -> str:
    """The last formula, with those before it that an "and" or a comma joins to it."""
    values = [_last_side(_inside(formulas[-1]))]
    for after, before in pairwise(reversed(formulas)):
        if not _JOINT.fullmatch(sentence, before.end(), after.start()):
            break
        values.append(_inside(before))
    return ", ".join(reversed(values))


def _last_side(formula: str) -> str:
    """Of a chain of equations the last side, as it is the result."""
    if formula.count("=") < 2 or "," in formula:
        return formula
    return formula.rpartition("=")[2]


def _number(match: re.Match) -> str:
    text = re.sub(r"[a-zA-Z](?:_?[0-9])?\s*=\s*", "", match[0])
    text = re.sub(r"\b(?:or|and|maybe|perhaps|even|to)\b|\((?![0-9]+\))", ", ", text)
    return re.sub(r"[\s,]*,\s[\s,]*", ", ", text).strip(" ,$")
