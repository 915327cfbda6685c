"""What a baseline from a group costs in waiting, against a critic that needs one row.

A completion takes as long as it is. A group's advantages are known when its slowest
completion is; a critic can use each completion as it ends.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Wait(NamedTuple):
    """In units of the mean completion; arrays [seeds]."""

    ready: Float[Array, " seeds"]
    """Mean time until an advantage is known."""
    idle: Float[Array, " seeds"]
    """Share of the time in which a slot that finished waits for its group."""
    stale: Float[Array, " seeds"]
    """Updates of others between the end of a completion and its use."""


@functools.partial(
    jax.jit, static_argnames=("prompts", "group", "spread", "update_rate")
)
def wait(
    keys: Key[Array, " seeds"],
    *,
    prompts: int,
    group: int,
    spread: float | None = None,
    update_rate: float = 1.0,
) -> Wait:
    """Simulated waits, one run per key (consumed).

    Args:
      keys: one run each.
      prompts: groups per run.
      group: completions per prompt; 1 is the critic's.
      spread: of log length (log-normal lengths); None for exponential lengths, where a
        group's slowest takes the harmonic number H_G: 3.3807 for 16.
      update_rate: how often an asynchronous trainer updates, per mean
        completion.

    Returns:
      `Wait`.
    """

    def run(key):
        shape = (prompts, group)
        if spread is None:
            lengths = jax.random.exponential(key, shape)
        else:
            scale = jnp.exp(-(spread**2) / 2)
            lengths = scale * jnp.exp(spread * jax.random.normal(key, shape))
        slowest = lengths.max(1, keepdims=True)
        unused = (slowest - lengths).mean()
        return Wait(slowest.mean(), unused / slowest.mean(), update_rate * unused)

    return jax.vmap(run)(keys)
