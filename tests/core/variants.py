"""One function, three ways to call it: op by op, jitted, vmapped over batches.

Tests that are not about the way of calling jit what they call: for a new shape that is
one small compilation rather than twenty.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

VARIANTS = ("eager", "jit", "vmap")


def run(variant: str, function: Callable, *batches: np.ndarray) -> np.ndarray:
    """`function` on each of N batches (leading axis), in float64; results stacked."""
    with jax.enable_x64(True):
        arrays = [jnp.asarray(batch) for batch in batches]
        if variant == "vmap":
            return np.asarray(jax.jit(jax.vmap(function))(*arrays))
        call = jax.jit(function) if variant == "jit" else function
        return np.stack([np.asarray(call(*one)) for one in zip(*arrays, strict=True)])
