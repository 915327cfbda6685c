"""Answers in running text: "the answer is 5", "so they need 12 more."

Sentences that name their answer come first; without one, the last value of the text
counts. "3 or 4" is a list of two, so it can only match a list of two.
"""

import re

from rlvr_jax.verifiers.algebra.lexer import FUNCTIONS

_MARKERS = (
    r"\banswers?\b(?:\s+(?:to|for|of)\b[^.:\n]{0,60}?)?"
    r"(?:\s|\*|_)*(?:(?:is|are|was|equals|(?:should|would|must|will|has to) be|[:=\uff1a]"
    r"|\n)(?:\s|\*|_)*)+",
    r"(?:\u7b54\u6848|\u7b54)(?:\u5e94\u8be5)?\s*(?:\u662f|\u4e3a|\u70ba)?\s*[:\uff1a]?",
    r"\u7b54\u3048\u306f",
    r"(?:\uc815\ub2f5|\ub2f5)(?:\uc740|:)",
    r"\u0909\u0924\u094d\u0924\u0930\s*(?:\u0939\u0948)?\s*[:\uff1a]?",
    r"(?:\u0627\u0644\u0625\u062c\u0627\u0628\u0629|\u0627\u0644\u062c\u0648\u0627\u0628)"
    r"[^0-9:]{0,20}[:\s]",
    r"r\u00e9ponse(?:\s+finale)?\s*(?:est|:)",
    r"respuesta(?:\s+final)?\s*(?:es|:)",
    r"resposta(?:\s+final)?\s*(?:\u00e9|:)",
    r"risposta(?:\s+finale)?\s*(?:\u00e8|:)",
    r"antwort\s*(?:ist|lautet|:)",
    r"antwoord\s*(?:is|:)",
    r"\u043e\u0442\u0432\u0435\u0442\s*(?:[:\u2014-]|\u0440\u0430\u0432\u0435\u043d)?",
    r"odpowied\u017a\s*(?:to|:)",
    r"cevap\s*:?",
    r"(?:\u0111\u00e1p \u00e1n|c\u00e2u tr\u1ea3 l\u1eddi)\s*(?:l\u00e0|:)",
)
_MARKER = re.compile("|".join(_MARKERS), re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?:\*\*|\$)?\s+|(?<=[\u3002\uff01\uff1f\u0964])|\n+"
)
_CLOSING = re.compile(r"\s*I hope (?:it|this) (?:is correct|helps)\W*$", re.IGNORECASE)
_FILLER = re.compile(
    r"(?:[\s*_:=\uff1a]|(?:is|are|either|about|approximately|roughly|exactly|simply|just"
    r"|only|thus|therefore|hence|so|likely|probably|definitely|clearly|indeed|that|equal"
    r" to|given by|now|then|be|for sure|option|choice|letter|est|es|ist|is:)\b)+",
    re.IGNORECASE,
)
_MATH = re.compile(
    r"\$\$(?P<a>.{1,800}?)\$\$|\\\[(?P<b>.{1,800}?)\\\]|\\\((?P<c>.{1,800}?)\\\)|(?<!\\)\$(?P<d>[^$\n]{1,800}?)\$",
    re.DOTALL,
)
_PROSE_WORD = re.compile(
    r"(?<![\\a-zA-Z_{])[a-zA-Z]{2,}(?![a-zA-Z]*\()|[^\x00-\u036f\u0391-\u03c9\u2000-\u2bff]"
)
_NO_PROSE = FUNCTIONS | frozenset(
    "and or pi infinity percent pct hundred thousand million billion inf".split()
)
_PERCENT = r"(?:\s?\\?%|\s+(?:percent|pct)\b)"
_NUMBER = (
    r"(?:(?<![a-zA-Z0-9)\]}.])[-+\u2212]\s?)?(?<![a-zA-Z0-9.,^_{])\\?[$\u20ac\u00a3]?\s?"
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:[.,][0-9]+)?(?:\s?/\s?[0-9]+)?"
    r"(?:\s*(?:\\times|\*|x|\u00d7)\s*10\^\{?-?[0-9]+\}?)?"
)
_JOINT = r"\s*(?:,|;|/|\bor\b|\band\b|\bto\b|\(\s*or\b)\s*(?:(?:or|and|maybe|perhaps|even)\b\s*)*"
_NUMBERS = re.compile(
    rf"{_NUMBER}(?:{_PERCENT})?(?:{_JOINT}{_NUMBER}(?:{_PERCENT})?)*(?![\w^]*[_^])"
)
_LETTER_START = re.compile(
    r"\W*?\(?\s*\*{0,2}([A-J])\*{0,2}\)?(?=\s*$|\s*[.,:;)!]|\s+[a-zA-Z(]|[^\x00-\x7f])"
)
_LETTER = re.compile(r"(?<![a-zA-Z0-9'])\(?([A-J])\)?(?![a-zA-Z0-9'])")
_OTHER_LETTER = re.compile(
    r"[\s.,;)*]*\b(?:or|and|alternatively|maybe|perhaps)\b\s*\(?[A-J]\b", re.IGNORECASE
)
_ALSO = re.compile(
    r"\s*(?:or|alternatively|maybe|perhaps|possibly|otherwise)\b.{0,40}(?:[0-9$\\]|\b[A-J]\b)",
    re.IGNORECASE,
)
_LONGEST_PLAIN = 400
_SEARCHED = 6000
"""Characters from the end of a text; what a formula or sentence may need, and a bound
on the time that a text made of opening brackets can take."""


def statements(text: str, kind: str) -> list[str]:
    """The values of all sentences that name the answer; "" for one that is hedged."""
    found = []
    text = text[-_SEARCHED:]
    for match in _MARKER.finditer(text):
        after = text[match.end() :]
        sentence = _first_sentence(after)
        if _MARKER.search(sentence) or not sentence.strip(" *_$.:\n"):
            continue
        rest = after[len(sentence) :]
        if _ALSO.match(rest.lstrip(" .*\n")):
            found.append("")
        elif value := value_at_start(sentence, kind) or _value_in(sentence, kind):
            found.append(value)
    return found


def value_at_start(text: str, kind: str) -> str:
    """The value that a text begins with, after words like "exactly"; "" if none."""
    filler = _FILLER.match(text)
    text = text[filler.end() :] if filler else text
    if kind == "letter":
        return _letter_at_start(text)
    if kind == "words":
        return text.strip(" .*_\n")
    if match := _MATH.match(text):
        return _with_following(text, match)
    for word in _PROSE_WORD.finditer(text):
        if word[0].lower() not in _NO_PROSE and not _is_unit(text, word):
            text = text[: word.start()]
            break
    text = re.sub(r"\s+[aI]\s*$|[\s,;:(*]+$", "", text).strip()
    return text if re.search(r"[0-9]|\\[a-z]|^[a-zA-Z]\b|[=<>\[(]", text) else ""


def last_value(text: str, kind: str) -> tuple[str, str]:
    """The last value of a text that marks no answer, and what is wrong if none is.

    Returns:
      (value, ""), or ("", the reason).
    """
    text = _CLOSING.sub("", _one_line_displays(text[-_SEARCHED:])).strip()
    if kind == "letter" and (letter := _letter_at_start(text)):
        return letter, ""
    if _is_plain(text, kind):
        return text, ""
    for sentence in reversed(_SENTENCE_END.split(text)):
        if value := _value_in(sentence, kind):
            return value, ""
    return "", "no answer in the text"


def _first_sentence(text: str) -> str:
    match = _SENTENCE_END.search(text)
    while match and not text[: match.start()].strip(" *_:$\n"):
        match = _SENTENCE_END.search(text, match.end())
    return text[: match.start()] if match else text


def _one_line_displays(text: str) -> str:
    return re.sub(
        r"\\\[.+?\\\]|\$\$.+?\$\$",
        lambda match: match[0].replace("\n", " "),
        text,
        flags=re.DOTALL,
    )


def _is_plain(text: str, kind: str) -> bool:
    """Whether the whole text is the answer and nothing besides."""
    if len(text) > _LONGEST_PLAIN or "\n" in text.strip():
        return False
    if kind == "words":
        return True
    return all(
        word[0].lower() in _NO_PROSE or _is_unit(text, word)
        for word in _PROSE_WORD.finditer(text)
    )


def _is_unit(text: str, word: re.Match) -> bool:
    """A word right behind a number, or within a command's braces."""
    before = text[: word.start()].rstrip()
    return (
        before[-1:].isdigit()
        or before[-1:] == "}"
        or text[: word.start()].count("{") > text[: word.start()].count("}")
    )


def _with_following(text: str, match: re.Match) -> str:
    """A formula, with those joined to it by a comma or an "and", and a percent sign."""
    values = [_formula(match)]
    while joint := re.compile(_JOINT).match(text, match.end()):
        after = _MATH.match(text, joint.end())
        if after is None:
            number = re.compile(_NUMBER).match(text, joint.end())
            if number and "or" in joint[0]:
                values.append(number[0])
            break
        match = after
        values.append(_formula(match))
    percent = re.compile(_PERCENT).match(text, match.end())
    return ", ".join(values) + (r"\%" if percent else "")


def _formula(match: re.Match) -> str:
    return next(group for group in match.groups() if group is not None)


def _value_in(sentence: str, kind: str) -> str:
    """The last value of a sentence: a formula or a number, whichever comes later."""
    if kind == "letter":
        return _last_letter(sentence)
    if kind == "words":
        return ""
    found: list[tuple[int, str]] = []
    formulas = [
        match for match in _MATH.finditer(sentence) if _is_formula(_formula(match))
    ]
    for match in formulas[-1:]:
        found.append((match.end(), _last_side(_formula(match))))
    numbers = [
        match
        for match in _NUMBERS.finditer(sentence)
        if not any(other.start() <= match.start() < other.end() for other in formulas)
    ]
    for match in numbers[-1:]:
        found.append((match.end(), _number(match, sentence)))
    return max(found)[1] if found else ""


def _is_formula(text: str) -> bool:
    """Not the prose between two dollar signs that mean money."""
    return not any(
        word[0].lower() not in _NO_PROSE and not _is_unit(text, word)
        for word in _PROSE_WORD.finditer(text)
    )


def _last_side(formula: str) -> str:
    """Of a chain of equations the last side, as it is the result."""
    if formula.count("=") < 2 or "," in formula:
        return formula
    return formula.rpartition("=")[2]


def _number(match: re.Match, sentence: str) -> str:
    text = re.sub(r"\b(?:or|and|maybe|perhaps|even|to)\b|\(", ",", match[0])
    return re.sub(r"(?:\s*,){2,}|,(?=\s)", ", ", text).strip(" ,$")


def _letter_at_start(text: str) -> str:
    match = _LETTER_START.match(text)
    if not match or _OTHER_LETTER.match(text, match.end()):
        return ""
    article = match[1] == "A" and re.match(r"\s[a-z]", text[match.end() :])
    return "" if article else match[1]


def _last_letter(text: str) -> str:
    """The one letter that a sentence names, as in "so it must be (B)"."""
    letters = [
        match
        for match in _LETTER.finditer(text)
        if not re.match(r"\s[a-z]", text[match.end() :]) or "(" in match[0]
    ]
    names = {match[1] for match in letters}
    return names.pop() if len(names) == 1 else ""
