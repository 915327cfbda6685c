"""Several rewards per completion, added before or after they are normalised."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.multi_reward import gdpo_advantages, summed_rewards
from tests.core.test_advantages import GROUP_ID
from tests.core.test_advantages import loop as group_loop
from tests.core.variants import VARIANTS, run

WEIGHTS = np.array([1.0, 0.5, -0.25])
APPLIES = np.random.default_rng(9).uniform(size=(12, 3)) < 0.8
APPLIES[4] = False
jit_gdpo_advantages = jax.jit(gdpo_advantages, static_argnames=("epsilon",))
jit_group_advantages = jax.jit(group_advantages, static_argnames=("epsilon",))


@pytest.mark.parametrize("variant", VARIANTS)
def test_gdpo_equals_the_loop(variant):
    rewards = np.random.default_rng(1).normal(size=(2, 12, 3)).round(1)

    def ours(rewards):
        return gdpo_advantages(
            rewards,
            jnp.asarray(GROUP_ID),
            jnp.asarray(WEIGHTS),
            ddof=1,
            applies=jnp.asarray(APPLIES),
        )

    expected = [
        sum(
            WEIGHTS[k]
            * group_loop(r[:, k], GROUP_ID, "mean", "group", 1, row_mask=APPLIES[:, k])
            for k in range(3)
        )
        for r in rewards
    ]
    np.testing.assert_allclose(run(variant, ours, rewards), expected, atol=1e-12)


def test_a_reward_that_varies_little_is_still_heard():
    """(1, 0) and (0, .1): summed, 1 beats .1; per reward they cancel, +1 - 1 = 0."""
    rewards, group_id = jnp.array([[1.0, 0.0], [0.0, 0.1]]), jnp.zeros(2, int)
    weights = jnp.ones(2)
    first = jit_group_advantages(
        summed_rewards(rewards, weights), group_id, epsilon=0.0
    )
    np.testing.assert_allclose(first, [1, -1], rtol=1e-6)
    apart = jit_gdpo_advantages(rewards, group_id, weights, epsilon=0.0)
    np.testing.assert_allclose(apart, [0, 0], atol=1e-6)


def test_one_reward_is_grpo():
    rewards = jnp.array([1.0, 0.0, 0.0, 0.5])
    found = jit_gdpo_advantages(rewards[:, None], jnp.zeros(4, int), jnp.ones(1))
    np.testing.assert_allclose(
        found, jit_group_advantages(rewards, jnp.zeros(4, int)), rtol=1e-6
    )


def test_nan_where_a_reward_does_not_apply_is_not_read():
    rewards = jnp.array([[1.0, jnp.nan], [2.0, 4.0], [jnp.nan, jnp.nan]])
    applies = ~jnp.isnan(rewards)
    found = summed_rewards(rewards, jnp.array([1.0, 0.5]), applies=applies)
    np.testing.assert_array_equal(found, [1.0, 4.0, 0.0])
    advantages = jit_gdpo_advantages(
        rewards, jnp.zeros(3, int), jnp.ones(2), applies=applies
    )
    # Reward 0 is compared on rows 0 and 1; reward 1 applies to one row alone.
    np.testing.assert_allclose(advantages, [-1, 1, 0], rtol=1e-5)


def test_no_gradient_reaches_the_rewards():
    def total(rewards):
        found = jit_gdpo_advantages(rewards, jnp.zeros(2, int), jnp.ones(2))
        return jnp.sum(found**2) + jnp.sum(summed_rewards(rewards, jnp.ones(2)) ** 2)

    gradient = jax.grad(total)(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(gradient, 0)
