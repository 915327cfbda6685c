"""The letter of a multiple-choice answer in running text."""

import re

LETTER = r"\(?\s*\*{0,2}([A-J])\*{0,2}\s*\)?"
_AT_START = re.compile(
    rf"\W*?{LETTER}(?=\s*$|\s*[.,:;)!]|\s+[a-zA-Z(]|\s*[^\x00-\x7f])"
)
_ANYWHERE = re.compile(r"(?<![a-zA-Z0-9'])\(?([A-J])\)?(?![a-zA-Z0-9'])")
_JOINED = re.compile(
    r"[\s.,;)*]*\b(?i:or|and|alternatively|maybe|perhaps|oder|ou)\b\s*\(?[A-J]\b"
    r"|[\s)]*[,/|]\s*\(?[A-J]\b|[\s)]*\(?\s*[A-HJ]\b\)?(?!['\w-])"
)
_REJECTED = re.compile(
    r"\b(?i:not|neither|nor|isn't|can't be|cannot be|rather than|instead of|except)\b"
    r"\s*\(?[A-J]\b\)?(?:\s*(?:or|nor|and|,)\s*\(?[A-J]\b\)?)*"
)
_RULED_OUT = re.compile(
    r"\W*(?i:(?:is|was|does|can|could)(?:n['\u2019]t|\s+not)\b|cannot\b"
    r"|(?:(?:is|was)\s+)?(?:wrong|incorrect|false|impossible|invalid|eliminated"
    r"|ruled out|out|too)\b)"
)
_CONCLUSION = re.compile(r"\W*(?:so|thus|hence|therefore|finally)\b", re.IGNORECASE)
_AFTER_A_CHOICE = ("or", "and", "is", "because", "since", "but", "not", "as")


def at_start(text: str) -> str:
    """The letter that a text begins with; several joined ones as they stand.

    Example:
      >>> at_start("(B) because A is too small"), at_start("A or B"), at_start("A cat")
      ('B', 'A or B', '')
      >>> at_start("B is wrong")
      ''
    """
    match = _AT_START.match(text)
    if not match or _is_article(text, match) or _RULED_OUT.match(text, match.end()):
        return ""
    if other := _JOINED.match(text, match.end()):
        return match[0] + other[0]
    return match[1]


def concluded(sentence: str) -> str:
    """The one letter of a sentence that begins with "so" or its like; else "".

    Example:
      >>> concluded("Hence it is C."), concluded("C is left.")
      ('C', '')
    """
    return only(sentence) if _CONCLUSION.match(sentence) else ""


def only(text: str) -> str:
    """The one letter that a text names besides those it rules out; else "".

    Example:
      >>> only("so it must be (B), not C"), only("either A or B")
      ('B', '')
    """
    text = _REJECTED.sub("", text)
    names = {
        match[1] for match in _ANYWHERE.finditer(text) if not _is_article(text, match)
    }
    return names.pop() if len(names) == 1 else ""


def _is_article(text: str, letter: re.Match) -> bool:
    """The A of "a letter" or the I of "I think", and no choice."""
    if letter[1] not in "AI" or "(" in letter[0]:
        return False
    following = re.match(r"\s([a-z]+)", text[letter.end() :])
    return bool(following and following[1] not in _AFTER_A_CHOICE)
