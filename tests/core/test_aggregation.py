"""Token weights: their sums by hand, NaN at padding, additivity over rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import aggregation

MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]])
GROUP = np.array([0, 0, 1, 1])
# Row lengths 2, 4, 0, 2; group token counts 6 and 2.
WEIGHT_OF_ROW = {
    "sequence_mean": ([1 / 2, 1 / 4, 0, 1 / 2], 3),
    "token_mean": ([1, 1, 0, 1], 8),
    "constant": ([1, 1, 0, 1], 4 * 10),
    "prompt_mean": ([1 / 6, 1 / 6, 0, 1 / 2], 2),
    "sequence_sum": ([1, 1, 0, 1], 3),
    "token_sum": ([1, 1, 0, 1], 1),
}


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_weights_by_hand(mode):
    """AGG-01, AGG-02, AGG-03, AGG-04: each weight and denominator as published."""
    weights, denominator = aggregation.token_weights(
        jnp.array(MASK), jnp.array(GROUP), loss_aggregation=mode, constant_length=10
    )
    rows, count = WEIGHT_OF_ROW[mode]
    np.testing.assert_allclose(weights, MASK * np.array(rows)[:, None], rtol=1e-6)
    assert float(denominator) == count


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_nan_at_padding_touches_neither_value_nor_gradient(mode):
    weights, denominator = aggregation.token_weights(
        jnp.array(MASK), jnp.array(GROUP), loss_aggregation=mode, constant_length=10
    )
    clean = np.where(MASK, np.arange(16.0).reshape(4, 4), 0.0)
    dirty = np.where(MASK, clean, np.nan)

    def loss(x):
        return aggregation.aggregate(x, weights, denominator).value()

    np.testing.assert_allclose(loss(jnp.array(dirty)), loss(jnp.array(clean)))
    gradient = jax.jit(jax.grad(loss))(jnp.array(dirty))
    np.testing.assert_allclose(gradient, weights / denominator, rtol=1e-6)


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_fully_masked_batch_is_zero(mode):
    weights, denominator = aggregation.token_weights(
        jnp.zeros((2, 3)), jnp.array([0, 1]), loss_aggregation=mode, constant_length=10
    )
    value, gradient = jax.value_and_grad(
        lambda x: aggregation.aggregate(x, weights, denominator).value()
    )(jnp.full((2, 3), jnp.nan))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_micro_batches_add_up(mode):
    per_token = jnp.array(np.random.default_rng(0).normal(size=(4, 4)))
    weights, denominator = aggregation.token_weights(
        jnp.array(MASK), jnp.array(GROUP), loss_aggregation=mode, constant_length=10
    )
    whole = aggregation.aggregate(per_token, weights, denominator).value()
    parts = [
        aggregation.aggregate(per_token[i : i + 1], weights[i : i + 1], denominator)
        for i in range(4)
    ]
    np.testing.assert_allclose(
        sum(part.numerator for part in parts) / denominator, whole, rtol=1e-6
    )


def test_errors_name_the_setting():
    mask, group = jnp.ones((1, 2)), jnp.array([0])
    with pytest.raises(ValueError, match=r"objective\.loss_aggregation"):
        aggregation.token_weights(mask, group, loss_aggregation="mean")
    with pytest.raises(ValueError, match="max_completion_tokens"):
        aggregation.token_weights(mask, group, loss_aggregation="constant")
