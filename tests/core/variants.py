"""One function, three ways to call it: op by op, jitted, and vmapped over batches."""

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
            return np.asarray(jax.vmap(function)(*arrays))
        call = jax.jit(function) if variant == "jit" else function
        return np.stack([np.asarray(call(*one)) for one in zip(*arrays, strict=True)])
