"""Text that repeats itself."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.core.shapes import TokenMask


def repetition_rate(
    tokens: Int[Array, "B T"], token_mask: TokenMask, *, n: int = 4
) -> Float[Array, " B"]:
    r"""Share of a completion's n-grams that it has said before.

        1 - distinct n-grams / n-grams

    Under the sequence mean a long repetitive answer is punished little per token; this
    is the number to watch beside entropy and length.

    Args:
      tokens: sampled ids.
      token_mask: 1 on tokens that count; an n-gram with a masked token is none.
      n: tokens per n-gram.

    Returns:
      one rate per row, 0 for rows without n-grams; exact, no hashes.

    Raises:
      ValueError: `n` is not in 1..T.

    References:
      seq-rep-n of Welleck et al., 2019. https://arxiv.org/abs/1908.04319

    Example:
      >>> tokens = jnp.array([[1, 2, 1, 2, 1, 2]])
      >>> print(repetition_rate(tokens, jnp.ones((1, 6)), n=2))
      [0.6]
    """
    length = tokens.shape[1]
    if not 1 <= n <= length:
        raise ValueError(f"repetition_rate: n must be in 1..T = 1..{length}, got {n}.")
    count = length - n + 1
    windows = [tokens[:, i : i + count] for i in range(n)]
    mask = token_mask.astype(bool)
    whole = jnp.stack([mask[:, i : i + count] for i in range(n)]).all(0)
    # Sorted with those that do not count last, equal n-grams stand side by side.
    broken, *ordered = jax.lax.sort(
        [~whole, *windows], dimension=1, num_keys=n + 1, is_stable=False
    )
    same = jnp.stack([row[:, 1:] == row[:, :-1] for row in ordered]).all(0)
    repeated = (same & ~broken[:, 1:]).sum(1)
    return repeated / jnp.maximum(whole.sum(1), 1)


def longest_confident_run(
    logprobs: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    probability: float = 0.99,
) -> Int[Array, " B"]:
    r"""Most tokens in a row that the policy was all but certain of.

    A loop makes its own continuation certain. MiniMax-M1 cuts a completion after 3,000
    tokens in a row with p > 0.99: compare the result with 3000.

    Args:
      logprobs: of the sampled tokens, in nats.
      token_mask: 1 on tokens that count; a masked token ends a run.
      probability: a token above it is part of a run.

    Returns:
      tokens of the longest run of each row.

    References:
      MiniMax-M1, sec. 4. https://arxiv.org/abs/2506.13585

    Example:
      >>> logprobs = jnp.log(jnp.array([[1.0, 0.5, 1.0, 1.0, 0.2]]))
      >>> print(longest_confident_run(logprobs, jnp.ones((1, 5))))
      [2]
    """
    certain = token_mask.astype(bool) & (jnp.exp(logprobs) > probability)
    place = jnp.arange(logprobs.shape[1])
    # The last token before each that broke the run; -1 for none.
    broken_at = jax.lax.cummax(jnp.where(certain, -1, place), axis=1)
    return (place - broken_at).max(1)
