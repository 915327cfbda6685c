"""Token and sequence log-ratios: formulas, NaN at padding, GSPO's identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import ratios
from rlvr_jax.core.losses import clipped_loss
from tests.core.batches import assert_transforms_agree, ragged

GSPO = {"epsilon_low": 3e-4, "epsilon_high": 4e-4}


@pytest.mark.usefixtures("x64")
def test_token_and_sequence_log_ratio_are_the_formulas():
    batch = ragged()

    def both(policy, old, mask):
        token = ratios.token_log_ratio(policy, old, mask)
        return token, ratios.sequence_log_ratio(token, mask)

    token, row = assert_transforms_agree(both, batch.policy, batch.old, batch.mask)
    for i, kept in enumerate(batch.mask):
        differences = [
            batch.policy[i, t] - batch.old[i, t] for t in range(7) if kept[t]
        ]
        np.testing.assert_allclose(token[i][kept], differences, atol=1e-14)
        mean = sum(differences) / len(differences) if differences else 0.0
        np.testing.assert_allclose(row[i, 0], mean, atol=1e-14)
    np.testing.assert_array_equal(token[~batch.mask], 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_padding_reaches_neither_values_nor_gradients(bad):
    batch = ragged()
    policy = np.where(batch.mask, batch.policy, bad)
    old = np.where(batch.mask, batch.old, -bad)

    def total(policy, of):
        token = ratios.token_log_ratio(policy, jnp.array(old), jnp.array(batch.mask))
        return of(token, jnp.array(batch.mask)).sum()

    for of in (
        lambda token, mask: token,
        ratios.sequence_log_ratio,
        ratios.sequence_token_log_ratio,
    ):
        value, gradient = jax.value_and_grad(total)(jnp.array(policy), of)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
        np.testing.assert_array_equal(np.asarray(gradient)[~batch.mask], 0.0)


def test_no_gradient_flows_into_the_old_policy():
    batch = ragged()
    gradient = jax.grad(
        lambda old: ratios.token_log_ratio(
            jnp.array(batch.policy), old, jnp.array(batch.mask)
        ).sum()
    )(jnp.array(batch.old))
    np.testing.assert_array_equal(gradient, 0.0)


@pytest.mark.usefixtures("x64")
def test_masks_of_any_type_are_the_same():
    batch = ragged()
    expected = ratios.token_log_ratio(
        jnp.array(batch.policy), jnp.array(batch.old), jnp.array(batch.mask)
    )
    for dtype in (jnp.int32, jnp.float32):
        ours = ratios.token_log_ratio(
            jnp.array(batch.policy), jnp.array(batch.old), jnp.array(batch.mask, dtype)
        )
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.usefixtures("x64")
def test_gspo_ratio_is_the_geometric_mean_and_clips_at_a_thousandth():
    """CLIP-09: log rho = .001 everywhere: s = 1.0010005 > 1.0004, clipped for A > 0."""
    log_ratio = jnp.full((1, 50), 0.001)
    mask = jnp.ones((1, 50))
    s = jnp.exp(ratios.sequence_log_ratio(log_ratio, mask))
    np.testing.assert_allclose(s, [[1.0010005]], atol=1e-9)
    np.testing.assert_allclose(s[0, 0], np.prod(np.exp(log_ratio)) ** (1 / 50))

    def loss(log_ratio, advantage):
        row = ratios.sequence_log_ratio(log_ratio, mask)
        return clipped_loss(row, advantage, **GSPO).sum()

    clipped = jax.grad(loss)(log_ratio, jnp.array([1.0]))
    np.testing.assert_array_equal(clipped, 0.0)
    # Against a negative advantage the same row counts: s A / |o| per token.
    active = jax.grad(loss)(log_ratio, jnp.array([-1.0]))
    np.testing.assert_allclose(active, np.full((1, 50), 1.0010005 / 50), atol=1e-9)


def test_noise_of_products_grows_with_length_and_of_means_falls():
    """CLIP-11: Var(prod rho) = exp(T s^2) - 1 and Var(log s_i) = s^2 / T.

    For log rho ~ N(-s^2/2, s^2) the product has mean 1. 400,000 rows; the standard
    error of the variance of a lognormal product is below 2 % at these sizes.
    """
    rng, s = np.random.default_rng(0), 0.1
    for tokens in (4, 16):
        logs = rng.normal(-(s**2) / 2, s, (400_000, tokens)).astype(np.float32)
        mean = ratios.sequence_log_ratio(jnp.array(logs), jnp.ones(logs.shape))
        np.testing.assert_allclose(np.var(mean), s**2 / tokens, rtol=0.02)
        product = np.exp(logs.sum(-1, dtype=np.float64))
        np.testing.assert_allclose(np.var(product), np.expm1(tokens * s**2), rtol=0.05)


@pytest.mark.usefixtures("x64")
def test_gspo_token_has_the_value_and_gradient_of_gspo():
    """CLIP-12: s_it = sg[s_i] pi/sg[pi]; equal advantages in a row: the same loss."""
    batch = ragged(spread=0.05)
    mask = jnp.array(batch.mask)
    lengths = np.maximum(batch.mask.sum(-1, keepdims=True), 1)

    def loss(policy, per_row):
        token = ratios.token_log_ratio(policy, jnp.array(batch.old), mask)
        if per_row:
            level = ratios.sequence_log_ratio(token, mask)
        else:
            level = ratios.sequence_token_log_ratio(token, mask)
        per_token = clipped_loss(
            level, jnp.array(batch.advantages), epsilon_low=0.02, epsilon_high=0.02
        )
        return (jnp.where(mask, per_token, 0.0) / lengths).sum()

    policy = jnp.array(batch.policy)
    row, token = (jax.value_and_grad(loss)(policy, flag) for flag in (True, False))
    np.testing.assert_allclose(row[0], token[0], rtol=1e-12)
    np.testing.assert_allclose(row[1], token[1], atol=1e-14)
    # Some rows are clipped and some are not, or the test says little.
    moving = np.abs(row[1]).sum(-1) > 0
    assert 0 < moving.sum() < batch.mask.any(-1).sum()


@pytest.mark.usefixtures("x64")
def test_bounded_ratio_and_symmetric_abs():
    x = jnp.array([[-50.0, -1.0, 0.0, 1.0, 50.0]])
    value, gradient = jax.vjp(lambda x: ratios.bounded_ratio(x, 20.0), x)
    expected = np.exp([[-20.0, -1.0, 0.0, 1.0, 20.0]])
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    inside = np.array([[0.0, 1.0, 1.0, 1.0, 0.0]])
    np.testing.assert_allclose(gradient(jnp.ones((1, 5)))[0], expected * inside)
    value, gradient = jax.vjp(ratios.symmetric_abs, x)
    np.testing.assert_array_equal(value, np.abs(x))
    np.testing.assert_array_equal(gradient(jnp.ones((1, 5)))[0], np.sign(x))


@pytest.mark.usefixtures("x64")
def test_the_sign_of_rounding_is_no_gradient():
    """On policy, two programs' log-probs are up to some 1e-7 apart: the gradient of
    their |d| is as small, and of full size from 1e-5 on."""
    x = jnp.array([[-1e-4, -1e-5, -2e-7, 0.0, 1e-7, 1e-5, 1e-4]])
    value, gradient = jax.vjp(ratios.symmetric_abs, x)
    np.testing.assert_array_equal(value, np.abs(x))
    expected = np.array([[-1, -1, -0.02, 0, 0.01, 1, 1]])
    np.testing.assert_allclose(gradient(jnp.ones((1, 7)))[0], expected, rtol=1e-12)
