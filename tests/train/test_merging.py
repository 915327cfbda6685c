"""Groups of several batches put together, beside a loop that appends them."""

import numpy as np
import pytest

from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train.merging import joined_scores, mean_metrics
from rlvr_jax.verifiers.base import Status, Verdict

G = 2


def scores(first: int, groups: int) -> Scores:
    """Completion c of the whole has reward c, text "c"."""
    numbers = range(first * G, (first + groups) * G)
    rewards = np.array(numbers, np.float32).reshape(groups, G)
    return Scores(
        rewards=rewards,
        correct=rewards % 2,
        texts=[str(n) for n in numbers],
        verdicts=[Verdict(Status.CORRECT, 1.0, str(n)) for n in numbers],
        metrics={"first": float(first)},
        parts=rewards[..., None],
        part_names=("answer",),
        part_weights=(1.0,),
        notes=[{"n": n} for n in numbers],
    )


@pytest.mark.parametrize("rows", [None, [4, 0, 2]])
def test_each_completion_keeps_what_was_said_of_it(rows):
    joined = joined_scores(
        [scores(0, 1), scores(1, 3), scores(4, 1)],
        None if rows is None else np.array(rows),
    )
    expected = [row * G + i for row in rows or range(5) for i in range(G)]
    for found in (
        joined.rewards.ravel(),
        joined.parts.ravel(),
        [int(text) for text in joined.texts],
        [int(verdict.detail) for verdict in joined.verdicts],
        [note["n"] for note in joined.notes],
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(joined.correct.ravel(), np.array(expected) % 2)
    assert joined.metrics == {"first": 0.0}


def test_a_single_batch_stays_as_it_is():
    alone = scores(0, 2)
    joined = joined_scores([alone])
    np.testing.assert_array_equal(joined.rewards, alone.rewards)
    assert joined.texts == alone.texts


def test_metrics_of_parts_are_those_of_the_whole():
    """Two rounds of 3 and 1 groups of 4 completions, as if they had been one of 16.

    Judge: 5 + 2 calls. Audit: 4 of 4 and 0 of 1 accepted, so 4 of 5. Noise: 2 of 12
    completions are paid and both right, 2 of 4 and none right: 2 of 4.
    """
    rounds = [
        (
            {
                "verifier/correct": 2 / 12,
                "judge/calls": 5.0,
                "audit/completions": 4.0,
                "audit/accuracy": 1.0,
                "audit/gap": 0.5,
                "audit/missed_share": 0.25,
                "noise/paid_share": 2 / 12,
                "noise/paid_correct_share": 1.0,
            },
            3,
        ),
        (
            {
                "verifier/correct": 2 / 4,
                "judge/calls": 2.0,
                "audit/completions": 1.0,
                "audit/accuracy": 0.0,
                "audit/gap": 0.4,
                "noise/paid_share": 2 / 4,
                "noise/paid_correct_share": 0.0,
            },
            1,
        ),
    ]
    assert mean_metrics(rounds) == pytest.approx(
        {
            "verifier/correct": 4 / 16,
            "judge/calls": 7,
            "audit/completions": 5,
            "audit/accuracy": 4 / 5,
            "audit/gap": 0.4,
            "audit/missed_share": 0.25,
            "noise/paid_share": 4 / 16,
            "noise/paid_correct_share": 2 / 4,
        }
    )


def test_a_mean_over_nothing_counts_for_nothing():
    """An audit that drew no completion of a group says nothing about accuracy."""
    silent = {"audit/completions": 0.0, "audit/gap": 0.0}
    heard = {"audit/completions": 2.0, "audit/gap": 0.5, "audit/accuracy": 0.5}
    assert mean_metrics([(heard, 1), (silent, 1)])["audit/accuracy"] == 0.5
    assert mean_metrics([(silent, 1), (heard, 1)])["audit/accuracy"] == 0.5
