"""REC-38: PRIME's token rewards against exact soft values, its loss and its sums."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.implicit_process import (
    implicit_outcome_loss,
    implicit_process_rewards,
    prime_advantages,
)

RANDOM = np.random.default_rng(0)


def test_partial_sums_are_soft_values():
    """All 27 completions of three tokens, enumerated: the reward model that is pi_ref
    tilted by an outcome reward tells, token by token, what may still come of it."""
    beta, tokens = 0.5, np.array(list(itertools.product(range(3), repeat=3)))
    reference, outcome = RANDOM.dirichlet(np.ones(27)), RANDOM.normal(size=27)
    gain = reference * np.exp(outcome / beta)

    def prefix_sums(weights, length):
        """Of all completions that share the first `length` tokens, for each."""
        same = (tokens[:, None, :length] == tokens[None, :, :length]).all(-1)
        return same @ weights

    def logprobs(weights):
        sums = np.stack([prefix_sums(weights, n) for n in range(4)], axis=1)
        return np.log(sums[:, 1:] / sums[:, :-1])

    with jax.enable_x64(True):
        found = implicit_process_rewards(
            jnp.asarray(logprobs(gain / gain.sum())),
            jnp.asarray(logprobs(reference)),
            jnp.ones((27, 3)),
            beta=beta,
        )
    means = [prefix_sums(gain, n) / prefix_sums(reference, n) for n in range(4)]
    value = beta * np.log(np.stack(means, axis=1))
    sums = np.cumsum(np.asarray(found), axis=1)
    np.testing.assert_allclose(sums, value[:, 1:] - value[:, :1], atol=1e-12)


def test_the_loss_is_cross_entropy_of_the_sum():
    """By the formula, and its gradient: beta (sigmoid(z) - o) on every kept token."""
    logprobs = RANDOM.normal(size=(4, 5)).astype(np.float32)
    correct = np.array([1.0, 0.0, 0.3, 1.0], np.float32)
    mask = np.array([[1, 1, 1, 0, 0]] * 3 + [[0] * 5])
    loss = lambda ours: implicit_outcome_loss(
        implicit_process_rewards(ours, jnp.zeros((4, 5)), jnp.asarray(mask), beta=0.5),
        jnp.asarray(correct),
    )
    chance = 1 / (1 + np.exp(-0.5 * (logprobs * mask).sum(axis=1)))
    expected = -correct * np.log(chance) - (1 - correct) * np.log(1 - chance)
    np.testing.assert_allclose(loss(jnp.asarray(logprobs)), expected, rtol=1e-5)
    gradient = jax.grad(lambda ours: loss(ours).sum())(jnp.asarray(logprobs))
    slopes = 0.5 * (chance - correct)[:, None] * mask
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)


def a_batch():
    mask = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0], [1, 0, 0, 0]])
    mask = np.concatenate([mask, mask[::-1]])
    ids = np.array([3, 3, 3, 3, 0, 0, 5, 0])
    process = RANDOM.normal(size=(8, 4)).astype(np.float32)
    return process, RANDOM.integers(0, 2, 8).astype(np.float32), ids, mask


def by_loops(process, rewards, ids, mask, gamma):
    found = np.zeros(process.shape)
    mean = lambda values: np.mean(values) if len(values) else 0.0
    for i, row in enumerate(process):
        others = [j for j in range(len(ids)) if ids[j] == ids[i] and j != i]
        token_means = [mean(process[j][mask[j] > 0]) for j in others]
        outcome = rewards[i] - mean(rewards[others]) if others else 0.0
        after = 0.0
        for t in reversed(range(len(row))):
            if mask[i, t]:
                after = row[t] - mean(token_means) + gamma * after
                found[i, t] = after + outcome
    return found


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_advantages_by_loops(gamma):
    """The formula, written out; a group of one, holes in a mask, ids in any order."""
    batch = a_batch()
    found = prime_advantages(*map(jnp.asarray, batch), gamma=gamma)
    np.testing.assert_allclose(found, by_loops(*batch, gamma), atol=2e-6)


def test_the_form_of_the_code_is_the_same_per_completion():
    """That of verl: r G / (G - 1) - sum of all means / (G - 1). Summed over the
    tokens of one completion, both are the same."""
    process, _, ids, mask = (part[:4] for part in a_batch())  # a whole group
    means = (process * mask).sum(axis=1) / mask.sum(axis=1)
    theirs = ((process * 4 / 3 - means.sum() / 3) * mask).sum(axis=1)
    ours = prime_advantages(*map(jnp.asarray, (process, np.zeros(4), ids, mask)))
    np.testing.assert_allclose(ours[:, 0], theirs, atol=2e-6)


def test_no_number_where_no_token_counts_and_no_gradient():
    process, rewards, ids, mask = map(jnp.asarray, a_batch())
    hidden = process.at[0].set(jnp.nan)
    total = lambda process: prime_advantages(
        process, rewards, ids, mask.at[0].set(0)
    ).sum()
    assert np.isfinite(total(hidden))
    assert not np.any(jax.grad(total)(process))
