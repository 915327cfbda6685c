"""Clipped and REINFORCE losses against float64 NumPy, and where gradients vanish."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import losses


def clip_reference(log_ratio, advantages, low, high):
    ratio = np.exp(log_ratio)
    return -np.minimum(
        ratio * advantages, np.clip(ratio, 1 - low, 1 + high) * advantages
    )


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("low_high", [(0.2, 0.2), (0.2, 0.28), (3e-4, 4e-4)])
def test_clipped_loss_is_the_formula(transform, low_high):
    low, high = low_high
    rng = np.random.default_rng(1)
    log_ratio, advantages = rng.normal(0, 0.3, (6, 5)), rng.normal(size=(6, 5))
    ours = transform(
        lambda x, a: losses.clipped_loss(x, a, epsilon_low=low, epsilon_high=high)
    )(jnp.array(log_ratio, jnp.float32), jnp.array(advantages, jnp.float32))
    expected = clip_reference(log_ratio, advantages, low, high)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_gradient_weight_is_the_ratio_or_zero():
    """CLIP-01, CLIP-02: d(-loss)/d log pi = r A, or 0 past the bound."""
    # ratio, advantage, epsilon_high -> weight on A grad log pi
    cases = [
        (0.5, 1.0, 0.2, 0.5),
        (2.0, -1.0, 0.2, 2.0),
        (1.25, 1.0, 0.2, 0.0),
        (1.25, 1.0, 0.28, 1.25),
        (0.75, -1.0, 0.2, 0.0),
        (0.85, -1.0, 0.2, 0.85),
        (1.1, 0.0, 0.2, 1.1),
    ]
    for ratio, advantage, high, weight in cases:
        gradient = jax.grad(
            lambda x, a=advantage, h=high: losses.clipped_loss(
                x, jnp.array([a]), epsilon_low=0.2, epsilon_high=h
            ).sum()
        )(jnp.log(jnp.array([[ratio]])))
        np.testing.assert_allclose(-gradient, [[weight * advantage]], rtol=1e-6)


def test_overflowing_ratio_keeps_value_and_gradient_finite():
    log_ratio = jnp.array([[1e4, -1e4, 200.0]])
    for advantage in (1.0, -1.0, 0.0):
        value, gradient = jax.value_and_grad(
            lambda x, a=advantage: losses.clipped_loss(
                x, jnp.array([a]), epsilon_low=0.2, epsilon_high=0.2
            ).sum()
        )(log_ratio)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_reinforce_gradient_is_minus_the_advantage():
    gradient = jax.grad(
        lambda x: losses.reinforce_loss(x, jnp.array([2.0, -1.0])).sum()
    )(jnp.zeros((2, 3)))
    np.testing.assert_allclose(gradient, [[-2.0] * 3, [1.0] * 3])
