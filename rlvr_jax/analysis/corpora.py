"""Corpora that are rich and poor in a behaviour, of the same size, to train on."""

import dataclasses
from collections.abc import Sequence

from rlvr_jax.analysis.behaviours import BEHAVIOURS, count_behaviours


@dataclasses.dataclass(frozen=True)
class Corpora:
    """Two lists of documents with about equally many words."""

    enriched: list[str]
    depleted: list[str]


def split_by_behaviour(
    documents: Sequence[str],
    *,
    behaviours: Sequence[str] = BEHAVIOURS,
    least_kinds: int = 1,
) -> Corpora:
    """Documents that show a behaviour, and as many words that show none.

    A comparison of the two says what the behaviour in the text does to a policy that
    is trained on it before RL; equal size says that it is not the amount of text.

    Args:
      documents: in any order, which both lists keep.
      behaviours: those that count (`analysis.behaviours`).
      least_kinds: different ones that an enriched document shows; one with fewer but
        some belongs to neither list.

    Returns:
      The corpora; the larger is cut after the document with which it reaches the words
      of the other.

    Raises:
      ValueError: no document is rich, or none is poor.

    References:
      Gandhi et al. 2025, sec. 5 (OpenWebMath). https://arxiv.org/abs/2503.01307

    Example:
      >>> pages = ["Let me check: 2 + 2 = 4.", "Sum is 4 of course, you see."]
      >>> split_by_behaviour(pages).enriched
      ['Let me check: 2 + 2 = 4.']
    """
    kinds = [_kinds(document, behaviours) for document in documents]
    pairs = list(zip(documents, kinds, strict=True))
    enriched = [document for document, count in pairs if count >= least_kinds]
    depleted = [document for document, count in pairs if count == 0]
    if not enriched or not depleted:
        lacking = "shows" if not enriched else "lacks"
        raise ValueError(
            f"split_by_behaviour: no document of {len(documents)} {lacking} "
            f"{', '.join(behaviours)} (least_kinds={least_kinds}); give more documents"
        )
    words = min(_words(enriched), _words(depleted))
    return Corpora(_first_words(enriched, words), _first_words(depleted, words))


def _kinds(document: str, behaviours: Sequence[str]) -> int:
    counts = count_behaviours(document)
    return sum(counts[name] > 0 for name in behaviours)


def _words(documents: Sequence[str]) -> int:
    return sum(len(document.split()) for document in documents)


def _first_words(documents: Sequence[str], words: int) -> list[str]:
    kept, seen = [], 0
    for document in documents:
        if seen >= words:
            break
        kept.append(document)
        seen += len(document.split())
    return kept
