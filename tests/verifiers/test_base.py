"""Verdicts, samples and the part of a completion that a verifier may read."""

import fractions

import numpy as np
import pytest

from rlvr_jax.verifiers import base
from rlvr_jax.verifiers.base import Sample, Status, Verdict


@pytest.mark.parametrize(
    ("value", "status", "score"),
    [
        (True, Status.CORRECT, 1.0),
        (False, Status.WRONG, 0.0),
        (1, Status.CORRECT, 1.0),
        (0.5, Status.WRONG, 0.5),
        (1.5, Status.CORRECT, 1.5),
        (-1.0, Status.WRONG, -1.0),
        (np.bool_(True), Status.CORRECT, 1.0),
        (np.float32(0.25), Status.WRONG, 0.25),
        (np.array(1), Status.CORRECT, 1.0),
        (fractions.Fraction(1, 4), Status.WRONG, 0.25),
        (Verdict(Status.UNPARSEABLE, 0.0, "no box"), Status.UNPARSEABLE, 0.0),
        (None, Status.CRASH, 0.0),
        ("correct", Status.CRASH, 0.0),
        (float("nan"), Status.CRASH, 0.0),
        (float("inf"), Status.CRASH, 0.0),
        (np.array([1.0, 0.0]), Status.CRASH, 0.0),
        (1j, Status.CRASH, 0.0),
    ],
)
def test_what_a_verifier_may_return(value, status, score):
    verdict = base.as_verdict(value)
    assert (verdict.status, verdict.score) == (status, score)


def test_a_verdict_with_an_unusable_score_is_a_crash():
    assert base.as_verdict(Verdict(Status.CORRECT, float("nan"))).status is Status.CRASH


@pytest.mark.parametrize(
    ("completion", "segment"),
    [
        ("It is 4.", "It is 4."),
        ("<think>5?</think>It is 4.", "It is 4."),
        ("5?</think>It is 4.", "It is 4."),
        ("<think>5?</think><think>6?</think>It is 4.", "It is 4."),
        ("<think>it is 4", ""),
        ("It is 4. <think>or is it", "It is 4. "),
        ("<think>4</think>", ""),
        ("", ""),
    ],
)
def test_the_answer_segment(completion, segment):
    assert base.answer_segment(completion) == segment


def test_a_verifier_sees_the_segment_it_declares():
    """DIAG-21: one that does not declare it never meets the thinking text."""

    def answer_reader(sample):
        return "secret" not in sample.completion

    def completion_reader(sample):
        return "secret" in sample.completion

    completion_reader.reads = "completion"
    sample = Sample("", "<think>secret</think>done", None)
    assert base.apply(answer_reader, sample).status is Status.CORRECT
    assert base.apply(completion_reader, sample).status is Status.CORRECT


def test_an_unknown_part_is_refused():
    def confused(sample):
        return True

    confused.reads = "thoughts"
    with pytest.raises(ValueError, match=r"confused\.reads is 'thoughts'"):
        base.reads_of(confused)


def test_rates_count_every_status():
    verdicts = [
        Verdict(Status.CORRECT, 1.0),
        Verdict(Status.CORRECT, 1.0),
        Verdict(Status.WRONG, 0.0),
        Verdict(Status.TIMEOUT, 0.0),
    ]
    assert base.rates(verdicts) == {
        "correct": 0.5,
        "wrong": 0.25,
        "unparseable": 0.0,
        "timeout": 0.25,
        "crash": 0.0,
        "bad_reference": 0.0,
    }
    assert set(base.rates([]).values()) == {0.0}
