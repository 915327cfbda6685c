"""Advantages whose policy gradient is that of pass@k, not of pass@1."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.core import groups


def passk_advantages(
    correct: Bool[Array, " B"],
    group_id: Int[Array, " B"],
    *,
    k: int,
    baseline: Literal["mean", "leave_one_out"] = "mean",
    scale: Literal["group", "none"] = "group",
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""Credit of a completion when a set of k is paid 1 if any of it is correct.

    In a group of n completions, w of them wrong, a set of k drawn from the group holds
    a correct one with chance m = 1 - C(w, k) / C(n, k). Averaged over all sets with i:

        q_i = 1                                         i correct
        q_i = 1 - C(w - 1, k - 1) / C(n - 1, k - 1)     i wrong

        A_i = q_i - m                                   baseline="mean"
        A_i = q_i - m of the n - 1 others               baseline="leave_one_out"

    and scale="group" divides by sqrt(m (1 - m)), the std of a set's pay. At k = 1 these
    are GRPO without epsilon and RLOO. For "leave_one_out" with scale="none",

        E[(1/n) sum_i A_i grad log pi(y_i)] = (1/k) grad E[pass@k]

    exactly. Large k moves credit from prompts solved half the time to prompts solved
    rarely: once w < k, no set fails and the group carries no signal.

    Args:
      correct: the verdict on each completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      k: size of the sets. Groups with fewer than k rows (k + 1 for "leave_one_out")
        get 0.
      baseline: see above; "mean" is [1], "leave_one_out" [2].
      scale: see above.
      row_mask: rows that count; others get 0.

    Returns:
      advantages, [B] float32 (float64 under x64), unitless. No gradient flows back.

    Raises:
      ValueError: k < 1, or an unknown `baseline` or `scale`.

    References:
      [1] Pass@k training. https://arxiv.org/abs/2508.10751
      [2] PKPO. https://arxiv.org/abs/2505.15201

    Example:
      >>> correct = jnp.array([True, False, False, False])
      >>> advantages = passk_advantages(correct, jnp.zeros(4, int), k=2, scale="none")
      >>> print([f"{advantage:.3f}" for advantage in advantages])
      ['0.500', '-0.167', '-0.167', '-0.167']
    """
    if k < 1:
        raise ValueError(f"passk_advantages: k must be at least 1, got {k}.")
    if baseline not in ("mean", "leave_one_out") or scale not in ("group", "none"):
        raise ValueError(
            "passk_advantages: baseline must be 'mean' or 'leave_one_out' and scale "
            f"'group' or 'none', got {baseline!r} and {scale!r}."
        )
    dtype = jnp.result_type(float)
    kept = groups.kept_rows(row_mask, correct)
    size = groups.group_count(group_id, kept, dtype)
    wrong = groups.group_sum((~correct).astype(dtype), group_id, kept)
    fails = _all_wrong(wrong, size, k)
    others = wrong - (~correct).astype(dtype)
    with_me = jnp.where(correct, 1, 1 - _all_wrong(wrong - 1, size - 1, k - 1))
    if baseline == "mean":
        advantages = with_me - (1 - fails)
    else:
        advantages = with_me - (1 - _all_wrong(others, size - 1, k))
    if scale == "group":
        spread = jnp.sqrt(fails * (1 - fails))
        no_signal = spread == 0
        scaled = advantages / jnp.where(no_signal, 1, spread)
        advantages = jnp.where(no_signal, 0, scaled)
    needed = k if baseline == "mean" else k + 1
    return jnp.where(~kept | (size < needed), 0, advantages)


def _all_wrong(
    wrong: Float[Array, " B"], size: Float[Array, " B"], k: int
) -> Float[Array, " B"]:
    """C(wrong, k) / C(size, k): a set of k is wrong throughout."""
    drawn = jnp.arange(k, dtype=size.dtype)[:, None]
    chances = jnp.maximum(wrong - drawn, 0) / jnp.maximum(size - drawn, 1)
    return jnp.prod(chances, axis=0)
