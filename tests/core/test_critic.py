"""The critic's loss and its diagnostics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from rlvr_jax.core.critic import (
    bootstrapped_rewards,
    explained_variance,
    explained_variance_by_progress,
    value_bias_by_progress,
    value_clip_fraction,
    value_loss,
)
from rlvr_jax.core.gae import gae
from rlvr_jax.core.returns import token_rewards
from tests.core.test_returns import MASK, random
from tests.core.variants import VARIANTS, run


def test_a_cut_completion_is_paid_what_the_critic_expected():
    """CLIP-22: eq. 3 of Step 3.5 Flash, as a loop; with gamma = lambda = 1 the last
    token of a cut completion has advantage 0."""
    rewards, values, mask = (
        jnp.asarray(x) for x in (random(5), random(5, 6), MASK[:5, :6])
    )
    ended = jnp.array([True, False, False, True, False])
    found = bootstrapped_rewards(rewards, values, mask, ended)
    advantages = gae(token_rewards(found, mask), values, mask, gamma=1.0, lam=1.0)
    for row in range(5):
        kept = np.flatnonzero(mask[row])
        expected = rewards[row]
        if not ended[row] and len(kept):
            expected = values[row, kept[-1]]
        np.testing.assert_allclose(found[row], expected)
        if not ended[row] and len(kept):
            np.testing.assert_allclose(advantages[row, kept[-1]], 0, atol=1e-12)


def loop(values, old, targets, clip):
    found = np.zeros(values.shape)
    for at in np.ndindex(values.shape):
        error = (values[at] - targets[at]) ** 2
        if clip is not None:
            held = min(max(values[at], old[at] - clip), old[at] + clip)
            error = max(error, (held - targets[at]) ** 2)
        found[at] = error / 2
    return found


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("clip", [None, 0.2])
def test_loss_equals_the_loop(variant, clip):
    values, old, targets = random(2, 3, 4), random(2, 4, 3), random(2, 2, 6)
    arrays = [values, old.reshape(2, 3, 4), targets.reshape(2, 3, 4)]
    found = run(variant, lambda *x: value_loss(*x, clip=clip), *arrays)
    expected = [loop(*one, clip) for one in zip(*arrays, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_gradient_is_zero_where_the_value_has_moved_enough():
    """V from 0 to .5 towards 1 with clip .2: held at .2, no gradient. Back: V - R."""
    values, old = jnp.array([[0.5, 0.1, -0.5]]), jnp.zeros((1, 3))
    targets = jnp.ones((1, 3))

    def loss(values):
        return value_loss(values, old, targets, clip=0.2).sum()

    np.testing.assert_allclose(jax.grad(loss)(values), [[0, -0.9, -1.5]], rtol=1e-6)
    # Away from the kinks, also against finite differences.
    with jax.enable_x64(True):
        doubles = [jnp.asarray(x, jnp.float64) for x in (values, old, targets)]
        check_grads(
            lambda v: value_loss(jnp.asarray(v), *doubles[1:], clip=0.2).sum(),
            (doubles[0],),
            order=1,
        )


def test_only_the_trained_values_have_a_gradient():
    def loss(old, targets):
        return value_loss(jnp.ones((1, 1)), old, targets, clip=0.2).sum()

    gradients = jax.grad(loss, argnums=(0, 1))(jnp.ones((1, 1)), jnp.zeros((1, 1)))
    assert [float(g[0, 0]) for g in gradients] == [0, 0]


def test_clip_fraction_counts_kept_tokens():
    """Of four kept tokens one has moved more than .2 towards its target."""
    values = jnp.array([[0.5, 0.1, -0.5, 0.2, 0.9]])
    mask = jnp.array([[1, 1, 1, 1, 0]])
    found = value_clip_fraction(
        values, jnp.zeros((1, 5)), jnp.ones((1, 5)), mask, clip=0.2
    )
    assert (float(found.numerator), float(found.denominator)) == (1, 4)


def test_explained_variance_of_known_critics():
    """Perfect 1, constant 0, inverted 1 - 4 = -3; a constant bias does not show."""
    returns = jnp.asarray(random(*MASK.shape), jnp.float32)
    mask = jnp.asarray(MASK)
    for values, expected in (
        (returns, 1),
        (jnp.full_like(returns, 7.0), 0),
        (-returns, -3),
        (returns + 3, 1),
    ):
        found = explained_variance(values, returns, mask)
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_explained_variance_equals_the_formula(variant):
    values, returns = random(2, *MASK.shape), random(*MASK.shape, 2).transpose(2, 0, 1)
    kept = MASK > 0
    found = run(
        variant,
        lambda v, r: explained_variance(v, r, jnp.asarray(MASK)),
        values,
        returns,
    )
    expected = [
        1 - np.var((r - v)[kept]) / np.var(r[kept])
        for v, r in zip(values, returns, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_explained_variance_ignores_what_is_masked():
    values, returns = jnp.asarray(random(5, 7)), jnp.asarray(random(7, 5).T)
    mask = jnp.asarray(MASK)
    spoiled = [jnp.where(mask, x, jnp.nan) for x in (values, returns)]
    np.testing.assert_array_equal(
        explained_variance(*spoiled, mask), explained_variance(values, returns, mask)
    )


@pytest.mark.parametrize("mask", [np.ones((2, 2)), np.zeros((2, 2))])
def test_nothing_to_explain_is_zero(mask):
    found = explained_variance(jnp.ones((2, 2)), jnp.ones((2, 2)), jnp.asarray(mask))
    assert float(found) == 0


def test_a_critic_can_know_only_after_the_decisive_step():
    """PG-28: the outcome is a coin thrown at token 5 of 10; V = E[R | prefix].

    Before it the true V is 1/2 and explains nothing; from it on V = R explains all.
    """
    outcome = jnp.array([1.0, 0.0, 1.0, 0.0])
    returns = jnp.broadcast_to(outcome[:, None], (4, 10))
    values = jnp.where(jnp.arange(10) < 5, 0.5, returns)
    found = explained_variance_by_progress(values, returns, jnp.ones((4, 10)), bins=5)
    # Bin 2 holds tokens 4 (V = 1/2) and 5 (V = R): half of the variance 1/4 is left.
    np.testing.assert_allclose(found, [0, 0, 0.5, 1, 1], atol=1e-6)


def test_progress_counts_kept_tokens_of_each_row():
    """Rows of 2 and 4 tokens, one with a hole: halves of each, not columns."""
    mask = jnp.array([[1, 0, 1, 0, 0], [1, 1, 1, 1, 0]])
    returns = jnp.array([[0.0, 9, 1, 9, 9], [2, 4, 3, 7, 9]])
    values = jnp.array([[0.0, 5, 0, 5, 5], [2, 4, 0, 0, 5]])
    found = explained_variance_by_progress(values, returns, mask, bins=2)
    # First halves {0, 2, 4} are predicted exactly, second ones {1, 3, 7} not at all.
    np.testing.assert_allclose(found, [1, 0], atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_bias_by_progress_equals_the_loop(variant):
    """OBJ-04: mean V - R of the tokens in each third of their completions."""
    values, returns = random(2, *MASK.shape), random(*MASK.shape, 2).transpose(2, 0, 1)
    found = run(
        variant,
        lambda v, r: value_bias_by_progress(v, r, jnp.asarray(MASK), bins=3),
        values,
        returns,
    )
    for n, (v, r) in enumerate(zip(values, returns, strict=True)):
        parts = [[], [], []]
        for i, row in enumerate(MASK):
            places = np.flatnonzero(row)
            for k, t in enumerate(places):
                parts[3 * k // len(places)].append(v[i, t] - r[i, t])
        np.testing.assert_allclose(found[n], [np.mean(p) for p in parts], rtol=1e-10)


def test_values_that_rise_raise_the_advantages_of_early_tokens():
    """OBJ-04, F-10 of VC-PPO: V right at the end and too low before, as of a critic
    that starts from a reward model. All completions of one question are paid alike, so
    that a true critic gives every token A = 0; this one pays early tokens, at lambda
    0.95, for nothing, and explained variance does not see it."""
    mask, outcome = jnp.ones((4, 40)), jnp.full((4,), 0.5)
    rewards = token_rewards(outcome, mask)
    returns = jnp.full((4, 40), 0.5)
    rising = jnp.broadcast_to(0.5 * jnp.arange(40) / 39, (4, 40))
    np.testing.assert_allclose(
        gae(rewards, returns, mask, lam=0.95), jnp.zeros((4, 40)), atol=1e-6
    )
    advantages = gae(rewards, rising, mask, lam=0.95)
    # Each of the 39 steps adds 0.5 / 39; at the end V is right.
    steps = 0.5 / 39 * (1 - 0.95 ** np.arange(39, -1, -1)) / 0.05
    np.testing.assert_allclose(advantages[0], steps, rtol=1e-4, atol=1e-6)
    bias = value_bias_by_progress(rising, returns, mask, bins=4)
    assert bool(jnp.all(jnp.diff(bias) > 0.1))
    assert float(bias[-1]) < 0
