"""Rewards per token and their sums, against loops over tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.kl import kl_rewards
from rlvr_jax.core.returns import rewards_to_go, suffix_scan, token_rewards
from tests.core.variants import VARIANTS, run

# A hole, a full row, an empty row, one token, leading holes.
MASK = np.array(
    [
        [1, 1, 0, 0, 1, 1, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 1, 0, 0],
    ],
    np.int32,
)
jit_rewards_to_go = jax.jit(rewards_to_go, static_argnames=("gamma",))


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def loop(rewards, mask, gamma):
    """The docstring's recursion, from the back."""
    returns = np.zeros(rewards.shape)
    for i in range(len(rewards)):
        later = 0.0
        for t in reversed(range(rewards.shape[1])):
            if mask[i, t]:
                later = rewards[i, t] + gamma * later
                returns[i, t] = later
    return returns


@pytest.mark.parametrize("variant", VARIANTS)
def test_rewards_to_go_equals_the_loop(variant):
    rewards, gammas = random(3, *MASK.shape), (1.0, 0.9, 0.0)

    def ours(rewards):
        mask = jnp.asarray(MASK)
        return jnp.stack([rewards_to_go(rewards, mask, gamma=g) for g in gammas])

    found = run(variant, ours, rewards)
    expected = [[loop(r, MASK, gamma) for gamma in gammas] for r in rewards]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_suffix_scan_equals_the_loop(variant):
    increments, decays = random(2, 4, 9), np.abs(random(2, 9, 4)).swapaxes(1, 2)
    expected = np.zeros(increments.shape)
    for t in reversed(range(9)):
        later = expected[..., t + 1] if t < 8 else 0.0
        expected[..., t] = increments[..., t] + decays[..., t] * later
    found = run(variant, suffix_scan, increments, decays)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_observations_take_no_time():
    """A row with observation tokens has the returns of the row without them."""
    rewards = jnp.array([[0.0, 5.0, 5.0, 0.0, 1.0]])
    mask = jnp.array([[1, 0, 0, 1, 1]])
    with_holes = jit_rewards_to_go(rewards, mask, gamma=0.5)
    without = jit_rewards_to_go(
        jnp.array([[0.0, 0.0, 1.0]]), jnp.ones((1, 3)), gamma=0.5
    )
    np.testing.assert_array_equal(with_holes[:, mask[0] == 1], without)


def test_padding_changes_nothing_even_if_it_is_nan():
    rewards, mask = jnp.array([[1.0, 2.0]]), jnp.array([[1, 1]])
    padded = jnp.concatenate([rewards, jnp.full((1, 3), jnp.nan)], axis=1)
    longer = jnp.pad(mask, ((0, 0), (0, 3)))
    found = jit_rewards_to_go(padded, longer, gamma=0.5)
    np.testing.assert_array_equal(found, [[2.0, 2.0, 0, 0, 0]])


def test_reward_is_paid_at_the_last_kept_token():
    found = token_rewards(jnp.arange(1.0, 6.0), jnp.asarray(MASK))
    expected = np.zeros(MASK.shape)
    # Row 2 has no token to pay.
    for row, column in ((0, 5), (1, 6), (3, 0), (4, 4)):
        expected[row, column] = row + 1
    np.testing.assert_array_equal(found, expected)


def test_kl_is_charged_per_kept_token():
    """beta 0.1, log-ratio 2: -0.2 at each of three tokens; the reward 1 at the last.

    Returns are then .4, .6 and .8: a token pays for its own KL and for later ones.
    """
    mask = jnp.array([[1, 1, 0, 1]])
    policy = jnp.array([[-1.0, -1.0, jnp.nan, -1.0]])
    rewards = token_rewards(jnp.array([1.0]), mask) + kl_rewards(
        policy, policy - 2, mask, beta=0.1
    )
    np.testing.assert_allclose(rewards, [[-0.2, -0.2, 0, 0.8]], rtol=1e-6)
    returns = jit_rewards_to_go(rewards, mask)
    np.testing.assert_allclose(returns, [[0.4, 0.6, 0, 0.8]], rtol=1e-6)


def test_no_gradient_reaches_the_rewards():
    def total(rewards):
        tokens = token_rewards(rewards, jnp.ones((1, 3)))
        return jnp.sum(jit_rewards_to_go(tokens, jnp.ones((1, 3))) ** 2)

    np.testing.assert_array_equal(jax.grad(total)(jnp.ones(1)), 0)
