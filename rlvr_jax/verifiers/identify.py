"""Which language a text is in, by its script and its function words.

Small on purpose: no model, microseconds. It knows the languages of `LANGUAGES`. A
script that only one of them uses decides alone. Latin, Cyrillic, Arabic and Devanagari
are shared, and there the small words decide: a text of three words may stay undecided
(None in Latin letters, else the script's most spoken language), and a language that is
not listed, such as Serbian or Catalan, is taken for a near one or for none.
"""

import collections
import functools
import pathlib
import re
from collections.abc import Iterable
from typing import NamedTuple

_FUNCTION_WORDS = pathlib.Path(__file__).parents[1] / "data/packaged/function_words.txt"

_RANGES = {
    "latin": r"A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff",
    "cyrillic": r"\u0400-\u052f",
    "greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "arabic": r"\u0620-\u065f\u066e-\u06d3\u06d5\u06ee-\u06ef\u06fa-\u06ff\u0750-\u077f"
    r"\ufb50-\ufdff\ufe70-\ufefc",
    "hebrew": r"\u05d0-\u05ea",
    "devanagari": r"\u0900-\u0963\u0971-\u097f",
    "bengali": r"\u0980-\u09e3\u09f0-\u09fe",
    "gurmukhi": r"\u0a01-\u0a5e\u0a70-\u0a75",
    "gujarati": r"\u0a81-\u0ae3\u0af9",
    "tamil": r"\u0b82-\u0bd7",
    "telugu": r"\u0c00-\u0c63",
    "kannada": r"\u0c80-\u0ce3",
    "malayalam": r"\u0d00-\u0d63\u0d7a-\u0d7f",
    "thai": r"\u0e01-\u0e3a\u0e40-\u0e4e",
    "han": r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f",
    "kana": r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\uff66-\uff9d",
    "hangul": r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
}
_ALONE = {
    "greek": "el",
    "hebrew": "he",
    "bengali": "bn",
    "gurmukhi": "pa",
    "gujarati": "gu",
    "tamil": "ta",
    "telugu": "te",
    "kannada": "kn",
    "malayalam": "ml",
    "thai": "th",
    "hangul": "ko",
}
LANGUAGES = {
    **{code: (script,) for script, code in _ALONE.items()},
    "zh": ("han",),
    "ja": ("kana", "han"),
    "ko": ("hangul",),
    **dict.fromkeys("ru uk bg".split(), ("cyrillic",)),
    **dict.fromkeys("ar fa ur".split(), ("arabic",)),
    **dict.fromkeys("hi mr ne".split(), ("devanagari",)),
    **dict.fromkeys(
        "en de fr es it pt nl sv da no pl cs vi fi sw tr id hu ro tl".split(),
        ("latin",),
    ),
}
"""ISO 639-1 code -> the scripts its words are written in."""

_MOST_SPOKEN = {"cyrillic": "ru", "arabic": "ar", "devanagari": "hi"}
# Scripts that set no blanks between words: characters of a usual word.
_LETTERS_PER_WORD = {"han": 2, "kana": 2, "thai": 4}
_WORD = re.compile(
    "|".join(
        rf"(?P<{script}>[{letters}]+(?:['\u2019][{letters}]+)*)"
        for script, letters in _RANGES.items()
    )
)
_SURE = 1.1
"""Evidence that decides: a word that only one language has and a little more."""


class Word(NamedTuple):
    """A run of letters of one script, in lower case."""

    text: str
    script: str
    weight: int
    """Words it stands for: 1, or its length in usual words where no blanks are set."""


def words(text: str) -> list[Word]:
    """The words of a text; digits and marks are none.

    Example:
      >>> [(word.script, word.weight) for word in words("ab cd 你好 x1")]
      [('latin', 1), ('latin', 1), ('han', 1), ('latin', 1)]
    """
    found = []
    for match in _WORD.finditer(text):
        script = match.lastgroup or ""
        usual = _LETTERS_PER_WORD.get(script)
        weight = -(-len(match[0]) // usual) if usual else 1
        found.append(Word(match[0].lower().replace("\u2019", "'"), script, weight))
    return found


def identify(text: str) -> str | None:
    """The ISO 639-1 code of the language that most of the text is in.

    Returns:
      A key of `LANGUAGES`, or None: no words, or too few that tell.

    Example:
      >>> identify("Der Fluss ist lang und breit."), identify("この川は長い。")
      ('de', 'ja')
      >>> identify("Smith Jones") is None
      True
    """
    found = words(text)
    counts: collections.Counter[str] = collections.Counter()
    for word in found:
        counts[word.script] += word.weight
    if not counts:
        return None
    if counts["kana"] + counts["han"] > counts.total() / 2:
        return "ja" if 10 * counts["kana"] > counts["han"] else "zh"
    script = max(counts, key=lambda name: counts[name])
    if script in ("han", "kana"):
        return "zh" if script == "han" else "ja"
    if script in _ALONE:
        return _ALONE[script]
    own = (word.text for word in found if word.script == script)
    return among(script, own) or _MOST_SPOKEN.get(script)


def among(script: str, texts: Iterable[str]) -> str | None:
    """The language of words of one script, where their evidence is clear."""
    scores: dict[str, float] = collections.defaultdict(float)
    words_of, letters_of = _evidence(script)
    for text in texts:
        for code, weight in words_of.get(text, ()):
            scores[code] += weight
        for letter in letters_of.keys() & set(text):
            scores[letters_of[letter]] += 1.0
    if not scores:
        return None
    best, *others = sorted(scores, key=lambda code: -scores[code])
    if scores[best] < _SURE or (others and scores[best] < 1.2 * scores[others[0]]):
        return None
    return best


@functools.cache
def _evidence(
    script: str,
) -> tuple[dict[str, list[tuple[str, float]]], dict[str, str]]:
    """Word -> its languages, each with its part of the evidence; letter -> language."""
    owners: dict[str, list[str]] = {}
    letter_owner = {}
    for line in _FUNCTION_WORDS.read_text(encoding="utf8").splitlines():
        code, its_script, *listed = line.split()
        if code == "#" or its_script != script:
            continue
        cut = listed.index("|") if "|" in listed else len(listed)
        letter_owner |= dict.fromkeys(listed[cut + 1 :], code)
        for word in listed[:cut]:
            owners.setdefault(word, []).append(code)
    weights = {
        word: [(code, 1 / len(codes)) for code in codes]
        for word, codes in owners.items()
    }
    return weights, letter_owner
