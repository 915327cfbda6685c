"""What the verdicts of a batch say: pass rates of groups, lengths, truncation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Real

from rlvr_jax.core import groups
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


def group_wait(lengths: Real[Array, " B"], group_id: Int[Array, " B"]) -> Ratio:
    r"""How many mean lengths a group waits for its slowest completion.

        sum over groups of max_i len_i / sum over groups of mean_i len_i

    What a baseline from the group costs where samples are drawn in lockstep; a critic
    needs one completion per prompt and waits for nobody. With exponential lengths it is
    the harmonic number H_G (3.38 for G = 16).

    Args:
      lengths: tokens, or seconds, of each completion.
      group_id: the group (prompt) of each row, values in 0..B-1.

    Returns:
      the Ratio, at least 1.

    Example:
      >>> lengths, group_id = jnp.array([1, 3, 2, 2]), jnp.array([0, 0, 1, 1])
      >>> print(group_wait(lengths, group_id).value())
      1.25
    """
    lengths = groups.widened(lengths)
    kept = jnp.ones(lengths.shape, bool)
    slowest = groups.group_max(lengths, group_id, kept)
    # Every row counts 1/G of its group, so that groups count once.
    share = 1 / groups.group_count(group_id, kept, lengths.dtype)
    return Ratio((slowest * share).sum(), (lengths * share).sum())
