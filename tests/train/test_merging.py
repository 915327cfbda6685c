"""Groups of several batches put together, beside a loop that appends them."""

import numpy as np
import pytest

from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train.merging import joined_scores
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
