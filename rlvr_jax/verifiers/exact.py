"""The `exact` verifier: the answer is the reference, letter for letter.

Case, white space and the marks around an answer (a box, a tag, a final dot) do not
count; 0.5 is not 1/2. For answers that are words or codes.
"""

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import (
    Sample,
    Status,
    Verdict,
    normalised_space,
    text_reference,
)


def verify(sample: Sample) -> Verdict:
    """Compares the extracted answer with the reference as text.

    Without a box, tag or marker the whole text is the answer.
    """
    reference = text_reference(sample.answer)
    if reference is None or not reference.strip():
        return Verdict(
            Status.BAD_REFERENCE,
            0.0,
            f"no text to compare with: {sample.answer!r:.100}",
        )
    marked = extract.marked_answers(sample.completion)
    texts = {_plain(text) for text in marked or [sample.completion]}
    if len(texts) > 1:
        return Verdict(
            Status.UNPARSEABLE, 0.0, f"several answers: {sorted(texts)!r:.200}"
        )
    answer, expected = texts.pop(), _plain(reference)
    if not answer:
        return Verdict(Status.UNPARSEABLE, 0.0, "no answer")
    same = answer == expected
    detail = f"{answer!r:.100} {'=' if same else '!='} {expected!r:.100}"
    return Verdict(Status.CORRECT if same else Status.WRONG, float(same), detail)


def _plain(text: str) -> str:
    return normalised_space(extract.without_text_wrapper(text)).strip(".$ ").casefold()
