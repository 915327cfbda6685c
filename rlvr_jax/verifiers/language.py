"""Is the reasoning in the language it should be in? Share of words, and agreement.

Two published forms. DeepSeek-R1 (https://arxiv.org/abs/2501.12948, 2.3.2) pays the
share of words of the target language in the chain of thought; Magistral
(https://arxiv.org/abs/2506.10910, 2.2.4) pays if question, thoughts and answer are in
one language, by a classifier. Code and mathematics are left out in both.

Which language a word belongs to is decided by its script, and within a shared script
by the small words around it (`identify`): names and words that tell nothing count as
the target's. Not seen: single foreign words inside a sentence of the same script.
"""

import re
from collections.abc import Iterator

from rlvr_jax.verifiers.base import Sample, Status, Verdict, answer_segment
from rlvr_jax.verifiers.identify import LANGUAGES, Word, among, identify, words

CONSISTENT = 0.9
"""Share from which the verdict of `consistency` is correct; the score is the share."""

_BLOCKS = (("```", "```"), ("$$", "$$"), (r"\[", r"\]"), (r"\(", r"\)"))
_ENVIRONMENTS = tuple(
    (rf"\begin{{{name}}}", rf"\end{{{name}}}")
    for name in "equation equation* align align* aligned cases matrix pmatrix".split()
)
_INLINE = re.compile(
    r"`[^`\n]*`|\$[^$\n]{1,300}\$|https?://\S+|</?\w{1,20}>|\\[A-Za-z]+"
    r"|(?<![A-Za-z0-9_])[A-Za-z]*[0-9_][A-Za-z0-9_]*"
)
_MATHS = frozenset(
    "sin cos tan cot sec log ln exp lim max min mod gcd lcm det dim deg sqrt".split()
)
_SEGMENT = re.compile(r"(?<=[.!?;:])\s|[\n…()「」\"“”«»]|[。！？；：（）]")  # noqa: RUF001
_CHUNK = 8
"""Words that are judged together, where a script is shared."""
_HAN_WITHOUT_KANA = 4
"""Han words in a row, without kana, that are no Japanese sentence."""


def share(text: str, language: str) -> float | None:
    """Words of the target language / words, code and mathematics left out.

    Scripts that set no blanks count as many words as their length makes up: two Han or
    kana characters are one, four Thai letters are one.

    Args:
      text: the reasoning, or any text.
      language: an ISO 639-1 code of `identify.LANGUAGES`.

    Returns:
      The share, in [0, 1]; None if the text holds no words.

    Raises:
      ValueError: the language is not known.

    Example:
      >>> share("ab cd ef 你好", "en")
      0.75
      >>> share("Der Fluss ist lang. The end is near.", "de")
      0.5
    """
    if language not in LANGUAGES:
        known = ", ".join(sorted(LANGUAGES))
        raise ValueError(f"unknown language {language!r}; known: {known}")
    total = target = 0
    for segment in _SEGMENT.split(prose(text)):
        found = [word for word in words(segment) if not _is_maths(word, language)]
        total += sum(word.weight for word in found)
        target += sum(word.weight for word in _of_language(found, language))
    return target / total if total else None


def consistency(sample: Sample) -> Verdict:
    """The share of words of the target language in the thoughts: DeepSeek-R1's form.

    The target is `meta["language"]`, else the language of the question, else English.
    Thoughts are what stands before the last </think>, or all where there is none.
    """
    language = _target(sample)
    if language not in LANGUAGES:
        problem = (
            f"meta['language'] is {language!r}, which language.share does not know"
        )
        return Verdict(Status.BAD_REFERENCE, 0.0, problem)
    found = share(_thoughts(sample.completion), language)
    if found is None:
        return Verdict(Status.UNPARSEABLE, 0.0, "no words")
    status = Status.CORRECT if found >= CONSISTENT else Status.WRONG
    return Verdict(status, found, f"{found:.3f} of the words are {language}")


def agreement(sample: Sample) -> Verdict:
    """1 if question, thoughts and answer are in one language, else 0: Magistral's form.

    A part whose language cannot be told, such as a bare formula, agrees with any.
    """
    parts = {
        "question": sample.question,
        "thoughts": _thoughts(sample.completion),
        "answer": answer_segment(sample.completion),
    }
    if not words(prose(sample.completion)):
        return Verdict(Status.UNPARSEABLE, 0.0, "no words")
    languages = {name: identify(prose(text)) for name, text in parts.items()}
    agree = len({code for code in languages.values() if code}) <= 1
    detail = ", ".join(f"{name} {code}" for name, code in languages.items())
    return Verdict(Status.CORRECT if agree else Status.WRONG, float(agree), detail)


consistency.reads = agreement.reads = "completion"  # type: ignore[attr-defined]


def prose(text: str) -> str:
    r"""The text without code, mathematics, addresses and tags.

    Example:
      >>> prose(r"Then `x = 1` gives $y^2$ and \(z\).").split()
      ['Then', 'gives', 'and', '.']
    """
    for opening, closing in (*_BLOCKS, *_ENVIRONMENTS):
        text = _without(text, opening, closing)
    return _INLINE.sub(" ", text)


def _without(text: str, opening: str, closing: str) -> str:
    """Drops what stands between two marks; one that is not closed stays."""
    kept = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(closing)
    return " ".join([*kept, text[at:]])


def _of_language(found: list[Word], language: str) -> Iterator[Word]:
    """The words of one segment that may be the target's."""
    scripts = LANGUAGES[language]
    own = [word for word in found if word.script in scripts]
    if language in ("zh", "ja"):
        yield from own if _is_right_han(found, language) else ()
        return
    whole = among(scripts[0], (word.text for word in own))
    for start in range(0, len(own), _CHUNK):
        chunk = own[start : start + _CHUNK]
        verdict = among(scripts[0], (word.text for word in chunk)) or whole
        if verdict in (None, language):
            yield from chunk


def _is_right_han(found: list[Word], language: str) -> bool:
    """Whether Han characters are Chinese (few kana by them) or Japanese (some)."""
    han = sum(word.weight for word in found if word.script == "han")
    kana = sum(word.weight for word in found if word.script == "kana")
    if language == "zh":
        return 4 * kana < han + kana
    return kana > 0 or han < _HAN_WITHOUT_KANA


def _is_maths(word: Word, language: str) -> bool:
    """Variables and functions in the text of a language with another script."""
    if word.script == "greek":
        return language != "el" and len(word.text) == 1
    latin = word.script == "latin" and "latin" not in LANGUAGES[language]
    return latin and (len(word.text) == 1 or word.text in _MATHS)


def _thoughts(completion: str) -> str:
    before, closing, after = completion.rpartition("</think>")
    return before if closing else after


def _target(sample: Sample) -> str:
    declared = sample.meta.get("language")
    return declared or identify(prose(sample.question)) or "en"
