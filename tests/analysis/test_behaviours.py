"""Keyword counts on planted traces, the 2 x 2 table, and an annotated trace."""

import numpy as np
import pytest

from rlvr_jax.analysis.annotate import annotate
from rlvr_jax.analysis.behaviours import (
    accuracy_contrast,
    behaviour_table,
    behaviours_by_family,
    count_behaviours,
    length_with_behaviour,
    reasons_in_code,
    reflects,
    thought_switches,
)
from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.math import verify

COUNTDOWN = {
    # The plain tries of a model that has none of the four.
    "19 + 36 = 55. 55 + 55 = 110. The result is right, so 19 + 36 + 55 is it.": (
        0,
        0,
        0,
        0,
    ),
    "36 - 19 = 17. Let's check: 17 + 7 = 24, which confirms it.": (2, 0, 0, 0),
    "19 + 36 = 55. Wait, that's wrong. Let me try another pair: this does not work.": (
        0,
        4,
        0,
        0,
    ),
    "Step 1: make 20. Step 2: double it. First, find a factor of 40.": (0, 0, 3, 0),
    "Work backwards: to reach 24, we need 3 and 8. What gives 8? 19 - 11.": (
        0,
        0,
        0,
        3,
    ),
    "Start from the target. To check, plug it in. It isn't right; scratch that.": (
        2,
        2,
        0,
        1,
    ),
    # Words inside words, and plain uses.
    "The waiter said the checkout is in step with the recheckers' goal.": (0, 0, 0, 0),
}


@pytest.mark.parametrize(("trace", "expected"), COUNTDOWN.items())
def test_planted_countdown_traces(trace, expected):
    """BEH-05: counted by hand: verification, backtracking, subgoals, backwards."""
    assert tuple(count_behaviours(trace).values()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Let me recheck the sum.", True),
        ("I will re-evaluate this step.", True),
        ("Aha! The parity matters.", True),
        ("Wait, 3 does not divide 10.", True),
        ("Let us check the second case again.", True),
        ("So we have to wait two hours at the station", False),
        ("Add 4 and 5 and check the table of values.", False),
        ("The ahaus station sells checkers.", False),
    ],
)
def test_words_of_self_reflection(text, expected):
    """BEH-01: the detector on planted strings."""
    assert reflects(text) is expected


def test_reflection_by_family():
    """BEH-12: the same detector per family of models, a report of shares."""
    found = behaviours_by_family(
        {
            "qwen": ["Wait, recheck.", "4", "Let me verify this: 4."],
            "llama": ["It is 4.", "5"],
        }
    )
    assert found["qwen"]["reflection"] == pytest.approx(2 / 3)
    assert found["llama"]["reflection"] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I will use Python to count.\nprint(len(x))", True),
        ("```\nx = 3\n```", True),
        ("def f(x):\n  return x", True),
        ("for n in range(100):\n  s += n", True),
        ("for two apples we pay 3", False),
        ("A pythonic answer is 4", False),
    ],
)
def test_reasoning_in_code(text, expected):
    """SPU-07: on planted strings, no backticks needed."""
    assert reasons_in_code(text) is expected


def test_shares_and_what_they_go_with():
    """SPU-07, BEH-01: two of four traces use code, both right; else one of two."""
    texts = ["In python: 4", "import math", "It is 4.", "It is 5. Alternatively 6."]
    found = behaviour_table(texts, [1, 1, 1, 0])
    assert found["code"]["share"] == 0.5
    assert found["code"]["accuracy_difference"][0] == pytest.approx(0.5)
    assert found["switches"]["per_trace"] == 0.25
    assert thought_switches("Alternatively, hmm, let me try something else.") == 3
    assert found["reflection"] == {
        "share": 0,
        "per_trace": 0,
        "accuracy_difference": None,
    }


def test_no_effect_of_reflection():
    """BEH-03: planted risk difference 0, 120 of 200 right either way."""
    has = np.repeat([True, False], 200)
    correct = np.tile(np.repeat([True, False], [120, 80]), 2)
    found = accuracy_contrast(has, correct)
    assert (found.with_correct, found.without_wrong) == (120, 80)
    assert found.difference == 0
    assert found.low < 0 < found.high
    # The simple interval is 1.96 sqrt(2 x .6 x .4 / 200) = .096 each way.
    assert found.high == pytest.approx(0.096, abs=0.002)
    assert found.share == 0.5


def test_a_planted_effect_and_its_published_interval():
    """BEH-03: 56 of 70 against 48 of 80: Newcombe 1998 (table II, a, method 10) gives
    .0524 to .3339."""
    has = np.repeat([True, False], [70, 80])
    correct = np.repeat([True, False, True, False], [56, 14, 48, 32])
    found = accuracy_contrast(has, correct)
    assert found.difference == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    with pytest.raises(ValueError, match="with the behaviour and without"):
        accuracy_contrast(has | True, correct)


def test_completions_of_one_problem_share_its_difficulty():
    """BEH-03: planted: a word and correctness have nothing to do with each other but
    that problems differ in both. Of 100 draws of 30 problems with 16 completions each,
    95 hold 0 (within three standard errors, .022 each); as if all 480 were independent
    it would be about half."""
    rng, held, naive = np.random.default_rng(0), 0, 0
    problems = np.repeat(np.arange(30), 16)
    for _ in range(100):
        wordy, easy = rng.beta(0.6, 0.6, (2, 30))
        has = rng.random(480) < wordy[problems]
        correct = rng.random(480) < easy[problems]
        found = accuracy_contrast(has, correct, problems.tolist())
        held += found.low <= 0 <= found.high
        alone = accuracy_contrast(has, correct)
        naive += alone.low <= 0 <= alone.high
    assert held >= 95 - 6.5
    assert naive < 70
    each = accuracy_contrast(has, correct, list(range(480)))
    assert each == accuracy_contrast(has, correct)


def test_length_may_grow_without_behaviours():
    """BEH-11: planted. Four runs all grow; the behaviour follows, or is unrelated."""
    lengths = [(100.0, 150.0), (100.0, 300.0), (100.0, 200.0), (100.0, 500.0)]
    follows = [(0.1, 0.15), (0.1, 0.3), (0.1, 0.2), (0.1, 0.5)]
    unrelated = [(0.1, 0.3), (0.1, 0.2), (0.1, 0.2), (0.1, 0.3)]
    still = [(0.1, 0.1)] * 4
    assert length_with_behaviour(lengths, follows) == 1
    # Ranks of length 1, 3, 2, 4 and of the behaviour 3.5, 1.5, 1.5, 3.5: their product
    # about the means is (-1.5)(1) + (.5)(-1) + (-.5)(-1) + (1.5)(1) = 0.
    assert length_with_behaviour(lengths, unrelated) == pytest.approx(0)
    assert length_with_behaviour(lengths, still) is None


TRACE = """<think>How many n from 1 to 100 make n^2 + n + 1 a multiple of 7?
First, find the residues of n modulo 7 that work, and then count.
n = 2 gives 4 + 2 + 1 = 7, which is 0 modulo 7.
Numbers 2, 9, ..., 100 are 15 of them, so there are 15.
Wait, a quadratic may have two roots, so I go on.
n = 4 gives 16 + 4 + 1 = 21, which is 0 as well.
To check by Vieta, the roots sum to 6 = -1 modulo 7, and 2 + 4 = 6.
Numbers 4, 11, ..., are 15 too, so the total is 30.
The last value would be 4 + 7 * 14 = 102 > 100, so only 14 are left.
</think>
The answer is 15 + 14, \\boxed{29}"""


def test_the_problem_of_the_trace():
    """BEH-14: brute force, and the facts that the trace leans on."""
    hits = [n for n in range(1, 101) if (n * n + n + 1) % 7 == 0]
    assert len(hits) == 29
    assert {n % 7 for n in hits} == {2, 4}
    by_residue = [sum(n % 7 == r for n in hits) for r in (2, 4)]
    assert by_residue == [15, 14]
    assert max(n for n in hits if n % 7 == 2) == 100
    assert 4 + 7 * 14 == 102 > 100
    assert (2 + 4) % 7 == -1 % 7 == 6


def test_the_annotated_trace():
    """BEH-15: plan, first wrong answer, backtrack, another route, a second slip, the
    boundary, and one line for the verifier, which pays 1."""
    spans = annotate(TRACE)
    labels = [span.label for span in spans]
    assert labels == [
        "subgoal",
        "first answer",
        "backtrack",
        "verification",
        "first answer",
        "boundary check",
        "final answer",
    ]
    shown = {span.label: TRACE[span.start : span.end].strip() for span in spans}
    assert shown["backtrack"].startswith("Wait, a quadratic")
    assert shown["boundary check"].startswith("The last value")
    verdict = apply(verify, Sample("math", TRACE, "29"))
    assert verdict.status is Status.CORRECT
    # Ended at the first answer, it would have been paid nothing.
    cut = TRACE[: spans[1].end] + "</think>The answer is \\boxed{15}."
    assert apply(verify, Sample("math", cut, "29")).status is Status.WRONG
    assert annotate("nothing of the kind") == []
