"""Verifiers as host callbacks inside jitted programs."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array, Float, Int

from rlvr_jax.types import Rollouts

HostScore = Callable[
    [np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
]
"""(problem indices [P], tokens [P, G, T], lengths [P, G], ended [P, G]) -> (rewards,
correct), both float32 [P, G]. It runs on the host and may take its time."""


def verify_in_program(
    score: HostScore, indices: Int[Array, " P"], rollouts: Rollouts
) -> tuple[Float[Array, "P G"], Float[Array, "P G"]]:
    """Calls `score` from within a jitted program, once each time the program runs.

    An exception in `score` ends the program as a JaxRuntimeError that carries its text.
    No gradient flows through.

    Example:
      >>> def longest(indices, tokens, lengths, ended):
      ...     paid = (lengths == lengths.max()).astype(np.float32)
      ...     return paid, paid
      >>> program = jax.jit(lambda i, r: verify_in_program(longest, i, r))
    """
    shape = rollouts.completion_lengths.shape
    result = jax.ShapeDtypeStruct(shape, jnp.float32)

    def on_host(*arrays):
        rewards, correct = score(*(np.asarray(array) for array in arrays))
        return np.asarray(rewards, np.float32), np.asarray(correct, np.float32)

    return io_callback(
        on_host,
        (result, result),
        indices,
        rollouts.completion_tokens,
        rollouts.completion_lengths,
        rollouts.ended,
    )
