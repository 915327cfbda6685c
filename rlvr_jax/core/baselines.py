"""Advantages against a baseline other than the plain group mean."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Real, Shaped

from rlvr_jax.core import groups
from rlvr_jax.core.advantages import centred_rewards

Rewards = Real[Array, " B"] | Bool[Array, " B"]


def weighted_mean_advantages(
    rewards: Rewards,
    group_id: Int[Array, " B"],
    weights: Real[Array, " B"],
    *,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""Rewards less the weighted mean of their group.

        A_i = r_i - sum_j w_j r_j / sum_j w_j

    With w the completion lengths this is OPO; with w the squared gradient norms it is
    the constant baseline of least variance, b* = E[|g|^2 r] / E[|g|^2], of which
    lengths are the cheap stand-in. Unlike the plain mean it does not leave advantages
    that sum to 0.

    Args:
      rewards: one per completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      weights: w, at least 0, in any unit.
      row_mask: rows that count; others get 0.

    Returns:
      advantages, [B], in the unit of `rewards`; exactly 0 in groups of equal rewards,
      groups of one row and groups without weight. No gradient flows back.

    References:
      OPO. https://arxiv.org/abs/2505.23585

    Example:
      >>> rewards, lengths = jnp.array([1.0, 0.0]), jnp.array([10, 30])
      >>> print(weighted_mean_advantages(rewards, jnp.array([0, 0]), lengths))
      [ 0.75 -0.25]
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    weights = jax.lax.stop_gradient(weights).astype(rewards.dtype)
    kept = groups.kept_rows(row_mask, rewards)
    total = groups.group_sum(weights, group_id, kept)
    weighted = groups.group_sum(weights * rewards, group_id, kept)
    silent = groups.group_is_constant(rewards, group_id, kept) | ~kept | (total == 0)
    return jnp.where(silent, 0, rewards - weighted / jnp.where(total == 0, 1, total))


def gpg_advantages(
    rewards: Rewards,
    group_id: Int[Array, " B"],
    *,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""GPG: centred rewards, scaled up for the rows that have no gradient.

        A_i = B / (B - M) * (r_i - mean_g)

    with M the rows in groups of equal rewards. Without the factor, a batch with many
    unanimous groups makes a smaller step than one with few.

    Args:
      rewards: one per completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      row_mask: rows that count in B and M; others get 0.

    Returns:
      advantages, [B], in the unit of `rewards`; all 0 if every group is unanimous. No
      gradient flows back.

    References:
      GPG. https://arxiv.org/abs/2504.02546

    Example:
      >>> rewards = jnp.array([1.0, 0.0, 1.0, 1.0])
      >>> print(gpg_advantages(rewards, jnp.array([0, 0, 1, 1])))
      [ 1. -1.  0.  0.]
    """
    centred = centred_rewards(rewards, group_id, row_mask=row_mask)
    kept = groups.kept_rows(row_mask, centred)
    silent = groups.group_is_constant(groups.widened(rewards), group_id, kept)
    live = jnp.sum(kept & ~silent, dtype=centred.dtype)
    return centred * jnp.sum(kept, dtype=centred.dtype) / jnp.maximum(live, 1)


def best_of_group_advantages(
    rewards: Rewards,
    group_id: Int[Array, " B"],
    *,
    row_mask: Bool[Array, " B"] | None = None,
) -> Float[Array, " B"]:
    r"""Only the best completion of a group learns, from its lead over the second.

        A_i = r_max - r_second   for the one row with the largest reward, else 0

    what the group's maximum gained from having that completion. A tie at the top gives
    0 for all. Divide by `advantages.group_std` for verl's normalised form.

    Args:
      rewards: one per completion.
      group_id: equal for rows that are compared; values in 0..B-1.
      row_mask: rows that count; others get 0.

    Returns:
      advantages, [B], at least 0, in the unit of `rewards`; 0 in groups of one row. No
      gradient flows back.

    References:
      verl's GRPO_PASSK. https://arxiv.org/abs/2503.19595

    Example:
      >>> rewards = jnp.array([0.25, 1.0, 0.5])
      >>> print(best_of_group_advantages(rewards, jnp.array([0, 0, 0])))
      [0.  0.5 0. ]
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    kept = groups.kept_rows(row_mask, rewards)
    best = groups.group_max(rewards, group_id, kept)
    at_top = kept & (rewards == best)
    alone = groups.group_count(group_id, at_top, rewards.dtype) == 1
    second = groups.group_max(rewards, group_id, kept & ~at_top)
    leads = at_top & alone & jnp.isfinite(second)
    return jnp.where(jnp.isnan(best), best, jnp.where(leads, best - second, 0))


def remax_advantages(rewards: Rewards, greedy_rewards: Rewards) -> Float[Array, " B"]:
    r"""ReMax: less the reward of the greedy answer to the same prompt.

        A_i = r_i - r(greedy answer)

    Args:
      rewards: one per completion.
      greedy_rewards: of the completion of the same prompt at temperature 0.

    Returns:
      advantages, [B], in the unit of `rewards`. No gradient flows back.

    References:
      ReMax. https://arxiv.org/abs/2310.10505

    Example:
      >>> print(remax_advantages(jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0])))
      [ 0. -1.]
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    return rewards - groups.widened(jax.lax.stop_gradient(greedy_rewards))


def running_mean_advantages(
    rewards: Rewards,
    history: Float[Array, "B W"],
    history_mask: Shaped[Array, "B W"],
    *,
    default: float = 0.0,
) -> Float[Array, " B"]:
    r"""Less the mean of earlier rewards of the same prompt: no group is needed.

        A_i = r_i - mean(last W rewards of the prompt)

    The control for a critic in SAO (W = 8, one completion per prompt). Earlier rewards
    do not depend on this completion, so the baseline adds no bias; it lags behind a
    policy that improves.

    Args:
      rewards: one per completion, of this step.
      history: the prompt's earlier rewards, from before this step.
      history_mask: 1 where the history holds a reward.
      default: the baseline of a prompt that is new, in the unit of `rewards`.

    Returns:
      advantages, [B], in the unit of `rewards`. No gradient flows back.

    References:
      SAO. https://arxiv.org/abs/2607.07508

    Example:
      >>> history, mask = jnp.array([[1.0, 0.0, 0.0]]), jnp.array([[1, 1, 0]])
      >>> print(running_mean_advantages(jnp.array([1.0]), history, mask))
      [0.5]
    """
    rewards = groups.widened(jax.lax.stop_gradient(rewards))
    seen = history_mask.astype(bool)
    count = jnp.sum(seen, axis=1)
    mean = jnp.sum(history, axis=1, where=seen) / jnp.maximum(count, 1)
    return rewards - jnp.where(count > 0, mean, default).astype(rewards.dtype)


def push_rewards(
    history: Float[Array, "B W"],
    history_mask: Shaped[Array, "B W"],
    rewards: Rewards,
) -> tuple[Float[Array, "B W"], Shaped[Array, "B W"]]:
    """The history with this step's rewards in front and the oldest dropped.

    Args:
      history: earlier rewards per prompt, newest first.
      history_mask: 1 where the history holds a reward.
      rewards: one per row, of this step.

    Returns:
      (history, history_mask), [B, W] each, for `running_mean_advantages` next time.

    Example:
      >>> history, mask = jnp.array([[0.5, 0.25]]), jnp.array([[True, True]])
      >>> print(push_rewards(history, mask, jnp.array([1.0]))[0])
      [[1.  0.5]]
    """
    newest = rewards.astype(history.dtype)[:, None]
    known = jnp.ones_like(history_mask[:, :1])
    return (
        jnp.concatenate([newest, history[:, :-1]], axis=1),
        jnp.concatenate([known, history_mask[:, :-1]], axis=1),
    )
