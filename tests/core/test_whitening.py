"""Whitening and REINFORCE++ over all tokens of the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.returns import token_rewards
from rlvr_jax.core.whitening import (
    reinforce_pp_advantages,
    reinforce_pp_baseline_advantages,
    whiten,
)
from tests.core.test_returns import MASK, random
from tests.core.variants import VARIANTS, run

jit_reinforce_pp_baseline_advantages = jax.jit(reinforce_pp_baseline_advantages)
jit_whiten = jax.jit(whiten, static_argnames=("ddof",))


def loop(values, mask, ddof):
    kept = [values[i, t] for i, t in zip(*np.nonzero(mask), strict=True)]
    mean = sum(kept) / len(kept)
    variance = sum((x - mean) ** 2 for x in kept) / (len(kept) - ddof)
    return np.where(mask, (values - mean) / np.sqrt(variance + 1e-8), 0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("ddof", [0, 1])
def test_equals_the_loop(variant, ddof):
    values = random(3, *MASK.shape)
    found = run(variant, lambda v: whiten(v, jnp.asarray(MASK), ddof=ddof), values)
    np.testing.assert_allclose(found, [loop(v, MASK, ddof) for v in values], atol=1e-12)


def test_mean_is_zero_and_variance_one():
    """PG-21: over kept tokens, also of values far from 0."""
    kept = MASK > 0
    values = 100 + random(1, *MASK.shape)
    white = run("jit", lambda v: jit_whiten(v, jnp.asarray(MASK)), values)[0]
    np.testing.assert_allclose(white[kept].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(white[kept].var(), 1, rtol=1e-7)
    np.testing.assert_array_equal(white[~kept], 0)


@pytest.mark.parametrize("value", [0.0, 0.7, 1e6])
@pytest.mark.parametrize("ddof", [0, 1])
def test_equal_values_give_exactly_zero(value, ddof):
    for mask in (MASK, np.zeros_like(MASK), np.eye(5, 7, dtype=int)):
        found = jit_whiten(jnp.full((5, 7), value), jnp.asarray(mask), ddof=ddof)
        np.testing.assert_array_equal(found, 0)


def test_masking_equals_dropping():
    """NaN at masked positions, and columns of padding, change nothing."""
    values = jnp.array([[1.0, 2.0, 4.0]])
    padded = jnp.array([[1.0, jnp.nan, 2.0, 4.0, jnp.inf]])
    found = jit_whiten(padded, jnp.array([[1, 0, 1, 1, 0]]))
    expected = jit_whiten(values, jnp.ones((1, 3)))
    np.testing.assert_allclose(found[0, [0, 2, 3]], expected[0], rtol=1e-6)


def test_ddof_is_checked():
    with pytest.raises(ValueError, match="ddof must be 0 or 1, got 2"):
        whiten(jnp.ones((1, 2)), jnp.ones((1, 2)), ddof=2)


def test_reinforce_pp_against_a_loop_over_tokens():
    rewards = random(*MASK.shape)
    returns = np.zeros(MASK.shape)
    for i, t in zip(*np.nonzero(MASK), strict=True):
        later = [s for s in range(t, MASK.shape[1]) if MASK[i, s]]
        returns[i, t] = sum(0.9**n * rewards[i, s] for n, s in enumerate(later))
    with jax.enable_x64(True):
        found = reinforce_pp_advantages(
            jnp.asarray(rewards), jnp.asarray(MASK), gamma=0.9
        )
    np.testing.assert_allclose(found, loop(returns, MASK, 0), atol=1e-12)


def test_reinforce_pp_keeps_the_scale_between_prompts():
    """PG-21: top advantages of 1-of-8 and 4-of-8 prompts stand as .875 to .5.

    GRPO divides each by its own std and leaves 2.6458 to 1.
    """
    rewards = jnp.array([1.0] + [0.0] * 7 + [1.0] * 4 + [0.0] * 4)
    prompt = jnp.repeat(jnp.arange(2), 8)
    found = jit_reinforce_pp_baseline_advantages(rewards, prompt, jnp.ones((16, 3)))
    np.testing.assert_allclose(found[0, 0] / found[8, 0], 0.875 / 0.5, rtol=1e-5)
    grpo = group_advantages(rewards, prompt)
    np.testing.assert_allclose(grpo[0] / grpo[8], 2.64575, rtol=1e-4)


def test_long_completions_weigh_more_in_the_statistics():
    """Rewards 1 (1 token), 0 (3 tokens): mean 1/4, so A = .75/s and -.25/s."""
    mask = jnp.array([[1, 0, 0], [1, 1, 1]])
    rewards = token_rewards(jnp.array([1.0, 0.0]), mask)
    found = reinforce_pp_advantages(rewards, mask)
    std = np.sqrt(0.75 * 0.25)
    expected = [[0.75, 0, 0], [-0.25, -0.25, -0.25]]
    np.testing.assert_allclose(found, np.array(expected) / std, rtol=1e-6)


def test_baseline_form_of_unanimous_groups_is_zero():
    found = jit_reinforce_pp_baseline_advantages(
        jnp.full(4, 0.7), jnp.array([0, 0, 1, 1]), jnp.ones((4, 2))
    )
    np.testing.assert_array_equal(found, 0)


def test_no_gradient_reaches_the_rewards():
    def total(rewards):
        return jnp.sum(reinforce_pp_advantages(rewards, jnp.ones((2, 2))) ** 3)

    gradient = jax.grad(total)(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(gradient, 0)
