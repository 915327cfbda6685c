"""Rewards from verdicts, lengths and endings; masks for what was cut."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Real

from rlvr_jax.core import groups
from rlvr_jax.core.shapes import TokenMask


def verdict_rewards(
    correct: Bool[Array, " B"], *, right: float = 1.0, wrong: float = 0.0
) -> Float[Array, " B"]:
    """The verifiable reward: `right` where the verifier agrees, else `wrong`.

    Tulu 3 pays 10 and 0, DAPO 1 and -1. Under advantages scaled by the group's std the
    choice does not matter; under centred ones it is a factor on the learning rate, and
    beside a KL term or other rewards it sets their relative weight.

    Args:
      correct: the verdict on each completion.
      right: reward of a correct completion.
      wrong: reward of any other.

    Returns:
      rewards, [B] float32.

    References:
      Tulu 3, sec. 6. https://arxiv.org/abs/2411.15124
      DAPO, sec. 2.4. https://arxiv.org/abs/2503.14476

    Example:
      >>> print(verdict_rewards(jnp.array([True, False]), wrong=-1.0))
      [ 1. -1.]
    """
    return jnp.where(correct, jnp.float32(right), jnp.float32(wrong))


def unfinished_rewards(
    rewards: Real[Array, " B"],
    ended: Bool[Array, " B"],
    *,
    reward: float | Float[Array, " B"] = -10.0,
) -> Float[Array, " B"]:
    """Replaces the reward of completions that did not end, whatever their answer.

    Args:
      rewards: one per completion.
      ended: True where the completion closed itself, False where it was cut.
      reward: of a completion that was cut; one number or one per row. Tulu 3 -10.

    Returns:
      rewards, [B].

    References:
      Tulu 3, sec. 6. https://arxiv.org/abs/2411.15124

    Example:
      >>> rewards = verdict_rewards(jnp.array([True, False, True]), right=10.0)
      >>> print(unfinished_rewards(rewards, jnp.array([True, True, False])))
      [ 10.   0. -10.]
    """
    return jnp.where(ended, groups.widened(rewards), reward)


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
      what is added to the rewards, [B], in [-penalty, 0].

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
    share = jnp.clip(over, 0, buffer_tokens) / buffer_tokens
    # 0 - x rather than -x: no penalty is 0.0, not -0.0.
    return 0 - penalty * share


def overlong_filter(token_mask: TokenMask, ended: Bool[Array, " B"]) -> TokenMask:
    """Takes completions that were cut at the limit out of the loss.

    Only the mask changes. The reward of a cut completion stays in the statistics of
    its group, as in DAPO's loss: pass `row_mask=ended` to `group_advantages` to leave
    it out there as well.

    Args:
      token_mask: 1 on tokens of the loss.
      ended: True where the completion closed itself (end token or stop), False where
        it was cut.

    Returns:
      `token_mask`, all 0 on rows that did not end, [B, T].

    References:
      DAPO sec. 3.4, "overlong filtering". https://arxiv.org/abs/2503.14476
    """
    return jnp.where(ended[:, None], token_mask, jnp.zeros_like(token_mask))


def magistral_rewards(
    correct: Bool[Array, " B"],
    well_formatted: Bool[Array, " B"],
    *,
    same_language: Bool[Array, " B"] | None = None,
    length_penalty: Float[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""Magistral: format opens the gate, then correctness, length and language add up.

        0                                                    format fails
        0.1 + 0.9 [correct] + length + 0.1 [same language]    otherwise

    Args:
      correct: the verdict on each completion.
      well_formatted: the format check passed.
      same_language: question, thoughts and answer are in one language; None adds 0.
      length_penalty: in [-0.1, 0], from `soft_overlong_penalty(penalty=0.1)`; None adds
        0.

    Returns:
      rewards, [B] float32, in [0, 1.1].

    References:
      Magistral, sec. 2.2. https://arxiv.org/abs/2506.10910

    Example:
      >>> right = jnp.array([True, False, True])
      >>> formatted = jnp.array([True, True, False])
      >>> print(magistral_rewards(right, formatted, same_language=formatted))
      [1.1 0.2 0. ]
    """
    # Each sum rounded once, so that 1.1 is the float nearest to 1.1.
    reward = jnp.where(correct, jnp.float32(1.0), jnp.float32(0.1))
    if same_language is not None:
        with_language = jnp.where(correct, jnp.float32(1.1), jnp.float32(0.2))
        reward = jnp.where(same_language, with_language, reward)
    if length_penalty is not None:
        reward = reward + length_penalty
    return jnp.where(well_formatted, reward, 0)


def kimi_length_rewards(
    lengths: Int[Array, " B"],
    correct: Bool[Array, " B"],
    group_id: Int[Array, " B"],
    *,
    weight: float = 1.0,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""Kimi k1.5: short completions of a group gain, long ones lose.

        lambda_i = 1/2 - (len_i - min) / (max - min)      over the group
        weight * lambda_i                                 correct
        weight * min(lambda_i, 0)                         wrong

    A wrong answer is never paid for being short. All 0 where lengths are equal.

    Args:
      lengths: sampled tokens per completion.
      correct: the verdict on each completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      weight: of the term, in the unit of the reward. Unpublished; Kimi trains without
        it (0) first.
      row_mask: rows that count; others get 0.

    Returns:
      what is added to the rewards, [B] float32, in weight * [-1/2, 1/2].

    References:
      Kimi k1.5, sec. 2.3.3. https://arxiv.org/abs/2501.12599

    Example:
      >>> lengths, right = jnp.array([100, 200, 300]), jnp.array([True, True, False])
      >>> print(kimi_length_rewards(lengths, right, jnp.array([0, 0, 0])))
      [ 0.5  0.  -0.5]
    """
    length = groups.widened(lengths)
    kept = groups.kept_rows(row_mask, lengths)
    shortest = -groups.group_max(-length, group_id, kept)
    spread = groups.group_max(length, group_id, kept) - shortest
    varies = kept & (spread != 0)
    share = (length - shortest) / jnp.where(varies, spread, 1)
    term = jnp.where(varies, 0.5 - share, 0)
    return weight * jnp.where(correct, term, jnp.minimum(term, 0))
