"""Selection without a sort, against NumPy's sort."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import ranking
from tests.core.batches import assert_transforms_agree, ragged


def values_of(dtype):
    """Both signs, both zeros, ties, infinities, and tiny and huge magnitudes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 8)) * 10.0 ** rng.integers(-30, 30, (5, 8))
    values[0] = [-0.0, 0.0, np.inf, -np.inf, 1.5, 1.5, 1.5, -1.5]
    values[3] = [1.5, -0.0, 0.0, 1.5, -np.inf, np.inf, -1.5, 1.5]
    candidates = rng.random((5, 8)) < 0.7
    candidates[[0, 3]] = True
    return values.astype(dtype), candidates


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kth_largest_is_that_of_a_sort(dtype):
    values, candidates = values_of(dtype)
    ordered = np.sort(values[candidates])[::-1]
    for k, expected in enumerate(ordered, start=1):
        found = ranking.kth_largest(
            jnp.array(values), jnp.array(candidates), jnp.array(k)
        )
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("count", [*range(31), 1000])
def test_top_tokens_are_those_of_a_stable_sort(count):
    """ENT-10: the selected set = top-k; ties go to the earlier token."""
    values, candidates = values_of(np.float64)
    found = assert_transforms_agree(
        ranking.top_tokens, values, candidates, np.asarray(count)
    )
    places = np.flatnonzero(candidates)
    order = places[np.argsort(-values.ravel()[places], kind="stable")]
    expected = np.zeros(values.size, bool)
    expected[order[:count]] = True
    np.testing.assert_array_equal(np.asarray(found).ravel(), expected)


def test_float32_without_x64():
    batch = ragged()
    values = jnp.array(batch.policy, jnp.float32)
    chosen = ranking.top_tokens(values, jnp.array(batch.mask), jnp.array(3))
    kept = np.sort(np.asarray(values)[batch.mask])[::-1][:3]
    np.testing.assert_array_equal(np.sort(np.asarray(values)[chosen])[::-1], kept)


def test_values_at_padding_do_not_count():
    values = jnp.array([[1.0, jnp.nan, jnp.inf, 2.0]])
    mask = jnp.array([[1, 0, 0, 1]])
    np.testing.assert_array_equal(ranking.kth_largest(values, mask, jnp.array(1)), 2.0)
    chosen = ranking.top_tokens(values, mask, jnp.array(5))
    np.testing.assert_array_equal(chosen, mask.astype(bool))
