"""What the verdicts of a batch say: pass rates of groups, lengths, truncation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from rlvr_jax.types import Ratio


def pass_rate_histogram(
    correct: Bool[Array, " B"], group_id: Int[Array, " B"], *, num_generations: int
) -> Int[Array, " K"]:
    r"""How many groups have k correct completions, k = 0..G.

    Mass at both ends is what dynamic sampling or other problems should move.

    Args:
      correct: the verifier's verdict on each row.
      group_id: the group (prompt) of each row, values in 0..B-1.
      num_generations: G; a larger group counts at G.

    Returns:
      counts, [G + 1].

    Example:
      >>> correct = jnp.array([True, True, False, False])
      >>> group_id = jnp.array([0, 0, 1, 1])
      >>> print(pass_rate_histogram(correct, group_id, num_generations=2))
      [1 0 1]
    """
    rows = correct.shape[0]
    add = lambda values: jax.ops.segment_sum(values, group_id, num_segments=rows)
    members, solved = add(jnp.ones(rows, int)), add(correct.astype(int))
    solved = jnp.minimum(solved, num_generations)
    counts = jnp.zeros(num_generations + 1, int)
    return counts.at[solved].add((members > 0).astype(int))


def length_statistics(
    lengths: Int[Array, " B"], ended: Bool[Array, " B"], correct: Bool[Array, " B"]
) -> dict[str, Ratio]:
    r"""Length of completions, by outcome, and how many were cut at the limit.

    Args:
      lengths: tokens of each completion.
      ended: the completion closed itself; False where it was cut.
      correct: the verifier's verdict on each row.

    Returns:
      "mean", "correct", "wrong" in tokens per completion; "truncated", a share of
      completions.

    Example:
      >>> lengths, ended = jnp.array([4, 8]), jnp.array([True, False])
      >>> found = length_statistics(lengths, ended, jnp.array([True, False]))
      >>> print(found["wrong"].value(), found["truncated"].value())
      8.0 0.5
    """
    tokens = lengths.astype(float)

    def mean(values, kept):
        return Ratio(
            jnp.where(kept, values, 0.0).sum(), kept.sum().astype(tokens.dtype)
        )

    every = jnp.ones_like(ended)
    return {
        "mean": mean(tokens, every),
        "correct": mean(tokens, correct),
        "wrong": mean(tokens, ~correct),
        "truncated": mean((~ended).astype(tokens.dtype), every),
    }
