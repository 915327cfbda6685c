"""Ragged batches for tests of `core`, and the check that transforms change nothing."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Batch(NamedTuple):
    """B rows of T tokens; the last row is empty, the one before has a single token."""

    policy: np.ndarray
    old: np.ndarray
    reference: np.ndarray
    rollout: np.ndarray
    advantages: np.ndarray
    mask: np.ndarray
    group_id: np.ndarray


def ragged(seed: int = 0, rows: int = 6, tokens: int = 7, spread: float = 0.3) -> Batch:
    """Log-probs that differ by about `spread`; holes in the mask as in tool use."""
    rng = np.random.default_rng(seed)
    policy = -rng.exponential(1.0, (rows, tokens))
    near = lambda: np.minimum(policy + rng.normal(0, spread, policy.shape), -1e-3)
    lengths = rng.integers(2, tokens + 1, rows)
    lengths[-2:] = (1, 0)
    mask = np.arange(tokens) < lengths[:, None]
    mask[0, 1] = False
    return Batch(
        policy,
        near(),
        near(),
        near(),
        rng.normal(size=rows),
        mask,
        np.arange(rows) // 2,
    )


def assert_transforms_agree(function: Any, *arrays: Any, atol: float = 1e-12) -> Any:
    """function(*arrays) eagerly, under jit and under vmap; returns the eager result."""
    arrays = tuple(jnp.asarray(array) for array in arrays)
    eager = function(*arrays)
    batched = tuple(jnp.stack([array, array]) for array in arrays)
    for other in (
        jax.jit(function)(*arrays),
        jax.tree.map(lambda x: x[1], jax.vmap(function)(*batched)),
    ):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=atol),
            eager,
            other,
        )
    return eager
