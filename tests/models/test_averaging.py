"""Averages of weights, leaf by leaf."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.models.averaging import averaged
from tests import tiny


def test_the_average_of_weights_is_exact():
    """REC-11, TT-28: a long and a short model: every leaf is the mean of NumPy; with
    weights 3 : 1 the weighted one; an average with itself is the model."""
    one, two = (tiny.policy(seed)[1] for seed in (0, 1))
    leaves = [[np.asarray(x) for x in jax.tree.leaves(model)] for model in (one, two)]
    for weights, share in ((None, 0.5), ([3.0, 1.0], 0.75)):
        found = jax.tree.leaves(averaged([one, two], weights))
        for mean, a, b in zip(found, *leaves, strict=True):
            np.testing.assert_allclose(mean, share * a + (1 - share) * b, atol=1e-7)
    same = averaged([one, one])
    assert tiny.largest_difference(same, one) == 0
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), one)
    assert jax.tree.leaves(averaged([half, half]))[0].dtype == jnp.bfloat16


def test_what_cannot_be_averaged():
    one = tiny.policy()[1]
    with pytest.raises(ValueError, match="a weight for each"):
        averaged([one], [1.0, 2.0])
    with pytest.raises(ValueError, match="a weight for each"):
        averaged([])
    with pytest.raises(ValueError, match="different architectures"):
        averaged([one, tiny.policy(num_layers=1)[1]])
