"""The `math` verifier: extraction, then equivalence."""

import re
from fractions import Fraction

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict, text_reference


def verify(sample: Sample) -> Verdict:
    """Whether the completion's one final answer equals the reference."""
    reference = text_reference(sample.answer)
    if reference is None or not reference.strip():
        return Verdict(Status.BAD_REFERENCE, 0.0, f"{sample.answer!r:.100}")
    marked = extract.marked_answers(sample.completion)
    texts = {_plain(text) for text in marked}
    if not texts:
        numbers = re.findall(
            r"-?\d[\d,]*(?:\.\d+)?(?:/\d+)?", extract.last_line(sample.completion)
        )
        texts = {_plain(numbers[-1])} if numbers else set()
    if len(texts) != 1:
        return Verdict(Status.UNPARSEABLE, 0.0, f"answers: {sorted(texts)!r:.200}")
    answer, expected = texts.pop(), _plain(reference)
    same = answer == expected or (
        _value(answer) is not None and _value(answer) == _value(expected)
    )
    detail = f"{answer!r:.100} {'=' if same else '!='} {expected!r:.100}"
    return Verdict(Status.CORRECT if same else Status.WRONG, float(same), detail)


def _plain(text: str) -> str:
    text = extract.without_text_wrapper(text)
    text = re.sub(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"(\1)/(\2)", text)
    return re.sub(r"\\left|\\right|\\[!,;: ]|[\s$]", "", text).rstrip(".")


def _value(text: str) -> Fraction | None:
    try:
        return Fraction(re.sub(r"[(),]", "", text))
    except (ValueError, ZeroDivisionError):
        return None
