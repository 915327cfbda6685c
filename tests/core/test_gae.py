"""GAE against a loop that carries over holes, and its closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.gae import gae, length_adaptive_lambda, value_targets
from rlvr_jax.core.returns import token_rewards
from tests.core.test_returns import MASK, random
from tests.core.variants import VARIANTS, run

ENDS = np.zeros(MASK.shape, bool)
ENDS[0, 1] = ENDS[1, 3] = ENDS[4, 3] = True  # the last at a masked position
FINAL = np.array([0.3, -0.5, 0.7, 0.2, 0.0])
jit_gae = jax.jit(gae, static_argnames=("gamma", "lam"))
jit_value_targets = jax.jit(value_targets, static_argnames=("lam",))


def loop(rewards, values, mask, gamma, lam, final=None, ends=None):
    """Backwards over tokens; `lam` per row."""
    found = np.zeros(rewards.shape)
    for i in range(len(rewards)):
        next_value, later = (0.0 if final is None else final[i]), 0.0
        for t in reversed(range(rewards.shape[1])):
            if ends is not None and ends[i, t]:
                next_value, later = 0.0, 0.0
            if mask[i, t]:
                delta = rewards[i, t] + gamma * next_value - values[i, t]
                later = delta + gamma * lam[i] * later
                found[i, t], next_value = later, values[i, t]
    return found


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("extras", [False, True])
def test_equals_the_loop(variant, extras):
    rewards, values = random(2, *MASK.shape), random(*MASK.shape, 2).transpose(2, 0, 1)
    final, ends = (FINAL, ENDS) if extras else (None, None)
    settings = [(1.0, 1.0), (0.99, 0.95), (0.9, 0.0)]

    def ours(rewards, values):
        found = [
            gae(
                rewards,
                values,
                jnp.asarray(MASK),
                gamma=gamma,
                lam=lam,
                final_values=None if final is None else jnp.asarray(final),
                episode_ends=None if ends is None else jnp.asarray(ends),
            )
            for gamma, lam in settings
        ]
        return jnp.stack(found)

    found = run(variant, ours, rewards, values)
    for n, one in enumerate(zip(rewards, values, strict=True)):
        for row, (gamma, lam) in zip(found[n], settings, strict=True):
            expected = loop(*one, MASK, gamma, np.full(5, lam), final, ends)
            np.testing.assert_allclose(row, expected, atol=1e-12)


def test_one_lambda_per_row():
    rewards, values = random(*MASK.shape), random(*MASK.shape[::-1]).T
    lam = np.array([0.1, 0.5, 0.9, 1.0, 0.0])
    with jax.enable_x64(True):
        found = gae(
            jnp.asarray(rewards),
            jnp.asarray(values),
            jnp.asarray(MASK),
            gamma=0.9,
            lam=jnp.asarray(lam),
        )
    np.testing.assert_allclose(found, loop(rewards, values, MASK, 0.9, lam), atol=1e-12)


def test_monte_carlo_at_lambda_one():
    """PG-23: gamma = lam = 1 and one terminal reward R: A_t = R - V_t exactly."""
    mask, values = jnp.asarray(MASK), jnp.asarray(random(*MASK.shape), jnp.float32)
    outcome = jnp.array([1.0, 0.0, 1.0, 1.0, 0.0])
    found = jit_gae(token_rewards(outcome, mask), values, mask, lam=1.0)
    expected = np.where(MASK, outcome[:, None] - values, 0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_step_error_at_lambda_zero():
    """PG-23: lam = 0: A_t = r_t + gamma V_{t+1} - V_t."""
    values = jnp.array([[0.5, 0.25, 1.0]])
    rewards = jnp.array([[0.0, 0.0, 2.0]])
    found = jit_gae(rewards, values, jnp.ones((1, 3)), gamma=0.5, lam=0.0)
    # 0.5 * 0.25 - 0.5; 0.5 * 1 - 0.25; 2 - 1
    np.testing.assert_allclose(found, [[-0.375, 0.25, 1.0]])


@pytest.mark.parametrize("observations", [0, 1, 100])
def test_a_bridge_counts_one_lambda(observations):
    """PG-30: [a a | o ... o | a], V = 0, gamma = 1, one terminal reward R = 2.

    The first segment's last token gets lam * R however long the observation is.
    """
    mask = jnp.array([[1, 1] + [0] * observations + [1]])
    rewards = token_rewards(jnp.array([2.0]), mask)
    values = jnp.where(mask, 0.0, 1e9)  # what stands at observations is not read
    found = jit_gae(rewards, values, mask, lam=0.8)
    np.testing.assert_allclose(
        found[0, [0, 1, -1]], [2 * 0.64, 2 * 0.8, 2.0], rtol=1e-6
    )


def test_masked_values_and_rewards_are_not_read():
    mask = jnp.asarray(MASK)
    values, rewards = jnp.asarray(random(5, 7)), jnp.asarray(random(7, 5).T)
    clean = jit_gae(rewards, values, mask)
    spoiled = jit_gae(
        jnp.where(mask, rewards, jnp.nan), jnp.where(mask, values, jnp.nan), mask
    )
    np.testing.assert_array_equal(spoiled, clean)
    np.testing.assert_array_equal(clean[2], 0)


def test_packed_episodes_equal_separate_rows():
    """Two completions in one row, cut by `episode_ends`, as in two rows."""
    rewards, values = jnp.asarray(random(2, 3)), jnp.asarray(random(3, 2).T)
    apart = jit_gae(rewards, values, jnp.ones((2, 3)), gamma=0.9)
    ends = jnp.array([[False, False, True, False, False, False]])
    packed = jit_gae(
        rewards.reshape(1, 6),
        values.reshape(1, 6),
        jnp.ones((1, 6)),
        gamma=0.9,
        episode_ends=ends,
    )
    np.testing.assert_allclose(packed.reshape(2, 3), apart, rtol=1e-6)


def test_a_cut_completion_bootstraps():
    """V = 0.5 everywhere, no reward: cut at the limit nothing is lost (A = 0)."""
    values, mask = jnp.full((1, 3), 0.5), jnp.array([[1, 1, 0]])
    nothing = jnp.zeros((1, 3))
    cut = jit_gae(nothing, values, mask, lam=1.0, final_values=jnp.array([0.5]))
    np.testing.assert_array_equal(cut, 0)
    ended = jit_gae(nothing, values, mask, lam=1.0)
    np.testing.assert_array_equal(ended, [[-0.5, -0.5, 0]])


def test_a_biased_critic_shifts_advantages_by_its_bias():
    """PG-38: at lam = gamma = 1 a constant c added to V shifts every A by -c."""
    mask = jnp.asarray(MASK)
    rewards = token_rewards(jnp.arange(5.0), mask)
    values = jnp.asarray(random(5, 7), jnp.float32)
    shift = jit_gae(rewards, values + 0.25, mask, lam=1.0) - jit_gae(
        rewards, values, mask, lam=1.0
    )
    np.testing.assert_allclose(shift, np.where(MASK, -0.25, 0), atol=1e-5)


def test_true_values_give_the_centred_reward():
    """PG-24: V = p, lam = gamma = 1: A = r - p, the mean-centred advantage at large G.

    For a group of G it is what leave-one-out gives on average over the others: with
    p = 1/4 of them correct, r - 1/4.
    """
    outcome = jnp.array([1.0, 0.0, 0.0, 0.0])
    mask = jnp.ones((4, 3))
    found = jit_gae(token_rewards(outcome, mask), jnp.full((4, 3), 0.25), mask, lam=1.0)
    np.testing.assert_allclose(
        found, np.repeat([[0.75], [-0.25], [-0.25], [-0.25]], 3, 1)
    )


def test_a_critic_blames_a_wrong_step_that_is_recovered():
    """PG-35: V = .5, then .1 after the wrong step, then .9 after its correction; R = 1.

    With the true V, token GAE (lam = 0) gives the wrong step 0.1 - 0.5 < 0; a group
    baseline of .5 gives every step of the successful trace 1 - 0.5 > 0.
    """
    values = jnp.array([[0.5, 0.1, 0.9]])
    rewards = jnp.array([[0.0, 0.0, 1.0]])
    found = jit_gae(rewards, values, jnp.ones((1, 3)), lam=0.0)
    np.testing.assert_allclose(found, [[-0.4, 0.8, 0.1]], rtol=1e-6)
    group = jit_gae(rewards, jnp.full((1, 3), 0.5), jnp.ones((1, 3)), lam=1.0)
    np.testing.assert_array_equal(group, 0.5)


def test_targets_decouple_from_the_policy():
    """PG-37: at lam = 1 the targets are the return 1, whatever the critic says;

    the policy's A at lam .95 with V = 0 is .95^(99-t): .95^99 at the first of 100.
    """
    mask = jnp.ones((1, 100))
    rewards = token_rewards(jnp.array([1.0]), mask)
    values = jnp.asarray(random(1, 100), jnp.float32)
    np.testing.assert_allclose(jit_value_targets(rewards, values, mask), 1, atol=1e-5)
    found = jit_gae(rewards, jnp.zeros((1, 100)), mask, lam=0.95)
    np.testing.assert_allclose(found[0], 0.95 ** np.arange(99, -1, -1), rtol=1e-4)
    # VAPO's "about 0.006" for 100 further tokens.
    assert f"{0.95**100:.5f}" == "0.00592"


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_targets_are_advantages_plus_values(lam):
    mask = jnp.asarray(MASK)
    rewards, values = jnp.asarray(random(5, 7)), jnp.asarray(random(7, 5).T)
    expected = np.where(MASK, jit_gae(rewards, values, mask, lam=lam) + values, 0)
    found = jit_value_targets(rewards, values, mask, lam=lam)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("alpha", "length", "expected"),
    [
        # VAPO: 1 - 1/(.05 l)
        (0.05, 40, 0.5),
        (0.05, 100, 0.8),
        (0.05, 1000, 0.98),
        (0.05, 10000, 0.998),
        (0.05, 20, 0.0),
        (0.05, 7, 0.0),
        (0.05, 0, 0.0),
        # SAO: 1 - 1/(1.5 l)
        (1.5, 10, 0.93333),
        (1.5, 100, 0.99333),
    ],
)
def test_length_adaptive_lambda(alpha, length, expected):
    """PG-30, PG-37."""
    found = length_adaptive_lambda(jnp.array([length]), alpha=alpha)
    np.testing.assert_allclose(found, [expected], atol=5e-6)


def test_weights_of_a_td_error_sum_to_a_share_of_the_length():
    """PG-37: sum_t lam^t = alpha * l; .05 * 400 = 20 tokens."""
    lam = float(length_adaptive_lambda(jnp.array([400]), alpha=0.05)[0])
    np.testing.assert_allclose(sum(lam**t for t in range(10_000)), 20, rtol=1e-4)


def test_no_gradient_reaches_the_critic():
    def total(values):
        return jnp.sum(jit_gae(jnp.ones((1, 3)), values, jnp.ones((1, 3))) ** 2)

    np.testing.assert_array_equal(jax.grad(total)(jnp.ones((1, 3))), 0)
