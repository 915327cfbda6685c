"""Rewards that do not know the answer."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.spurious import (
    answer_key,
    incorrect_scores,
    majority_scores,
    random_scores,
)


def test_random_rewards_are_of_their_rate_and_of_nothing_else():
    """SPU-01: 20,000 draws at 0.5 and at 0.2; the standard error is below 0.004.

    Right completions ("r") are paid as often as others.
    """
    for rate in (0.5, 0.2):
        paid = {"r": [], "w": []}
        for group in range(2500):
            texts = [f"{'rw'[i % 2]} {group} {i}" for i in range(8)]
            scores = random_scores(texts, "p", rate=rate, seed=0)
            for text, score in zip(texts, scores, strict=True):
                paid[text[0]].append(score)
        for found in paid.values():
            assert np.mean(found) == pytest.approx(rate, abs=0.02)


def test_random_rewards_have_no_expected_gradient():
    """SPU-01: over all 2^4 equally likely rewards of a group, advantages average to 0.

    The unclipped policy gradient is linear in them, so it does too, for every policy.
    """
    group = jnp.zeros(4, int)
    advantages = [
        np.asarray(group_advantages(jnp.array(rewards), group))
        for rewards in itertools.product([0.0, 1.0], repeat=4)
    ]
    np.testing.assert_allclose(np.mean(advantages, axis=0), np.zeros(4), atol=1e-6)
    assert np.abs(advantages).max() > 1


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["4", "5", "5", "6"], [0, 1, 1, 0]),
        (["4", "5", "5", "4"], [1, 0, 0, 1]),  # a tie goes to the first
        ([None, None, "6"], [0, 0, 1]),  # no answer, no vote
        ([None, None], [0, 0]),
        (["7"] * 3, [1, 1, 1]),
    ],
)
def test_majority(keys, expected):
    """SPU-04: 1 where the answer is the majority's, right or wrong."""
    assert majority_scores(keys) == expected


def test_the_most_frequent_wrong_answer():
    """SPU-02: 4 is right, so 6 is paid although 4 has the majority."""
    keys = ["4", "4", "4", "6", "6", "5", None]
    right = [True, True, True, False, False, False, False]
    assert incorrect_scores(keys, right) == [0, 0, 0, 1, 1, 0, 0]
    # An answer that was verified once is right, also where a second copy was not.
    right = [True, False, True, False, False, False, False]
    assert incorrect_scores(keys, right) == [0, 0, 0, 1, 1, 0, 0]
    assert incorrect_scores(["4", "4"], [True, True]) == [0, 0]


def key(text, answer="4"):
    verdict = answer_key(Sample("answer_key", text, answer))
    return verdict.detail if verdict.status is Status.CORRECT else None


def test_equal_answers_share_a_key():
    half = [r"\boxed{1/2}", r"\boxed{\frac{2}{4}}", "so the answer is 0.5.", "#### 50%"]
    assert len({key(text) for text in half}) == 1
    assert key(r"\boxed{1+x}") == key(r"\boxed{x+1}")
    assert key(r"\boxed{Paris}") == key(r"\boxed{\text{paris}}") == "paris"
    assert key("The answer is (B).", "C") == key(r"\boxed{B}", "C")
    apart = [
        r"\boxed{2}",
        r"\boxed{3}",
        r"\boxed{x}",
        r"\boxed{2, 3}",
        r"\boxed{(2,3)}",
    ]
    assert len({key(text) for text in apart}) == 5


def test_no_answer_and_several_have_no_key():
    assert key("") is None
    assert key(r"\boxed{1} or is it \boxed{2}") is None


def test_a_key_is_short_whatever_the_answer():
    long = key(r"\boxed{" + "x+" * 2000 + "y}")
    assert long is not None
    assert len(long) <= 300
