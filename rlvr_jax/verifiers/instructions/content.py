"""Checks of what a response says: words, letters, lengths, case, language.

As in `layout`: the response, the arguments by name, the meanings of IFEval. Words to
look for are regular expressions there, and here.
"""

import collections
import contextlib
import operator
import re
from collections.abc import Callable, Sequence

from rlvr_jax.verifiers.instructions import counting, detection

_POSSESSIVE = re.compile(r"(?<!\\)[+*?]\+")
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "less than": operator.lt,
    "at least": operator.ge,
    # Not in IFEval, which knows the two above.
    "at most": operator.le,
    "more than": operator.gt,
    "exactly": operator.eq,
}


def keywords(response: str, *, keywords: Sequence[str]) -> bool:
    """All of the keywords, in either case, also inside of longer words."""
    return all(pattern(word).search(response) for word in keywords)


def keyword_frequency(
    response: str, *, keyword: str, frequency: int, relation: str
) -> bool:
    """The keyword so many times, in either case, also inside of longer words."""
    count = sum(1 for _ in pattern(keyword.strip()).finditer(response))
    return RELATIONS[relation](count, frequency)


def forbidden_words(response: str, *, forbidden_words: Sequence[str]) -> bool:
    """None of the words, in either case, as whole words."""
    return not any(
        pattern(word, whole=True).search(response) for word in forbidden_words
    )


def letter_frequency(
    response: str, *, letter: str, let_frequency: int, let_relation: str
) -> bool:
    """The character so many times, in either case."""
    count = collections.Counter(response.lower())[letter.strip().lower()]
    return RELATIONS[let_relation](count, let_frequency)


def number_words(response: str, *, num_words: int, relation: str) -> bool:
    """So many words: runs of letters, digits and underscores."""
    return RELATIONS[relation](counting.words(response), num_words)


def number_sentences(response: str, *, num_sentences: int, relation: str) -> bool:
    """So many sentences, as NLTK's Punkt splits English."""
    return RELATIONS[relation](counting.sentences(response), num_sentences)


def capital_word_frequency(
    response: str, *, capital_frequency: int, capital_relation: str
) -> bool:
    """So many words in capitals only; a hyphenated word is one."""
    count = counting.capital_words(response)
    return RELATIONS[capital_relation](count, capital_frequency)


def no_comma(response: str) -> bool:
    """No comma (the ASCII one)."""
    return "," not in response


def english_capital(response: str) -> bool:
    """English, and no lower-case letter."""
    return _is_english(response, response.isupper())


def english_lowercase(response: str) -> bool:
    """English, and no capital letter."""
    return _is_english(response, response.islower())


def _is_english(response: str, right_case: bool) -> bool:
    return right_case and detection.follows(response, "en")


def response_language(response: str, *, language: str) -> bool:
    """The language (an ISO 639-1 code); a text without words passes, as in IFEval."""
    return detection.follows(response, language)


def pattern(word: str, whole: bool = False) -> re.Pattern:
    """A word to look for; one that is no regular expression is taken literally.

    So is "C++", which newer versions of Python read as a possessive "C+".

    Example:
      >>> bool(pattern("C++").search("Use c++")), bool(pattern("C++").search("cc"))
      (True, False)
    """
    edge = r"\b" if whole else ""
    if not _POSSESSIVE.search(word):
        with contextlib.suppress(re.error):
            return re.compile(f"{edge}{word}{edge}", re.IGNORECASE)
    return re.compile(f"{edge}{re.escape(word)}{edge}", re.IGNORECASE)
