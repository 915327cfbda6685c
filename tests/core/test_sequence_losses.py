"""Mirror descent on enumerable policies, and the likelihood of correct completions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import centred_rewards
from rlvr_jax.core.sequence_losses import (
    log_partition,
    mirror_descent_loss,
    positive_example_loss,
)
from tests.core.variants import VARIANTS, run

MASK = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]], np.int32)


def random(seed):
    return np.random.default_rng(seed).normal(size=(2, 3, 3))


@pytest.mark.parametrize("variant", VARIANTS)
def test_loss_equals_the_loop(variant):
    """-A l + tau/2 l^2, with l a sum over kept tokens, not their mean."""
    new, old, advantages = random(0), random(1), random(2)[:, 0]

    def ours(new, old, advantages):
        return mirror_descent_loss(new, old, advantages, jnp.asarray(MASK), tau=0.3)

    expected = np.zeros((2, 3))
    for n in range(2):
        for i in range(3):
            ratio = sum(new[n, i, t] - old[n, i, t] for t in np.flatnonzero(MASK[i]))
            expected[n, i] = -advantages[n, i] * ratio + 0.15 * ratio**2
    np.testing.assert_allclose(run(variant, ours, new, old, advantages), expected)


def test_gradient_at_the_old_policy_is_reinforce():
    """PG-34: on four answers it is that of -(r - mean r) log pi, whatever tau."""
    logits = jnp.array([0.2, -0.5, 1.0, 0.0])
    rewards, group_id = jnp.array([1.0, 0.0, 0.0, 2.0]), jnp.zeros(4, int)
    old, mask = jax.nn.log_softmax(logits)[:, None], jnp.ones((4, 1))
    advantages = centred_rewards(rewards, group_id)

    def loss(logits):
        new = jax.nn.log_softmax(logits)[:, None]
        return mirror_descent_loss(new, old, advantages, mask, tau=3.0).mean()

    def reinforce(logits):
        return -(advantages * jax.nn.log_softmax(logits)).mean()

    np.testing.assert_allclose(
        jax.grad(loss)(logits), jax.grad(reinforce)(logits), atol=1e-6
    )


def test_minimiser_is_the_tilted_policy():
    """PG-34: pi_old exp(r / tau) / Z has gradient 0 on every answer separately.

    With the exact tau log Z = tau log E_old[exp(r / tau)], r - tau log Z is exactly tau
    log(pi* / pi_old), so each answer's own loss is at its minimum.
    """
    old = jax.nn.log_softmax(jnp.array([0.2, -0.5, 1.0, 0.0]))
    rewards, tau = jnp.array([1.0, 0.0, 0.3, 2.0]), 0.7
    log_z = jax.nn.logsumexp(old + rewards / tau)
    best = old + rewards / tau - log_z

    def loss(logprobs):
        return mirror_descent_loss(
            logprobs[:, None],
            old[:, None],
            rewards - tau * log_z,
            jnp.ones((4, 1)),
            tau=tau,
        ).sum()

    np.testing.assert_allclose(jnp.exp(best).sum(), 1, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(loss)(best), 0, atol=1e-5)
    assert loss(best) < min(loss(old), loss(best + 0.1), loss(best - 0.1))


@pytest.mark.parametrize(
    ("tau", "expected", "tolerance"),
    [
        (1.0, np.log((np.exp(1.0) + 1 + np.exp(3.0)) / 3), 1e-6),
        # Far from 1: the mean 4/3 and, within tau log 3, the maximum 3.
        (1e6, 4 / 3, 1e-5),
        (1e-3, 3.0 - 1e-3 * np.log(3), 1e-6),
        (1e-30, 3.0, 1e-6),
    ],
)
def test_log_partition(tau, expected, tolerance):
    """PG-34: tau log mean exp(r / tau), finite for any tau."""
    found = log_partition(jnp.array([1.0, 0.0, 3.0]), jnp.zeros(3, int), tau=tau)
    np.testing.assert_allclose(found, [expected] * 3, rtol=tolerance)


def test_log_partition_is_per_group_and_skips_masked_rows():
    rewards = jnp.array([1.0, 5.0, jnp.nan, 5.0])
    found = log_partition(
        rewards,
        jnp.array([0, 1, 0, 1]),
        tau=2.0,
        row_mask=jnp.array([True, True, False, True]),
    )
    np.testing.assert_allclose(found, [1, 5, 0, 5], rtol=1e-6)


def test_positive_examples_are_a_token_mean_over_correct_rows():
    """PG-37: rows of 2 and 1 kept tokens, NLL 1 + 2 and 6: (3 + 6) / 3."""
    logprobs = jnp.array([[-1.0, -2.0, -99.0], [-6.0, jnp.nan, jnp.nan], [-9.0] * 3])
    mask = jnp.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    correct = jnp.array([True, True, False])
    found = positive_example_loss(logprobs, correct, mask)
    assert float(found.value()) == 3.0
    gradient = jax.grad(lambda x: positive_example_loss(x, correct, mask).value())(
        logprobs
    )
    np.testing.assert_allclose(
        gradient, np.array([[-1, -1, 0], [-1, 0, 0], [0, 0, 0]]) / 3, rtol=1e-6
    )


def test_nothing_correct_is_zero_with_a_finite_gradient():
    def loss(x):
        return positive_example_loss(x, jnp.zeros(2, bool), jnp.ones((2, 2))).value()

    value, gradient = jax.value_and_grad(loss)(jnp.full((2, 2), -jnp.inf))
    assert float(value) == 0
    np.testing.assert_array_equal(gradient, 0)
