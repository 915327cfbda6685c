"""Words that announce an answer in some twenty languages, as "the answer is"."""

import re

_IS = (
    r"(?:\s|\*|_)*(?:(?:(?:is|are|was|equals|(?:should|would|must|will|has to) be)\b"
    r"|[:=\uff1a]|\n)(?:\s|\*|_)*)+"
)
_ENGLISH = (
    r"(?<![a-zA-Z])answers?(?![a-zA-Z])(?:\s+(?:to|for|of)\b[^.:\n]{0,60}?)?" + _IS
)
_OTHER_LANGUAGES = (
    r"(?:\u7b54\u6848|\u7b54)(?:\u5e94\u8be5)?\s*[\u662f\u4e3a\u70ba]?\s*[:\uff1a]?",
    r"\u7b54\u3048\u306f",
    r"(?:\uc815\ub2f5|\ub2f5)(?:\uc740|:)",
    r"\u0909\u0924\u094d\u0924\u0930\s*(?:\u0939\u0948)?\s*[:\uff1a]?",
    r"\u0627\u0644(?:\u0625\u062c\u0627\u0628\u0629|\u062c\u0648\u0627\u0628)"
    r"[^0-9:]{0,20}[:\s]",
    r"r\u00e9ponse(?:\s+\w+)?\s*(?:est|:)",
    r"respuesta(?:\s+\w+)?\s*(?:es|:)",
    r"resposta(?:\s+\w+)?\s*(?:\u00e9|:)",
    r"risposta(?:\s+\w+)?\s*(?:\u00e8|:)",
    r"antwort\s*(?:ist|lautet|:)",
    r"antwoord\s*(?:is|:)",
    r"\u043e\u0442\u0432\u0435\u0442\s*(?:[:\u2014-]|\u0440\u0430\u0432\u0435\u043d)?",
    r"odpowied\u017a\s*(?:to|:)",
    r"cevap\s*:?",
    r"\u03b1\u03c0\u03ac\u03bd\u03c4\u03b7\u03c3\u03b7\s*(?:\u03b5\u03af\u03bd\u03b1\u03b9|:)",
    r"(?:\u0111\u00e1p \u00e1n|c\u00e2u tr\u1ea3 l\u1eddi)\s*(?:l\u00e0|:)",
)
ANSWER = re.compile("|".join([_ENGLISH, *_OTHER_LANGUAGES]), re.IGNORECASE)
CHOICE = re.compile(
    ANSWER.pattern + r"|\b(?:choice|option)\b(?:\s+\w+){0,2}\s+is\b", re.IGNORECASE
)
