"""Where RL begins: after imitation, or after imitation and comparisons (Olmo 3).

In the world of `toys/priming.py`: a base that hardly searches imitates a writer's
traces (SFT). From there it may also learn from pairs of traces by DPO, the preferred
ones of a writer that searches well and the others of one that hardly does (delta
learning: nobody says which trace is right). The same RL then goes on from each.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rlvr_jax.core.preferences import dpo_loss
from rlvr_jax.toys.priming import Traces, descend, logprobs, sample


@functools.partial(jax.jit, static_argnames=("beta", "count", "steps"))
def preferred(
    keys: Key[Array, " seeds"],
    starts: Float[Array, "seeds 3 4"],
    better: Float[Array, "3 4"],
    worse: Float[Array, "3 4"],
    *,
    beta: float = 0.1,
    count: int = 64,
    steps: int = 10,
) -> Float[Array, "seeds 3 4"]:
    """The starts after DPO on pairs of traces, one of each writer.

    Args:
      keys: consumed; one run each.
      starts: where each begins, and what it is held to.
      better: who wrote the preferred traces.
      worse: who wrote the others.
      beta: of DPO, in reward per nat.
      count: pairs.
      steps: of gradient descent on the mean over all pairs.

    References:
      Olmo 3, sec. 4.3. https://arxiv.org/abs/2512.13961
    """

    def run(key, start):
        chosen_key, rejected_key = jax.random.split(key)
        chosen = sample(chosen_key, better, count)
        rejected = sample(rejected_key, worse, count)

        def loss(logits):
            ratio = lambda traces: _of_trace(logits, traces) - _of_trace(start, traces)
            return dpo_loss(ratio(chosen), ratio(rejected), beta=beta).mean()

        return descend(loss, start, steps)

    return jax.vmap(run)(keys, starts)


def _of_trace(logits: Float[Array, "3 4"], traces: Traces) -> Float[Array, " B"]:
    """Log-prob of each whole trace."""
    return jnp.where(traces.written, logprobs(logits, traces), 0.0).sum(axis=1)
