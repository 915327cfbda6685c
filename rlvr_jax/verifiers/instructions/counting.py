"""The words, sentences and capitalised words of a text, counted as IFEval does."""

import re

from rlvr_jax.verifiers.instructions import punkt

_WORD = re.compile(r"\w+")
# Marks that stand alone, whatever is around them.
_ALONE = re.compile(
    r"[][(){}<>;@#$%&?!*\"`\u2012-\u2015\u00ab\u00bb\u2018\u2019\u201c-\u201e]|\.{2,}|--|''"
)
_COMMA = re.compile(r"[,:](?=\D|$)")
_FINAL_STOP = re.compile(r"(?<=[^.])\.(?=[])}>\"'\u00bb\u201d\u2019 ]*\s*$)")
_CLOSING_APOSTROPHE = re.compile(r"(?<=[^'])'(?=[ ?!;,])")
_CLITICS = (
    re.compile(r"(?<=[^' ])(?='[sSmMdD] |' )"),
    re.compile(r"(?<=[^' ])(?=(?:'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) )"),
)
_OPENING_APOSTROPHE = re.compile(r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", re.I)
_JOINED = re.compile(
    r"\b(?:(can)(not)|(d)('ye)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(more)('n)"
    r"|(wan)(na)(?=\s))(?!\w)",
    re.IGNORECASE,
)


def words(text: str) -> int:
    """Runs of letters, digits and underscores.

    Example:
      >>> words("A well-known e-mail isn't lost.")
      8
    """
    return len(_WORD.findall(text))


def sentences(text: str) -> int:
    """Sentences by `punkt`."""
    return len(punkt.sentences(text))


def capital_words(text: str) -> int:
    """Tokens whose letters are all capitals.

    Tokens are those of NLTK's word tokenizer (the rules of the Penn Treebank): a
    hyphenated word is one, "NASA'S" and "CAN'T" are two each.

    Example:
      >>> capital_words("The STATE-OF-THE-ART lab CAN'T wait, says NASA.")
      4
    """
    return sum(
        token.isupper()
        for sentence in punkt.sentences(text)
        for token in _tokens(sentence)
    )


def _tokens(sentence: str) -> list[str]:
    """The tokens of a sentence that hold letters; of marks, some are lost."""
    text = _OPENING_APOSTROPHE.sub("' ", sentence)
    text = _CLOSING_APOSTROPHE.sub(" ' ", text)
    text = _COMMA.sub(" ", _FINAL_STOP.sub(" ", text))
    text = re.sub(r"\s+", " ", f" {_ALONE.sub(' ', text)} ")
    for clitic in _CLITICS:
        text = clitic.sub(" ", text)
    text = _JOINED.sub(_apart, text)
    return text.split()


def _apart(match: re.Match) -> str:
    return f" {' '.join(filter(None, match.groups()))} "
