"""Changes to rewards and masks that depend on length and on how a completion ended."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def soft_overlong_penalty(
    lengths: Int[Array, " B"],
    *,
    max_completion_tokens: int,
    buffer_tokens: int,
    penalty: float = 1.0,
) -> Float[Array, " B"]:
    r"""DAPO's soft overlong punishment: a ramp over the last tokens before the limit.

    With L tokens, limit M = max_completion_tokens and buffer C = buffer_tokens:

        0                             L <= M - C
        -penalty * (L - (M - C)) / C  M - C < L <= M
        -penalty                      L > M

    Args:
      lengths: sampled tokens per completion, the final end token included.
      max_completion_tokens: M, in tokens.
      buffer_tokens: C, in tokens.
      penalty: the size of the largest deduction, in the unit of the reward. DAPO 1.0,
        Magistral 0.1.

    Returns:
      What is added to the rewards, [B] float32, in [-penalty, 0].

    Raises:
      ValueError: `buffer_tokens` is not in 1..max_completion_tokens.

    References:
      DAPO sec. 3.4, eq. 13. https://arxiv.org/abs/2503.14476

    Example:
      >>> lengths = jnp.array([16384, 17408, 18432, 20480, 20481])
      >>> print(
      ...     soft_overlong_penalty(
      ...         lengths, max_completion_tokens=20480, buffer_tokens=4096
      ...     )
      ... )
      [ 0.   -0.25 -0.5  -1.   -1.  ]
    """
    if not 1 <= buffer_tokens <= max_completion_tokens:
        raise ValueError(
            "soft_overlong_penalty: buffer_tokens must be in 1..max_completion_tokens, "
            f"got {buffer_tokens} with max_completion_tokens={max_completion_tokens} "
            "(objective.overlong_buffer_tokens and rollout.max_completion_tokens in a "
            "config; a buffer of 0 switches the penalty off there)."
        )
    over = lengths - (max_completion_tokens - buffer_tokens)
    share = jnp.clip(over, 0, buffer_tokens) / jnp.float32(buffer_tokens)
    # 0 - x rather than -x: no penalty is 0.0, not -0.0.
    return 0 - penalty * share


def overlong_filter(
    token_mask: Bool[Array, "B T"], ended: Bool[Array, " B"]
) -> Bool[Array, "B T"]:
    """Takes completions that were cut at the limit out of the loss.

    Only the mask changes. The reward of a cut completion stays in the statistics of
    its group, as in DAPO's loss: pass `row_mask=ended` to `group_advantages` to leave
    it out there as well.

    Args:
      token_mask: True on tokens in the loss.
      ended: True where the completion closed itself (end token or stop), False where
        it was cut.

    Returns:
      `token_mask`, all False on rows that did not end, [B, T].

    References:
      DAPO sec. 3.4, "overlong filtering". https://arxiv.org/abs/2503.14476
    """
    return token_mask & ended[:, None]
