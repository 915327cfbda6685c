"""Selectors of short solutions on planted samples."""

import pytest

from rlvr_jax.data.long2short import Sampled, length_pairs, shortest_correct

SAMPLES = [
    Sampled("long", 200, True),
    Sampled("short", 80, True),
    Sampled("as short", 80, True),
    Sampled("a little longer", 120, True),  # exactly 1.5 times: not longer than that
    Sampled("longer", 121, True),
    Sampled("short and wrong", 30, False),
    Sampled("as short and wrong", 80, False),
    Sampled("long and wrong", 81, False),
]
"""Eight samples of one problem."""


def test_the_shortest_correct_of_eight():
    """REC-11, TT-28: of n = 8; a shorter wrong one is no use, ties go to the first."""
    assert shortest_correct(SAMPLES) == SAMPLES[1]
    assert shortest_correct([s for s in SAMPLES if not s.correct]) is None


def test_pairs_reject_what_is_longer():
    """REC-11, TT-28: longer wrong ones, and correct ones of more than 1.5 times the
    length; the chosen one is the shortest correct."""
    pairs = length_pairs(SAMPLES)
    assert {pair.chosen.text for pair in pairs} == {"short"}
    assert [pair.rejected.text for pair in pairs] == [
        "long",
        "longer",
        "long and wrong",
    ]
    every = length_pairs(SAMPLES, ratio=1.0)
    assert [pair.rejected.text for pair in every][1] == "a little longer"
    assert length_pairs(SAMPLES[5:]) == []
    with pytest.raises(ValueError, match="ratio must be at least 1"):
        length_pairs(SAMPLES, ratio=0.5)
