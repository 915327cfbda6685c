"""Process-supervised advantages against a loop over steps; scores of solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.process import (
    process_advantages,
    solution_scores,
    weakest_is_last_share,
)
from tests.core.variants import VARIANTS, run

GROUP_ID = np.array([2, 0, 2, 0, 1], np.int32)
MASK = np.array(
    [
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 1, 1, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ],
    bool,
)
ENDS = np.array(
    [
        [0, 0, 1, 0, 0, 1],
        [0, 1, 0, 1, 0, 1],  # the last end is in the padding
        [0, 1, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ],
    bool,
)


def loop(rewards, ddof):
    found = np.zeros(MASK.shape)
    steps = ENDS & MASK
    for i in range(len(MASK)):
        pool = [
            rewards[j, t]
            for j, t in zip(*np.nonzero(steps), strict=True)
            if GROUP_ID[j] == GROUP_ID[i]
        ]
        for t in np.flatnonzero(MASK[i]):
            later = [s for s in np.flatnonzero(steps[i]) if s >= t]
            found[i, t] = sum(
                (rewards[i, s] - np.mean(pool)) / (np.std(pool, ddof=ddof) + 1e-6)
                for s in later
            )
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_loop(variant):
    rewards = np.random.default_rng(0).normal(size=(3, *MASK.shape))

    def ours(rewards):
        arrays = map(jnp.asarray, (ENDS, GROUP_ID, MASK))
        ends, group_id, mask = arrays
        return jnp.stack(
            [
                process_advantages(rewards, ends, group_id, mask, ddof=ddof)
                for ddof in (0, 1)
            ]
        )

    expected = [[loop(r, ddof) for ddof in (0, 1)] for r in rewards]
    np.testing.assert_allclose(run(variant, ours, rewards), expected, atol=1e-12)


def test_a_token_is_paid_for_its_step_and_later_ones():
    """PG-25: steps ending at tokens 3 and 6 with normalised rewards a, b: a + b, b.

    Two rows make the pool {1, 5, 0, 2}: mean 2, std sqrt(14/4).
    """
    ends = jnp.array([[0, 0, 1, 0, 0, 1]] * 2, bool)
    rewards = jnp.array([[0, 0, 1.0, 0, 0, 5.0], [0, 0, 0.0, 0, 0, 2.0]])
    found = process_advantages(
        rewards, ends, jnp.zeros(2, int), jnp.ones((2, 6)), epsilon=0.0
    )
    a, b = (1 - 2) / 3.5**0.5, (5 - 2) / 3.5**0.5
    np.testing.assert_allclose(found[0], [a + b] * 3 + [b] * 3, rtol=1e-5)


def test_one_step_per_completion_is_outcome_supervision():
    """The reward at the last token alone: GRPO's +2.6458 / -.3780 on every token."""
    rewards = jnp.zeros((8, 3)).at[0, 2].set(1.0)
    ends = jnp.zeros((8, 3), bool).at[:, 2].set(True)
    found = process_advantages(rewards, ends, jnp.zeros(8, int), jnp.ones((8, 3)))
    np.testing.assert_allclose(found[0], 2.64575, rtol=1e-5)
    np.testing.assert_allclose(found[1:], -0.37796, rtol=1e-4)


@pytest.mark.parametrize("steps", [1, 3, 6, 7])
def test_equal_step_rewards_give_exactly_zero(steps):
    """The float32 mean of three rewards of 0.7 is not 0.7."""
    shape = (1, steps)
    found = process_advantages(
        jnp.full(shape, 0.7), jnp.ones(shape, bool), jnp.zeros(1, int), jnp.ones(shape)
    )
    np.testing.assert_array_equal(found, 0)


def test_no_gradient_reaches_the_rewards():
    def total(rewards):
        arrays = map(jnp.asarray, (ENDS, GROUP_ID, MASK))
        return jnp.sum(process_advantages(rewards, *arrays) ** 2)

    gradient = jax.grad(total)(jnp.arange(30.0).reshape(5, 6))
    np.testing.assert_array_equal(gradient, 0)


def test_ddof_is_checked():
    with pytest.raises(ValueError, match="ddof must be 0 or 1, got 3"):
        process_advantages(
            jnp.ones((1, 1)),
            jnp.ones((1, 1), bool),
            jnp.zeros(1, int),
            jnp.ones((1, 1)),
            ddof=3,
        )


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [("min", 0.2), ("product", 0.144), ("last", 0.8), ("mean", 1.9 / 3)],
)
def test_one_score_from_those_of_the_steps(aggregation, expected):
    """PROC-13: [.9, .2, .8] -> .2, .144, .8. Steps elsewhere in the row, a solution of
    one step and one of none."""
    scores = jnp.array([[0.9, 0.2, 0.8, 0.0], [0.0, 0.9, 0.2, 0.8], [0.7, 0, 0, 0]])
    steps = jnp.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]], bool)
    found = solution_scores(scores, steps, aggregation=aggregation)
    np.testing.assert_allclose(found, [expected, expected, 0.7], rtol=1e-6)
    none = solution_scores(scores[:1], steps[:1] & False, aggregation=aggregation)
    np.testing.assert_array_equal(none, 0)


def test_an_unknown_aggregation_is_refused():
    with pytest.raises(ValueError, match="one of min, product, last, mean, got 'max'"):
        solution_scores(jnp.ones((1, 1)), jnp.ones((1, 1), bool), aggregation="max")


@pytest.mark.parametrize("steps", [2, 5, 10])
def test_a_process_model_finds_the_weakest_step_anywhere(steps):
    """PROC-11: scores that do not know the place: 1/S within four standard errors of
    20,000 solutions; equal ones share, exactly 1/S."""
    count = 20_000
    scores = np.random.default_rng(0).random((count, steps)).astype(np.float32)
    every = jnp.ones((count, steps), bool)
    found = float(weakest_is_last_share(jnp.asarray(scores), every))
    assert abs(found - 1 / steps) < 4 * np.sqrt((1 - 1 / steps) / steps / count)
    equal = weakest_is_last_share(jnp.full((3, steps), 0.5), every[:3])
    assert float(equal) == pytest.approx(1 / steps)


def test_an_outcome_model_finds_it_at_the_end():
    """PROC-11: one that only doubts the answer: share 1, whatever the padding."""
    scores = jnp.array([[0.9, 0.8, 0.3, 0.0], [0.9, 0.1, 0.0, 0.0], [0.0] * 4])
    steps = jnp.array([[1, 1, 1, 0], [1, 1, 0, 0], [0] * 4], bool)
    assert weakest_is_last_share(scores, steps) == 1
    assert weakest_is_last_share(scores[2:], steps[2:]) == 0
