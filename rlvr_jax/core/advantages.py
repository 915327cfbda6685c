"""Advantages of whole completions: a reward against its group of completions."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Real

from rlvr_jax.core import groups


def group_advantages(
    rewards: Real[Array, " B"] | Bool[Array, " B"],
    group_id: Int[Array, " B"],
    *,
    baseline: str = "mean",
    scale: str = "group",
    ddof: int = 0,
    epsilon: float = 1e-6,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""Centres rewards within each prompt's group and optionally scales them.

    For row i of a group g with rewards r_1, ..., r_G:

        c_i = r_i - mean_g                          baseline="mean"
        c_i = r_i - mean_{j != i} r_j               baseline="leave_one_out" (RLOO)

        A_i = c_i / (std_g + epsilon)               scale="group"   (GRPO)
        A_i = c_i / (std of all c + epsilon)        scale="batch"   (ScaleRL, Magistral)
        A_i = c_i                                   scale="none"    (Dr. GRPO, RLOO)

    A group whose rewards are all equal carries no signal and gets exactly 0, not the
    rounding error of its mean divided by `epsilon`. So does a group of one row, for
    either baseline: it has nothing to be compared with.

    For normalisation within minibatches (Magistral) call it twice: scale="none" by
    prompt, then scale="group" on the result with the minibatch as `group_id`.

    Args:
      rewards: one scalar per completion, in any unit. The result is unitless when
        scaled, in the unit of `rewards` otherwise. float64 stays float64; integers,
        booleans and shorter floats are widened to float32.
      group_id: equal for rows that are compared; values in 0..B-1, in any order. A row
        with another value gets NaN.
      baseline: what is subtracted. Over the rows of a group, "leave_one_out" is G/(G-1)
        times "mean", and unbiased where "mean" is short by that factor.
      scale: what is divided by. std_g is that of the group's rewards.
      ddof: delta degrees of freedom of the std. 0 is numpy.std and the published
        formula; 1 is what verl and TRL compute.
      epsilon: added to the std, in the unit of `rewards`. verl and NeMo-RL 1e-6, TRL
        1e-4.
      row_mask: rows that count. Others are left out of every statistic and get 0.

    Returns:
      Advantages, [B]. No gradient flows back to `rewards`.

    Raises:
      ValueError: `baseline`, `scale` or `ddof` is unknown.

    References:
      GRPO, DeepSeekMath sec. 4.1. https://arxiv.org/abs/2402.03300
      Dr. GRPO. https://arxiv.org/abs/2503.20783
      RLOO, Back to Basics. https://arxiv.org/abs/2402.14740
      ScaleRL. https://arxiv.org/abs/2510.13786

    Example:
      >>> rewards = jnp.array([1.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1])
      >>> prompt = jnp.array([0, 0, 0, 0, 1, 1, 1, 1])
      >>> print(group_advantages(rewards, prompt, ddof=1).round(2))
      [ 1.5 -0.5 -0.5 -0.5  0.   0.   0.   0. ]
    """
    _check_choices(baseline, scale, ddof)
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    kept = groups.kept_rows(row_mask, rewards)
    centred = centred_rewards(rewards, group_id, baseline=baseline, row_mask=row_mask)
    if scale == "group":
        spread = group_std(rewards, group_id, ddof=ddof, row_mask=row_mask)
    elif scale == "batch":
        spread = _std_of_kept(centred, kept, ddof)
    else:
        return centred
    # Nothing to divide where nothing differs: 0 even at epsilon 0.
    return jnp.where(centred == 0, 0, centred / jnp.where(kept, spread + epsilon, 1))


def centred_rewards(
    rewards: Real[Array, " B"] | Bool[Array, " B"],
    group_id: Int[Array, " B"],
    *,
    baseline: str = "mean",
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    """`group_advantages` with scale="none": r_i - mean_g, or - the mean of the others.

    Args:
      rewards: one scalar per completion.
      group_id: equal for rows that are compared; values in 0..B-1, in any order.
      baseline: "mean" or "leave_one_out".
      row_mask: rows that count.

    Returns:
      Centred rewards, [B]: exactly 0 in groups of equal rewards and on masked rows.
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    kept = groups.kept_rows(row_mask, rewards)
    centred = rewards - groups.group_mean(rewards, group_id, kept)
    if baseline == "leave_one_out":
        count = groups.group_count(group_id, kept, rewards.dtype)
        centred *= count / jnp.maximum(count - 1, 1)
    silent = groups.group_is_constant(rewards, group_id, kept) | ~kept
    return jnp.where(silent, 0, centred)


def group_std(
    rewards: Real[Array, " B"] | Bool[Array, " B"],
    group_id: Int[Array, " B"],
    *,
    ddof: int = 0,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    """The standard deviation of each row's group, written to every row of it.

    Args:
      rewards: one scalar per completion.
      group_id: equal for rows that are compared; values in 0..B-1, in any order.
      ddof: 0 divides the squares by the group's size G, 1 by G - 1.
      row_mask: rows that count.

    Returns:
      Standard deviations, [B], in the unit of `rewards`: exactly 0 for equal rewards,
      also for a group of one row at ddof=1.
    """
    centred = centred_rewards(rewards, group_id, row_mask=row_mask)
    kept = groups.kept_rows(row_mask, rewards)
    count = groups.group_count(group_id, kept, centred.dtype)
    squares = groups.group_sum(centred**2, group_id, kept)
    return jnp.sqrt(squares / jnp.maximum(count - ddof, 1))


def _std_of_kept(
    values: Float[Array, " B"], kept: Bool[Array, " B"], ddof: int
) -> Float[Array, ""]:
    """Standard deviation of the kept values about their mean; 0 where none is kept."""
    count = jnp.sum(kept, dtype=values.dtype)
    mean = jnp.sum(values, where=kept) / jnp.maximum(count, 1)
    squares = jnp.sum((values - mean) ** 2, where=kept)
    return jnp.sqrt(squares / jnp.maximum(count - ddof, 1))


def _check_choices(baseline: str, scale: str, ddof: int) -> None:
    """Raises ValueError for a choice that no formula has."""
    if baseline not in ("mean", "leave_one_out"):
        raise ValueError(
            "group_advantages: baseline must be 'mean' or 'leave_one_out', got "
            f"{baseline!r} (objective.advantage in a config: 'group' or 'rloo')."
        )
    if scale not in ("group", "batch", "none"):
        raise ValueError(
            f"group_advantages: scale must be 'group', 'batch' or 'none', got "
            f"{scale!r} (objective.scale_rewards in a config)."
        )
    if ddof not in (0, 1):
        raise ValueError(
            f"group_advantages: ddof must be 0 or 1, got {ddof!r} (objective.std_ddof "
            "in a config)."
        )
