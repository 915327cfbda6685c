"""Baselines other than the group mean, against loops and closed forms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.baselines import (
    best_of_group_advantages,
    gpg_advantages,
    push_rewards,
    remax_advantages,
    running_mean_advantages,
    weighted_mean_advantages,
)
from tests.core.test_advantages import GROUP_ID, ROW_MASK, rewards_of
from tests.core.variants import VARIANTS, run

LENGTHS = np.array([3, 9, 1, 4, 7, 2, 8, 5, 6, 10, 11, 0], np.int32)
jit_weighted_mean_advantages = jax.jit(weighted_mean_advantages)
jit_gpg_advantages = jax.jit(gpg_advantages)
jit_running_mean_advantages = jax.jit(
    running_mean_advantages, static_argnames=("default",)
)
jit_best_of_group_advantages = jax.jit(best_of_group_advantages)


def members(i, kept):
    return [j for j in np.flatnonzero(kept) if GROUP_ID[j] == GROUP_ID[i]]


def each_kept(function):
    """A loop over kept rows whose group has unequal rewards; others are 0."""

    def loop(rewards, kept=ROW_MASK):
        found = np.zeros(len(rewards))
        for i in np.flatnonzero(kept):
            group = members(i, kept)
            if len({rewards[j] for j in group}) > 1:
                found[i] = function(i, group, rewards, kept)
        return found

    return loop


@each_kept
def opo_loop(i, group, rewards, kept):
    mean = sum(LENGTHS[j] * rewards[j] for j in group) / sum(LENGTHS[j] for j in group)
    return rewards[i] - mean


@each_kept
def gpg_loop(i, group, rewards, kept):
    live = [
        j
        for j in np.flatnonzero(kept)
        if len({rewards[m] for m in members(j, kept)}) > 1
    ]
    mean = np.mean([rewards[j] for j in group])
    return kept.sum() / len(live) * (rewards[i] - mean)


@each_kept
def best_loop(i, group, rewards, kept):
    first, second = sorted((rewards[j] for j in group), reverse=True)[:2]
    return first - second if rewards[i] == first else 0.0


def opo(rewards):
    return weighted_mean_advantages(
        rewards,
        jnp.asarray(GROUP_ID),
        jnp.asarray(LENGTHS),
        row_mask=jnp.asarray(ROW_MASK),
    )


def gpg(rewards):
    return gpg_advantages(
        rewards, jnp.asarray(GROUP_ID), row_mask=jnp.asarray(ROW_MASK)
    )


def best(rewards):
    return best_of_group_advantages(
        rewards, jnp.asarray(GROUP_ID), row_mask=jnp.asarray(ROW_MASK)
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_loop(variant):
    rewards = np.stack([rewards_of(seed) for seed in range(4)])
    rewards[3] = rewards[3].round(0)  # ties
    rewards[3, GROUP_ID == 0] = 0.7  # a unanimous group
    found = run(variant, lambda r: jnp.stack([opo(r), gpg(r), best(r)]), rewards)
    expected = [[opo_loop(r), gpg_loop(r), best_loop(r)] for r in rewards]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("ours", [opo, gpg, best])
def test_equal_rewards_give_exactly_zero(ours):
    for reward in (0.1, 0.7, 1 / 3):
        np.testing.assert_array_equal(ours(jnp.full(12, reward)), 0)


@pytest.mark.parametrize("ours", [opo, gpg, best])
def test_no_gradient_reaches_the_rewards(ours):
    gradient = jax.grad(lambda r: jnp.sum(ours(r) ** 2))(jnp.asarray(rewards_of(0)))
    np.testing.assert_array_equal(gradient, 0)


def test_opo_with_equal_lengths_is_the_group_mean():
    rewards, group_id = jnp.array([1.0, 0, 0, 0]), jnp.zeros(4, int)
    found = jit_weighted_mean_advantages(rewards, group_id, jnp.full(4, 17))
    np.testing.assert_allclose(found, [0.75, -0.25, -0.25, -0.25])


def test_opo_makes_length_weighted_advantages_sum_to_zero():
    found = jit_weighted_mean_advantages(
        jnp.asarray(rewards_of(1)), jnp.asarray(GROUP_ID), jnp.asarray(LENGTHS)
    )
    sums = jax.ops.segment_sum(found * LENGTHS, jnp.asarray(GROUP_ID), num_segments=12)
    np.testing.assert_allclose(sums, 0, atol=1e-5)


def test_groups_without_weight_give_zero():
    found = jit_weighted_mean_advantages(
        jnp.array([1.0, 0.0]), jnp.zeros(2, int), jnp.zeros(2)
    )
    np.testing.assert_array_equal(found, 0)


def test_gradient_norm_weights_give_the_least_variance():
    """PG-04: among constant baselines, on every outcome of a 4-answer softmax.

    With w = p |g|^2 over all answers, the weighted mean is E[|g|^2 r] / E[|g|^2]; the
    trace of the variance of (r - b) g is then smaller than for any other b, the
    reward's mean included.
    """
    logits, rewards = np.array([0.3, -1.0, 0.8, 0.0]), np.array([1.0, 0.0, 0.2, 3.0])
    probs = np.exp(logits) / np.exp(logits).sum()
    scores = np.eye(4) - probs

    def trace_variance(advantages):
        samples = advantages[:, None] * scores
        mean = probs @ samples
        return probs @ (samples**2).sum(1) - (mean**2).sum()

    weights = probs * (scores**2).sum(1)
    with jax.enable_x64(True):
        best = jit_weighted_mean_advantages(
            jnp.asarray(rewards), jnp.zeros(4, int), jnp.asarray(weights)
        )
    least = trace_variance(np.asarray(best))
    others = [trace_variance(rewards - b) for b in np.linspace(-1, 4, 501)]
    assert least <= min(others) <= least * 1.0001
    assert least < trace_variance(rewards - probs @ rewards) * 0.99


def test_gpg_scale_makes_up_for_silent_groups():
    """2 of 8 rows live: factor 4. Centred +-.5 become +-2."""
    rewards, group_id = jnp.array([1.0, 0, 1, 1, 0, 0, 1, 1]), jnp.arange(8) // 2
    np.testing.assert_array_equal(
        jit_gpg_advantages(rewards, group_id), [2, -2, 0, 0, 0, 0, 0, 0]
    )


def test_ties_at_the_top_give_nothing():
    rewards = jnp.array([1.0, 1.0, 0.0])
    np.testing.assert_array_equal(
        jit_best_of_group_advantages(rewards, jnp.zeros(3, int)), 0
    )


def test_remax_is_the_difference():
    found = remax_advantages(jnp.array([True, False]), jnp.array([0.25, 0.25]))
    np.testing.assert_array_equal(found, [0.75, -0.25])


def test_running_mean_reads_only_what_was_seen():
    history = jnp.array([[1.0, 0.0, jnp.nan], [1.0, 1.0, 0.0], [9.0, 9.0, 9.0]])
    seen = jnp.array([[1, 1, 0], [1, 1, 1], [0, 0, 0]])
    found = jit_running_mean_advantages(jnp.ones(3), history, seen, default=0.25)
    # 1 - 1/2, 1 - 2/3, and a new prompt: 1 - the default.
    np.testing.assert_allclose(found, [0.5, 1 / 3, 0.75], rtol=1e-6)


def test_history_forgets_beyond_its_window():
    """PG-40: SAO's control keeps 8 rewards per prompt."""
    history, seen = jnp.zeros((1, 8)), jnp.zeros((1, 8), bool)
    for step in range(11):
        history, seen = push_rewards(history, seen, jnp.array([float(step)]))
    np.testing.assert_array_equal(history[0], np.arange(10, 2, -1))
    found = jit_running_mean_advantages(jnp.array([11.0]), history, seen)
    np.testing.assert_allclose(found, [11 - 6.5])


def test_running_mean_adds_no_bias():
    """PG-40: expected update by enumeration of three earlier rewards and this one.

    Bernoulli policy with p = sigmoid(theta): E[A grad log pi] = p (1 - p) = grad p.
    """
    p = 0.3
    total = 0.0
    for *past, now in itertools.product([0.0, 1.0], repeat=4):
        outcomes = np.array([*past, now])
        chance = np.prod(np.where(outcomes, p, 1 - p))
        advantage = jit_running_mean_advantages(
            jnp.array([now]), jnp.array([past]), jnp.ones((1, 3))
        )
        score = (1 - p) if now else -p
        total += chance * float(advantage[0]) * score
    np.testing.assert_allclose(total, p * (1 - p), rtol=1e-5)
