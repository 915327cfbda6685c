"""Supervised tuning as a policy gradient, against enumeration and autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.imitation import (
    gradient_shares,
    imitation_loss,
    implicit_rewards,
    rectified_imitation_loss,
)
from rlvr_jax.core.losses import reinforce_loss

LOGITS = np.array([0.4, -1.1, 2.0, 0.0])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def gradient_of(loss, demonstrated, logits=LOGITS):
    """Of the loss on one demonstrated token, by autodiff in float64."""

    def total(logits):
        logprob = jax.nn.log_softmax(logits)[demonstrated]
        return loss(logprob[None, None]).sum()

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.grad(total))(jnp.asarray(logits)))


def enumerated(paid, logits=LOGITS):
    """sum_y pi(y) r(y) grad log pi(y): what a sampling policy climbs in expectation."""
    policy = softmax(logits)
    return (policy * paid) @ (np.eye(len(logits)) - policy)


@pytest.mark.parametrize("demonstrated", range(4))
def test_imitation_is_a_policy_gradient_of_one_over_pi(demonstrated):
    """SFT-01: grad log pi(y*) = E_pi[1{y = y*} / pi grad log pi], both to 1e-12."""
    with jax.enable_x64(True):
        logprobs = jnp.log(jnp.asarray(softmax(LOGITS)))[None]
        paid = np.asarray(implicit_rewards(logprobs))[0] * np.eye(4)[demonstrated]
    np.testing.assert_allclose(
        -gradient_of(imitation_loss, demonstrated), enumerated(paid), atol=1e-12
    )


def test_a_token_of_one_in_a_thousand_weighs_a_thousand_times():
    """SFT-02: 1 / p; exactly 1000 at p = .001 against 1 at p = 1."""
    found = implicit_rewards(jnp.log(jnp.array([[0.001, 1.0]])))
    np.testing.assert_allclose(found, [[1000.0, 1.0]], rtol=1e-6)


@pytest.mark.parametrize("demonstrated", range(4))
def test_rectified_imitation_follows_the_probability(demonstrated):
    """SFT-03: the gradient of DFT is -grad pi(y*), and its implicit reward is 1 for
    every demonstrated token."""
    found = gradient_of(rectified_imitation_loss, demonstrated)
    policy = softmax(LOGITS)
    # d pi_y / d logits = pi_y (onehot - pi)
    of_probability = policy[demonstrated] * (np.eye(4)[demonstrated] - policy)
    np.testing.assert_allclose(found, -of_probability, atol=1e-12)
    constant = np.eye(4)[demonstrated]  # 1{y = y*}, whatever pi(y*)
    np.testing.assert_allclose(-found, enumerated(constant), atol=1e-12)


@pytest.mark.parametrize("loss", [imitation_loss, rectified_imitation_loss])
def test_no_demonstrated_token_is_ever_pushed_down(loss):
    """SFT-04: over 200 random policies and all four tokens of each, a step down the
    loss raises the logit of the demonstrated one."""

    def total(logits, demonstrated):
        return loss(jax.nn.log_softmax(logits)[demonstrated][None, None]).sum()

    policies = jnp.asarray(np.random.default_rng(0).normal(0, 3, (200, 4)))
    per_token = jax.vmap(jax.grad(total), (None, 0))
    gradients = jax.jit(jax.vmap(per_token, (0, None)))(policies, jnp.arange(4))
    assert (-jnp.diagonal(gradients, axis1=1, axis2=2) > 0).all()


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.75])
def test_the_failed_share_of_a_group_is_pushed_down(rate):
    """SFT-04: in RL the share of negative advantages is 1 - p of all samples in mixed
    groups: "roughly half" at p = 1/2. 4,000 groups of 8, four standard errors."""
    count, size = 4000, 8
    rng = np.random.default_rng(1)
    correct = (rng.random((count, size)) < rate).astype(np.float32)
    mixed = correct[(correct.min(1) < 1) & (correct.max(1) > 0)]
    advantages = group_advantages(
        jnp.asarray(mixed.ravel()), jnp.repeat(jnp.arange(len(mixed)), size)
    )
    found = float((advantages < 0).mean())
    # Of groups that are neither all right nor all wrong.
    expected = (1 - rate - (1 - rate) ** size) / (1 - rate**size - (1 - rate) ** size)
    assert abs(found - expected) < 4 * np.sqrt(rate * (1 - rate) / mixed.size)
    assert abs(expected - (1 - rate)) < 0.03


def test_surprising_tokens_carry_the_update():
    """SFT-05: planted: 90 tokens at p = .95 and 10 at p = .05 of two each. The norm of
    pi - onehot is sqrt(2) (1 - p): shares 10 x .95 and 90 x .05 of their sum."""
    rare, common = [0.05, 0.95], [0.95, 0.05]
    logits = jnp.log(jnp.array([rare] * 10 + [common] * 90))
    shares = np.asarray(gradient_shares(logits, jnp.zeros(100, int)))
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == pytest.approx(9.5 / (9.5 + 4.5), rel=1e-5)
    assert shares[9] == pytest.approx(4.5 / (9.5 + 4.5), rel=1e-5)
    # A tenth of the tokens, two thirds of the update.
    assert shares[0] > 0.67


def test_shares_are_norms_of_the_gradient():
    """SFT-05: against the norm that autodiff gives token by token."""
    rng = np.random.default_rng(2)
    logits, tokens = rng.normal(0, 2, (30, 4)), rng.integers(0, 4, 30)
    norms = [
        np.linalg.norm(gradient_of(imitation_loss, int(y), row))
        for row, y in zip(logits, tokens, strict=True)
    ]
    chosen = softmax(logits)[np.arange(30), tokens]
    expected = np.histogram(chosen, bins=5, range=(0, 1), weights=norms)[0]
    found = gradient_shares(jnp.asarray(logits), jnp.asarray(tokens), bins=5)
    np.testing.assert_allclose(found, expected / sum(norms), rtol=1e-5)
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        gradient_shares(jnp.asarray(logits), jnp.asarray(tokens), bins=0)


def test_what_imitation_and_rl_do_to_each_answer():
    """SFT-06: support, sign, weight and on-policyness side by side, three answers of
    which the last is never sampled and the one demonstrated."""
    policy, rewards = np.array([0.7, 0.3, 0.0]), np.array([1.0, 0.0, 1.0])
    onehot = np.eye(3)[2]
    by_imitation = onehot - policy  # grad of log pi(y*)
    by_reward = policy * (rewards - policy @ rewards)  # grad of E[r]
    # Support: RL leaves at 0 what is never sampled, imitation raises it.
    assert (by_reward[2], by_imitation[2]) == (0.0, 1.0)
    # Sign: RL raises a sampled right answer and lowers a wrong one; imitation lowers
    # whatever is not the demonstration, right or wrong.
    assert by_reward[0] > 0 > by_reward[1]
    assert max(by_imitation[:2]) < 0
    # Weight: 1 / pi of the demonstration against the advantage, which is bounded.
    logprobs = jnp.log(jnp.array([[1e-6]]))
    assert implicit_rewards(logprobs)[0, 0] == pytest.approx(1e6, rel=1e-4)
    assert abs(rewards - policy @ rewards).max() <= 1
    # On-policyness: samples of the policy itself give RL's gradient in expectation,
    # here by its own loss; a demonstration is the same whoever the policy is.
    sampled = LOGITS[:3]
    with jax.enable_x64(True):
        pi = softmax(sampled)

        def expected_loss(logits):
            logprobs = jax.nn.log_softmax(logits)[:, None]
            paid = jnp.asarray(rewards - pi @ rewards)
            return (jnp.asarray(pi)[:, None] * reinforce_loss(logprobs, paid)).sum()

        found = -jax.grad(expected_loss)(jnp.asarray(sampled))
    np.testing.assert_allclose(found, pi * (rewards - pi @ rewards), atol=1e-12)
