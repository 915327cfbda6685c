"""The objective of a step as a composition of `core` functions, chosen by settings."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from rlvr_jax.config import Objective
from rlvr_jax.core import (
    advantages,
    aggregation,
    diagnostics,
    kl,
    losses,
    ratios,
    shaping,
)
from rlvr_jax.types import Ratio, Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prompts:
    """The prompts of a (micro-)batch, left-padded."""

    tokens: Int[Array, "... P S"]
    lengths: Int[Array, "... P"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rows:
    """Completions of a (micro-)batch and what the whole batch decided about them."""

    completion_tokens: Int[Array, "... P G T"]
    token_mask: Float[Array, "... P G T"]
    """1 on sampled tokens; diagnostics count these."""
    weights: Float[Array, "... P G T"]
    """Of each token in the loss (core/aggregation.py); 0 outside it."""
    advantages: Float[Array, "... P G"]
    correct: Float[Array, "... P G"]
    rollout_logprobs: Float[Array, "... P G T"]
    old_logprobs: Float[Array, "... P G T"] | None
    """None while no update has been made: then the policy is its own old policy."""
    reference_logprobs: Float[Array, "... P G T"] | None
    kept_tokens: UInt32[Array, "... P G T W"] | None


def flat(array: Array) -> Array:
    """[P, G, ...] -> [P * G, ...], the rows of `core`."""
    return array.reshape(-1, *array.shape[2:])


def shaped_rewards(
    rewards: Float[Array, "P G"],
    rollouts: Rollouts,
    objective: Objective,
    max_completion_tokens: int,
    sequence_kl: Float[Array, "P G"] | None,
) -> Float[Array, "P G"]:
    """Rewards with the soft overlong penalty and, if placed there, the KL penalty."""
    if objective.overlong_buffer_tokens > 0:
        rewards += shaping.soft_overlong_penalty(
            flat(rollouts.completion_lengths),
            max_completion_tokens=max_completion_tokens,
            buffer_tokens=objective.overlong_buffer_tokens,
            penalty=objective.overlong_penalty,
        ).reshape(rewards.shape)
    if sequence_kl is not None:
        rewards -= objective.beta * sequence_kl
    return rewards


def batch_advantages(
    rewards: Float[Array, "P G"], rollouts: Rollouts, objective: Objective
) -> Float[Array, "P G"]:
    """Advantages over the whole batch of a step, one per completion."""
    baseline = {"group": "mean", "rloo": "leave_one_out"}[objective.advantage]
    return advantages.group_advantages(
        flat(rewards),
        flat(rollouts.group_id),
        baseline=baseline,
        scale=objective.scale_rewards,
        ddof=objective.std_ddof,
        epsilon=objective.std_epsilon,
    ).reshape(rewards.shape)


def loss_mask(rollouts: Rollouts, objective: Objective) -> Float[Array, "P G T"]:
    """1 on tokens that belong to the loss."""
    mask = rollouts.token_mask
    if objective.overlong_filter:
        kept = shaping.overlong_filter(flat(mask), flat(rollouts.ended))
        mask = kept.reshape(mask.shape)
    return mask.astype(jnp.float32)


def minibatch_weights(
    mask: Float[Array, "P G T"],
    group_id: Int[Array, "P G"],
    objective: Objective,
    max_completion_tokens: int,
) -> tuple[Float[Array, "P G T"], Float[Array, ""]]:
    """Weight per token and the denominator of the minibatch that makes one update."""
    ids = flat(group_id)
    # Ids of a minibatch are any numbers; `core` wants values in 0..B-1.
    first = jnp.argmax(ids[:, None] == ids[None, :], axis=1)
    weights, denominator = aggregation.token_weights(
        flat(mask),
        first,
        loss_aggregation=objective.loss_aggregation,
        constant_length=max_completion_tokens,
    )
    return weights.reshape(mask.shape), denominator


def objective_sums(
    policy_logprobs: Float[Array, "B T"],
    entropies: Float[Array, "B T"],
    rows: Rows,
    objective: Objective,
) -> tuple[Float[Array, ""], dict[str, Ratio], dict[str, Float[Array, ""]]]:
    """The numerator of the loss over `rows`, sums of metrics, and largest values."""
    mask, weights = flat(rows.token_mask), flat(rows.weights)
    row_advantages = flat(rows.advantages)
    old = policy_logprobs if rows.old_logprobs is None else flat(rows.old_logprobs)
    log_ratio = ratios.token_log_ratio(policy_logprobs, old, mask)
    level = log_ratio
    if objective.ratio_level == "sequence":
        level = ratios.sequence_log_ratio(log_ratio, mask)
    bounds = {
        "epsilon_low": objective.epsilon_low,
        "epsilon_high": objective.epsilon_high,
    }
    if objective.surrogate == "clip":
        policy_loss = losses.clipped_loss(level, row_advantages, **bounds)
    else:
        policy_loss = losses.reinforce_loss(policy_logprobs, row_advantages)

    def weighted(values: Array) -> Ratio:
        return aggregation.aggregate(values, weights, weights.sum())

    parts = {"policy": weighted(policy_loss).numerator}
    if rows.reference_logprobs is not None:
        divergence = kl.kl_estimate(
            policy_logprobs,
            flat(rows.reference_logprobs),
            estimator=objective.kl_estimator,
            token_mask=mask,
        )
        parts["kl"] = objective.beta * weighted(divergence).numerator
    if objective.entropy_coefficient != 0:
        bonus = objective.entropy_coefficient * weighted(entropies).numerator
        parts["entropy"] = -bonus
    numerator = jnp.stack(list(parts.values())).sum()

    sums, peaks = _diagnostics(policy_logprobs, entropies, log_ratio, rows)
    low, high = diagnostics.clip_fractions(level, row_advantages, mask, **bounds)
    if objective.surrogate == "clip":
        sums |= {"clip/low": low, "clip/high": high}
    # Denominators of the loss parts are the minibatch's: train_step puts them in.
    sums |= {f"loss/{name}": Ratio(part, jnp.zeros(())) for name, part in parts.items()}
    return numerator, jax.lax.stop_gradient(sums), jax.lax.stop_gradient(peaks)


def _diagnostics(policy_logprobs, entropies, log_ratio, rows: Rows):
    """Metrics of any objective; none of them carries a gradient."""
    mask = flat(rows.token_mask)
    policy_logprobs, entropies, log_ratio = jax.lax.stop_gradient(
        (policy_logprobs, entropies, log_ratio)
    )
    ratio = jnp.exp(log_ratio)
    old = policy_logprobs if rows.old_logprobs is None else flat(rows.old_logprobs)
    gap = ratios.token_log_ratio(old, flat(rows.rollout_logprobs), mask)
    mismatch = jnp.abs(gap)
    correct = flat(rows.correct)[:, None]
    mean = diagnostics.masked_mean
    sums = {
        "entropy/mean": mean(entropies, mask),
        "entropy/correct": mean(entropies, mask * correct),
        "entropy/wrong": mean(entropies, mask * (1 - correct)),
        "ratio/mean": mean(ratio, mask),
        "kl/old_policy": mean(ratio - 1 - log_ratio, mask),
        "mismatch/abs_logprob_mean": mean(mismatch, mask),
        "mismatch/kl": mean(jnp.expm1(gap) - gap, mask),
    }
    if rows.reference_logprobs is not None:
        gap = ratios.token_log_ratio(
            flat(rows.reference_logprobs), policy_logprobs, mask
        )
        sums["kl/reference"] = mean(jnp.expm1(gap) - gap, mask)
    peaks = {
        "ratio/max": ratio.max(),
        "ratio/min": (-ratio).max(),
        "mismatch/abs_logprob_max": mismatch.max(),
    }
    return sums, peaks
