"""Sentences that give no answer though they hold one: "7 oder 8", "at least 7"."""

import re

_EITHER = re.compile(
    r"[0-9$)}\]]\s*(?:\b(?:oder|ou|o|u|\u0438\u043b\u0438|\u043b\u0438\u0431\u043e|albo"
    r"|lub|veya|atau|eller|ho\u1eb7c)\b|\u6216\u8005?|\u307e\u305f\u306f|\ub610\ub294"
    r"|\ud639\uc740)\s*[0-9$\\(-]",
    re.IGNORECASE,
)
"""3 or 4, in other languages."""
_ALSO = re.compile(
    r"[\s.*]*(?:or|alternatively|maybe|perhaps|possibly|otherwise)\b.{0,40}"
    r"(?:[0-9$\\]|\b[A-J]\b)",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\W*(?:at (?:least|most)|(?:greater|less|more|fewer|larger|smaller|bigger|higher"
    r"|lower) than|over|under|above|below|never|neither|anything)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\bnot|n['\u2019]t|\bcannot|\bnever|\bneither|\bnor|\b(?:anything|all|none) but"
    r"|\bother than|\binstead of|\brather than)"
    r"(?:\s+(?:be|to|equal|equals|exactly|just))*\s+[$\\(]*$"
    r"|[<>\u2264\u2265]=?\s*$",
    re.IGNORECASE,
)
AFTER_BOX = re.compile(
    r"[\s$.,;*\\()\[\]]*(?:text\s*\{\s*)?\(?\b(?:or|alternatively|maybe|perhaps|possibly"
    r"|otherwise)\b(.{0,60})",
    re.IGNORECASE | re.DOTALL,
)
IN_WORDS = re.compile(
    r"\b(?:or|nor|not|isn['\u2019]?t|wrong|incorrect|false|if|unless|otherwise|maybe"
    r"|perhaps|alternatively|but)\b",
    re.IGNORECASE,
)
"""In the words after a number, where only a unit is expected."""


def hedged(sentence: str, text: str, end: int) -> bool:
    """Whether a sentence that names the answer, or the one after it, takes it back.

    Args:
      sentence: what stands after "the answer is".
      text: the text that it begins.
      end: where the sentence ends in it.
    """
    return bool(
        _EITHER.search(sentence) or _BOUND.match(sentence) or _ALSO.match(text, end)
    )


def either(sentence: str) -> bool:
    """Whether a sentence leaves a choice between two values."""
    return _EITHER.search(sentence) is not None


def denied(sentence: str, start: int) -> bool:
    """Whether the value that starts there is said not to be the answer.

    Example:
      >>> denied("it is 6, not 7", 13), denied("it is 6, not 7", 6)
      (True, False)
    """
    return _DENIED.search(sentence, max(0, start - 40), start) is not None
