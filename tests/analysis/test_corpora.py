"""Corpora that are rich and poor in a behaviour."""

import numpy as np
import pytest

from rlvr_jax.analysis.behaviours import count_behaviours
from rlvr_jax.analysis.corpora import split_by_behaviour

PLAIN = "The sum of the two numbers is found to be forty, as the table shows. "
MARKED = {
    "verification": "Let me check: forty less ten is thirty. ",
    "backtracking": "Wait, that is wrong, so take the other root. ",
    "subgoal setting": "Break the problem into halves. Step 1 is the left one. ",
    "backward chaining": "Working backwards from forty we need four tens. ",
}


def planted(seed=0, count=300):
    """Documents of 1 to 9 sentences; each behaviour is planted in a tenth of them."""
    random = np.random.default_rng(seed)
    documents, kinds = [], []
    for _ in range(count):
        shown = [name for name in MARKED if random.random() < 0.1]
        text = PLAIN * int(random.integers(1, 9)) + "".join(MARKED[n] for n in shown)
        documents.append(text)
        kinds.append(len(shown))
    return documents, np.array(kinds)


def test_a_planted_corpus_is_taken_apart():
    """DATA-25: each document falls where it was planted."""
    documents, kinds = planted()
    found = split_by_behaviour(documents)
    rich = [d for d, k in zip(documents, kinds, strict=True) if k > 0]
    poor = [d for d, k in zip(documents, kinds, strict=True) if k == 0]
    assert found.enriched == rich[: len(found.enriched)]
    assert found.depleted == poor[: len(found.depleted)]
    assert len(found.enriched) == len(rich)  # the smaller one is whole
    for document in found.depleted:
        assert not any(count_behaviours(document).values())


def test_both_have_about_as_many_words():
    """DATA-25: to within the document that crosses the line."""
    documents, _ = planted(1)
    found = split_by_behaviour(documents)
    sizes = [
        sum(len(d.split()) for d in part) for part in (found.enriched, found.depleted)
    ]
    longest = max(len(document.split()) for document in documents)
    assert abs(sizes[0] - sizes[1]) < longest


def test_richer_documents_may_be_asked_for():
    documents, kinds = planted(2)
    found = split_by_behaviour(documents, least_kinds=2)
    assert len(found.enriched) == (kinds >= 2).sum()
    one = split_by_behaviour(documents, behaviours=["backtracking"])
    assert all(count_behaviours(d)["backtracking"] for d in one.enriched)


def test_nothing_to_compare_is_an_error():
    with pytest.raises(ValueError, match="no document of 2 shows verification"):
        split_by_behaviour([PLAIN, PLAIN])
    with pytest.raises(ValueError, match="no document of 1 lacks verification"):
        split_by_behaviour([MARKED["verification"]])
