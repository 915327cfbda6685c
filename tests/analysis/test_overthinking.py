"""Measures of thinking too long and of giving up too soon, on planted traces."""

import pytest

from rlvr_jax.analysis.overthinking import (
    Chain,
    outcome_efficiency,
    process_efficiency,
    split_thoughts,
    underthinking,
)


def test_two_plus_three():
    """TT-20: the published trace of "2 + 3": the first of its solutions ends at token
    39 of 901, so 39 / 901 = .0433."""
    chain = Chain([39, 200, 662], [True, True, True], True)
    assert outcome_efficiency([chain]) == pytest.approx(39 / 901)
    assert round(outcome_efficiency([chain]), 4) == 0.0433


def test_outcome_efficiency_by_hand():
    """TT-20: right at once (1), in the second of two parts (1), wrong (0)."""
    chains = [
        Chain([10], [True], True),
        Chain([30, 70], [False, True], True),
        Chain([50, 50], [True, False], False),
    ]
    assert outcome_efficiency(chains) == pytest.approx(2 / 3)


def test_process_efficiency_counts_each_way_once():
    """TT-20: of 100 tokens the second solution repeats the first: (40 + 20) / 100."""
    chain = Chain([40, 40, 20], [True] * 3, True)
    assert process_efficiency([chain], [[0, 0, 1]]) == pytest.approx(0.6)
    assert process_efficiency([chain], [[0, 1, 2]]) == 1.0
    with pytest.raises(ValueError, match="3 parts with 2 kinds"):
        process_efficiency([chain], [[0, 1]])


TRACE = (
    "The sum is 10. Check it: 6 + 4 = 10. Alternatively, multiply: 24. Another way is "
    "to count. alternatively guess. The rest says nothing (another approach is inside)."
)


def test_thoughts_begin_where_a_sentence_switches():
    """TT-21: four by hand; a switch inside of a sentence is none."""
    thoughts = split_thoughts(TRACE)
    assert "".join(thoughts) == TRACE
    starts = [thought.split(maxsplit=1)[0] for thought in thoughts]
    assert starts == ["The", "Alternatively,", "Another", "alternatively"]
    assert split_thoughts("") == []


def test_underthinking_of_planted_traces():
    """TT-21: wrong answers alone: right in the first quarter and given up (.75), never
    right (0); a correct chain does not count."""
    given_up = Chain([100, 100, 200], [True, False, False], False)
    never = Chain([100, 300], [False, False], False)
    correct = Chain([100, 300], [False, True], True)
    assert underthinking([given_up]) == pytest.approx(0.75)
    assert underthinking([given_up, never, correct]) == pytest.approx(0.375)
    assert underthinking([correct]) == 0
    # The trace above: its first thought has the right answer, by words for tokens.
    thoughts = split_thoughts(TRACE)
    chain = Chain(
        [len(thought.split()) for thought in thoughts],
        ["10" in thought for thought in thoughts],
        False,
    )
    total = len(TRACE.split())
    assert underthinking([chain]) == pytest.approx(1 - len(thoughts[0].split()) / total)


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ([], "at least one chain"),
        ([Chain([1], [True, False], False)], "chain 0 needs a length and a verdict"),
        ([Chain([1, 2], [False, False], True)], "chain 0 is correct, but none"),
    ],
)
def test_what_cannot_be_measured(chains, message):
    with pytest.raises(ValueError, match=message):
        outcome_efficiency(chains)
