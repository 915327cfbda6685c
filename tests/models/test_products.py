"""The product's gradient against that of JAX's own rule, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.models.products import product


@pytest.mark.parametrize("rows", [(5,), (2, 3), (2, 1, 3, 4)])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.checkpoint])
def test_value_and_gradient_are_those_of_the_matrix_product(rows, transform):
    with jax.enable_x64(True):
        draws = np.random.default_rng(0)
        inputs = jnp.asarray(draws.normal(size=(*rows, 6)))
        weights = jnp.asarray(draws.normal(size=(6, 7)))
        ours, plain = transform(product), lambda x, w: x @ w
        cotangent = jnp.asarray(draws.normal(size=(*rows, 7)))
        value, pull = jax.vjp(ours, inputs, weights)
        expected, expected_pull = jax.vjp(plain, inputs, weights)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        pairs = zip(pull(cotangent), expected_pull(cotangent), strict=True)
        for found, wanted in pairs:
            assert found.dtype == wanted.dtype == jnp.float64
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_gradients_have_the_types_of_what_they_belong_to():
    inputs, weights = jnp.ones((2, 3), jnp.bfloat16), jnp.ones((3, 4), jnp.bfloat16)
    loss = lambda x, w: product(x, w).astype(jnp.float32).sum()
    for found in jax.grad(loss, argnums=(0, 1))(inputs, weights):
        assert found.dtype == jnp.bfloat16


def test_a_batch_of_weights():
    """As under `vmap` over policies."""
    draws = np.random.default_rng(1)
    inputs = jnp.asarray(draws.normal(size=(3, 5, 6)), jnp.float32)
    weights = jnp.asarray(draws.normal(size=(3, 6, 7)), jnp.float32)
    loss = lambda x, w: (product(x, w) ** 2).sum()
    found = jax.vmap(jax.grad(loss, argnums=1))(inputs, weights)
    for index in range(3):
        expected = jax.grad(lambda w, at=index: ((inputs[at] @ w) ** 2).sum())
        wanted = expected(weights[index])
        np.testing.assert_allclose(found[index], wanted, rtol=1e-5, atol=1e-5)
