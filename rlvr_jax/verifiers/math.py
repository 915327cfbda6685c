r"""The `math` verifier: the one final answer of a completion against a reference.

Strict about what counts as an answer, wide about what counts as equal. Hedges, several
different boxes and empty boxes are unparseable; \frac12, 0.5, 50\% and 2/4 are equal.
"""

import re
from math import gcd
from typing import NamedTuple

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.algebra import equivalence
from rlvr_jax.verifiers.algebra.equivalence import Reading
from rlvr_jax.verifiers.algebra.normalise import latex, visible
from rlvr_jax.verifiers.algebra.rational import rational
from rlvr_jax.verifiers.algebra.tree import TooLarge, Undefined
from rlvr_jax.verifiers.base import Sample, Status, Verdict, text_reference

_PLAIN_INTEGER = re.compile(r"-?[1-9][0-9]{0,300}|0")
_LETTER = re.compile(r"\(?\s*([A-J])\s*\)?\.?")
_LETTER_ANSWER = re.compile(r"[(\[]?\s*([A-J])\s*(?:[)\]]|[.:)]|$)(.*)", re.DOTALL)
_LABELLED = re.compile(
    r"\\(?:text(?:bf|it|rm)?|mathrm|mathbf|boldsymbol)\s*\{\s*\(([A-J])\)\s*\}"
    r"(?:\\[ ,;]|\\quad|~|\s)*(?=\S)"
)
"""A reference such as \\textbf{(B)}\\ 12, as the AMC prints its choices."""
_SEVERAL = re.compile(r"[A-J](?:[\s,;]*(?:and\b)?[\s,;]*[A-J])+")
"""Choices of which several are right: ABD, or A, B and D."""
_ANOTHER = re.compile(
    r"\s*\W*(?:or|and)\W+\(?[A-J]\b|\s*[(\[]?\s*[A-J]\s*[)\]]", re.IGNORECASE
)
_WRAPPED_LETTER = re.compile(
    r"\\(?:text(?:bf|it|rm)?|mathrm|mathbf|boldsymbol)\s*(?=\{)"
)
_SHORT_WORDS = frozenset("yes no odd all one two six ten red".split())
"""Words that could be read as a product of letters."""
_ARTICLE = re.compile(r"(?:an?|the) (?=\w{3})")
_OPTION = re.compile(r"(?:option|choice|answer)\s+", re.IGNORECASE)
_SHOWN = 120


class _Reference(NamedTuple):
    kind: str
    """letter, words or value."""
    reading: Reading
    letter: str = ""
    """Of a value that stands behind the letter of its choice, as in (B) 12."""


def verify(sample: Sample) -> Verdict:
    r"""Whether the completion's one final answer equals the reference.

    Args:
      sample: `answer` is text or a number, in LaTeX or plain notation; of a whole
        solution what stands in its boxes or after #### counts.

    Returns:
      correct, wrong, unparseable (no answer, or not one) or bad_reference. The detail
      says what was extracted from where, and what it was compared with.
    """
    written = text_reference(sample.answer)
    reference = _reference(written) if written is not None else None
    if reference is None:
        return Verdict(
            Status.BAD_REFERENCE,
            0.0,
            f"no answer to compare with: {sample.answer!r:.100}",
        )
    found = extract.final_answers(sample.completion, reference.kind)
    if not found.answers:
        return Verdict(Status.UNPARSEABLE, 0.0, f"{found.place}: {found.problem}")
    first, *others = found.answers
    for other in others:
        if not _agree(first, other, reference.kind):
            several = f"several answers: {first!r:.60}, {other!r:.60}"
            return Verdict(Status.UNPARSEABLE, 0.0, f"{found.place}: {several}")
    return _compared(reference, first, found.place, sample.question)


def _reference(written: str) -> _Reference | None:
    text = visible(written).strip().rpartition("####")[2].strip()
    if boxes := extract.boxes(text):
        text = ", ".join(box.text for box in boxes)
    if not text:
        return None
    if letter := _LETTER.fullmatch(_unwrapped(text)):
        return _Reference("letter", Reading(letter[1], ()))
    if labelled := _LABELLED.match(text):
        inner = _reference(text[labelled.end() :])
        if inner is not None and inner.kind != "letter" and not inner.letter:
            return inner._replace(letter=labelled[1])
    reading = equivalence.read(text)
    if not reading.text:
        return None
    try:
        for tree in reading.trees:
            rational(tree)
    except Undefined:
        return None
    except TooLarge:
        pass
    if reading.text.lower() in _SHORT_WORDS:
        reading = reading._replace(trees=())
    worded = not reading.trees or all(tree.op == "text" for tree in reading.trees)
    return _Reference("words" if worded else "value", reading)


def _compared(reference: _Reference, answer: str, place: str, question: str) -> Verdict:
    shown = f"{place}: {answer.strip()[:_SHOWN]!r}"
    gold = reference.reading.text
    if reference.kind == "letter":
        same, problem = _letter(answer) == gold, ""
    elif reference.letter and _letter(answer) in tuple("ABCDEFGHIJ"):
        same, problem = _letter(answer) == reference.letter, ""
        gold = f"({reference.letter}) {gold}"
    else:
        same, problem = _same(reference.reading, answer)
        if same and _is_echo(reference.reading, answer, question):
            same, problem = False, "a part of the question, not worked out"
    sign = "=" if same else "!="
    detail = f"{shown} {sign} {gold[:_SHOWN]!r}" + (f" ({problem})" if problem else "")
    return Verdict(Status.CORRECT if same else Status.WRONG, float(same), detail)


def _same(gold: Reading, answer: str) -> tuple[bool, str]:
    """Whether they are equal, and why that could not be told."""
    plain = answer.strip()
    if _PLAIN_INTEGER.fullmatch(plain) and _PLAIN_INTEGER.fullmatch(gold.text):
        return plain == gold.text, ""
    if (chosen := _choices(gold.text)) and chosen == _choices(answer):
        return True, ""
    worded = all(tree.op == "text" for tree in gold.trees)
    if worded and _words(gold.text) == _words(answer) != "":
        return True, ""
    reading = equivalence.read(answer)
    try:
        return equivalence.same(gold, reading), reading.problem
    except (TooLarge, Undefined) as error:
        return False, str(error)
    except RecursionError:
        return False, "nested too deeply"


def _words(text: str) -> str:
    plain = re.sub(r"\W+", " ", extract.without_text_wrapper(text)).strip().casefold()
    return _ARTICLE.sub("", plain)


def _agree(one: str, other: str, kind: str) -> bool:
    """Whether two answers of one completion are the same."""
    if kind == "letter":
        return _letter(one) == _letter(other)
    return _same(equivalence.read(one), other)[0]


def _letter(answer: str) -> str:
    """The choice in (C), C. and C: because ...; other text as it is."""
    text = _unwrapped(answer)
    match = _LETTER_ANSWER.fullmatch(_OPTION.sub("", text))
    if match and not _ANOTHER.match(match[2]):
        return match[1]
    return text


def _choices(text: str) -> str:
    """The letters of several choices in alphabetical order, as ABD; else ""."""
    plain = _unwrapped(text)
    letters = "".join(re.findall("[A-J]", plain)) if _SEVERAL.fullmatch(plain) else ""
    return letters if list(letters) == sorted(set(letters)) else ""


def _unwrapped(text: str) -> str:
    return (
        latex(_WRAPPED_LETTER.sub("", text)).replace("{", "").replace("}", "").strip()
    )


def _is_echo(gold: Reading, answer: str, question: str) -> bool:
    """Whether the answer copies an expression of the question instead of its value.

    Only where the reference is a plain number and the answer is not.
    """
    if not question or not gold.trees or gold.trees[0].op not in ("number", "neg"):
        return False
    copied = re.sub(r"\s", "", latex(answer))
    if not re.search(r"(?<!^)[-+*/^!(]|\\[a-z]", copied):
        return False
    if fraction := re.fullmatch(r"-?([0-9]{1,50})/([0-9]{1,50})", copied):
        if gcd(int(fraction[1]), int(fraction[2])) == 1:
            return False
    return copied in re.sub(r"\s", "", latex(question.replace("$", " ")))
