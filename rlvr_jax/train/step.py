"""The train step: one jitted program from token ids and rewards to new parameters.

    old log-probs of the batch -> advantages over the batch -> for each minibatch:
    gradients summed over micro-batches, one division, clip, optimizer update

Loss and gradient do not depend on the micro-batch size or the mesh: weights and
denominators belong to the minibatch, and micro-batches only add numerators.
"""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.config import Objective
from rlvr_jax.core import kl
from rlvr_jax.core.critic import bootstrapped_rewards
from rlvr_jax.train import step_metrics
from rlvr_jax.train.after_updates import after_updates
from rlvr_jax.train.credit import (
    Signals,
    batch_advantages,
    scaled_in_minibatch,
    shaped_rewards,
    value_targets,
)
from rlvr_jax.train.critic import batch_values, critic_metrics, update_critic
from rlvr_jax.train.forward import (
    batch_logprobs,
    flat,
    policy_outputs,
    reference_logprobs,
    rollout_logprobs,
)
from rlvr_jax.train.micro_batches import (
    Prompts,
    mean_gradients,
    prompts_of,
    split_micro_batches,
)
from rlvr_jax.train.objective import (
    Rows,
    core_advantages,
    imitation_weights,
    local_ids,
    loss_mask,
    minibatch_weights,
    objective_sums,
    old_logprobs,
)
from rlvr_jax.train.packing import Packing
from rlvr_jax.train.selected import needs_selection, selection_masks
from rlvr_jax.train.state import RewardHistory, StepPlan, TrainState
from rlvr_jax.train.trainable import trainable_of, with_trainable
from rlvr_jax.types import Ratio, Rollouts

CHANGED = ("parameters", "optimizer", "critic")
"""Fields of the state that an update changes."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Extras:
    """What the host adds for methods that need more than rewards."""

    reward_parts: Float[Array, "... P G R"] | None = None
    part_weights: Float[Array, "... R"] | None = None
    """For "gdpo"."""
    greedy_rewards: Float[Array, "... P"] | None = None
    """For "remax": of the greedy completion of each prompt."""
    problem_ids: Int[Array, "... P"] | None = None
    """For "running_mean"."""
    kept_groups: Bool[Array, "... P"] | None = None
    """Groups that the loss takes (curriculum.filter); None: all."""


def train_step(
    state: TrainState,
    rollouts: Rollouts,
    rewards: Float[Array, "P G"],
    correct: Float[Array, "P G"],
    extras: Extras | None = None,
    packing: Packing | None = None,
    *,
    plan: StepPlan,
) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
    """Learns from one batch of rollouts.

    Args:
      state: donated by the caller's `jax.jit`.
      rollouts: P prompts with G completions each, sampled by `state.parameters`.
      rewards: of the verifiers, before any shaping by length or KL.
      correct: 1 where the verifier said so; for metrics, "passk", lengths, imitation.
      extras: None unless the advantage needs them.
      packing: completions that share rows (train/packing.py): memory and time, never
        the result. None: each has a row of its own.
      plan: static.

    Returns:
      the new state, and metrics by name (docs/metrics.md).
    """
    objective, extras = plan.objective, extras or Extras()
    limit = plan.max_completion_tokens
    shaped = shaped_rewards(rewards, correct, rollouts, objective, limit)
    old, reference, kl_rewards = _fixed_logprobs(state, rollouts, plan, packing)
    values = None
    if state.critic is not None:
        values = batch_values(state.critic.parameters, rollouts, plan, packing)
    if values is not None and objective.bootstrap_truncated:
        shaped = bootstrapped_rewards(
            flat(shaped), flat(values), flat(rollouts.token_mask), flat(rollouts.ended)
        ).reshape(shaped.shape)
    signals = Signals(
        group_id=flat(rollouts.group_id),
        token_mask=flat(rollouts.token_mask),
        correct=flat(correct) > 0,
        kl_rewards=kl_rewards,
        values=None if values is None else flat(values),
        **_from_extras(extras, state.history, rewards.shape[1]),
    )
    advantages = batch_advantages(flat(shaped), signals, objective)
    rows = Rows(
        completion_tokens=rollouts.completion_tokens,
        token_mask=rollouts.token_mask.astype(jnp.float32),
        # Of each minibatch further down.
        weights=loss_mask(rollouts, objective, extras.kept_groups),
        advantages=advantages.reshape(*rewards.shape, -1),
        correct=correct,
        rollout_logprobs=rollouts.rollout_logprobs,
        old_logprobs=old if plan.batch.updates_per_step > 1 else None,
        reference_logprobs=reference,
        kept_tokens=rollouts.kept_tokens,
        routes=rollouts.routes,
        kept=None if signals.kept is None else signals.kept.reshape(rewards.shape),
    )
    whole = shaped if kl_rewards is None else shaped + _per_row(kl_rewards, shaped)
    metrics = step_metrics.batch_metrics(
        rollouts,
        rewards,
        whole,
        correct,
        rows.advantages,
    )
    if values is not None:
        learned, returns = (
            value_targets(flat(shaped), signals, gamma=objective.gamma, lam=lam)
            for lam in (objective.lam_critic, 1.0)
        )
        targets = learned.reshape(values.shape)
        rows = dataclasses.replace(rows, old_values=values, value_targets=targets)
        metrics |= critic_metrics(
            values, returns.reshape(values.shape), rollouts.token_mask
        )
    prompts = prompts_of(rollouts, plan, packing)
    new, learned = _updates(state, prompts, rollouts.group_id, rows, plan)
    metrics |= learned
    new = after_updates(new, whole, extras.problem_ids, metrics, plan)
    if new.entropy_coefficient is not None:
        metrics["entropy/coefficient"] = new.entropy_coefficient[1]
    if new.band_shift is not None:
        metrics["clip/band_shift"] = new.band_shift
    return new, metrics


def _fixed_logprobs(
    state: TrainState, rollouts: Rollouts, plan: StepPlan, packing: Packing | None
):
    """Old and reference log-probs of the batch, and the KL rewards, as far as used."""
    # With a single update the policy is its own old policy: no pass needed.
    in_reward = state.reference is not None and plan.objective.kl_placement == "reward"
    old = reference = None
    if plan.batch.updates_per_step > 1 or in_reward:
        old = rollout_logprobs(state.parameters, rollouts, plan, packing)
    if state.reference is not None:
        reference = reference_logprobs(state.reference, rollouts, plan, packing)
    if old is None or reference is None or not in_reward:
        return old, reference, None
    penalty = kl.kl_rewards(
        flat(old),
        flat(reference),
        flat(rollouts.token_mask),
        beta=plan.objective.beta,
    )
    return old, None, penalty


def _per_row(per_token: Float[Array, "B T"], like: Float[Array, "P G"]):
    return per_token.sum(axis=-1).reshape(like.shape)


def _from_extras(extras: Extras, history: RewardHistory | None, generations: int):
    """The fields of `Signals` that come from outside the rollouts."""
    found = {}
    if extras.reward_parts is not None:
        found["reward_parts"] = flat(extras.reward_parts)
        found["part_weights"] = extras.part_weights
    if extras.kept_groups is not None:
        found["kept"] = jnp.repeat(extras.kept_groups, generations)
    if extras.greedy_rewards is not None:
        found["greedy_rewards"] = jnp.repeat(extras.greedy_rewards, generations)
    if history is not None:
        assert extras.problem_ids is not None  # advantage "running_mean" brings both
        rows = jnp.repeat(extras.problem_ids, generations)
        found["history"] = history.rewards[rows]
        found["history_seen"] = history.seen[rows]
    return found


def _updates(
    before: TrainState, prompts: Prompts, group_id: Array, rows: Rows, plan: StepPlan
):
    """All minibatch updates of a step, and the metrics they make."""
    minibatches = plan.batch.minibatches_per_step

    def update(carry, index):
        state = dataclasses.replace(before, **carry)

        def take(array):  # [P, ...], or micro-batches of a packing
            size = array.shape[0] // minibatches
            # Epochs go through the minibatches again, in the same order.
            start = (index % minibatches) * size
            return jax.lax.dynamic_slice_in_dim(array, start, size)

        batch = (prompts, rows, group_id)
        some_prompts, some_rows, some_ids = jax.tree.map(take, batch)
        some_rows, denominator = _of_minibatch(
            some_rows,
            some_prompts,
            some_ids,
            state,
            plan,
            state.step * plan.batch.updates_per_step + index,
        )
        return _update(state, some_prompts, some_rows, denominator, plan)

    carry = {name: getattr(before, name) for name in CHANGED}
    carry, (sums, peaks, means) = jax.lax.scan(
        update, carry, jnp.arange(plan.batch.updates_per_step)
    )
    metrics = step_metrics.finished(
        {
            name: Ratio(ratio.numerator.sum(), ratio.denominator.sum())
            for name, ratio in sums.items()
        }
    )
    metrics |= {name: peak.max() for name, peak in peaks.items()}
    metrics["ratio/min"] = -metrics["ratio/min"]
    state = dataclasses.replace(before, **carry)
    return state, metrics | {name: values.mean() for name, values in means.items()}


def _of_minibatch(rows: Rows, prompts, group_id, state: TrainState, plan, number):
    """The rows with all that depends on which others make the same update."""
    objective: Objective = plan.objective
    mask = rows.weights
    weights, denominator = minibatch_weights(
        mask, group_id, objective, plan.max_completion_tokens
    )
    changes = {"weights": weights}
    if objective.scale_rewards == "minibatch":
        changes["advantages"] = scaled_in_minibatch(
            rows.advantages, local_ids(group_id), rows.kept, objective
        )
    if objective.imitation_coefficient > 0:
        changes["imitation_weights"] = imitation_weights(
            mask, rows.correct, denominator
        )
    if needs_selection(objective):
        logprobs, entropies = batch_logprobs(
            state.parameters,
            prompts,
            rows.completion_tokens,
            rows.kept_tokens,
            plan,
            rows.routes,
        )
        masks = selection_masks(
            flat(logprobs),
            flat(entropies),
            old_logprobs(flat(logprobs), rows, objective),
            core_advantages(changes.get("advantages", rows.advantages)),
            flat(mask),
            objective,
            jax.random.fold_in(jax.random.key(plan.seed), number),
        )
        changes["counts"], changes["penalised"] = (
            chosen.reshape(mask.shape) for chosen in masks
        )
    return dataclasses.replace(rows, **changes), denominator


def _update(state: TrainState, prompts: Prompts, rows: Rows, denominator, plan):
    """One optimizer update from one minibatch."""
    objective: Objective = plan.objective
    coefficient = objective.entropy_coefficient
    if state.entropy_coefficient is not None:
        coefficient = state.entropy_coefficient[1]

    def loss(trainable, prompts, rows):
        parameters = with_trainable(state.parameters, trainable)
        policy_logprobs, entropies, flips = policy_outputs(
            parameters, prompts, rows, plan
        )
        numerator, sums, peaks = objective_sums(
            policy_logprobs, entropies, rows, objective, coefficient, state.band_shift
        )
        if flips is not None:
            sums["routing/flip_share"] = flips
        return numerator, (sums, peaks)

    trainable = trainable_of(state.parameters)
    micros = split_micro_batches(prompts, rows, plan.batch.micro_batch_size)
    gradients, (numerators, (sums, peaks)) = mean_gradients(
        loss, trainable, micros, denominator, plan
    )
    sums = jax.tree.map(jnp.sum, sums)
    sums = {
        name: Ratio(ratio.numerator, denominator) if name.startswith("loss/") else ratio
        for name, ratio in sums.items()
    }
    sums["loss/total"] = Ratio(numerators.sum(), denominator)

    norm = optax.tree.norm(gradients)
    changes, moments = plan.optimizer.update(gradients, state.optimizer, trainable)
    new = (optax.apply_updates(trainable, changes), moments)
    # Nothing to learn from, or a gradient that is not finite: leave all as it was.
    usable = jnp.isfinite(norm) & (denominator > 0)
    means = {
        "grad/norm": norm,
        "optimizer/skipped": 1.0 - usable.astype(jnp.float32),
        "optimizer/not_finite": 1.0 - jnp.isfinite(norm).astype(jnp.float32),
    }
    critic = state.critic
    if critic is not None:
        usable &= state.step >= plan.critic.pretraining_steps
        critic, more = update_critic(critic, prompts, rows, objective.value_clip, plan)
        sums |= more
    trainable, moments = jax.tree.map(
        lambda a, b: jnp.where(usable, a, b), new, (trainable, state.optimizer)
    )
    parameters = with_trainable(state.parameters, trainable)
    carry = {"parameters": parameters, "optimizer": moments, "critic": critic}
    return carry, (sums, jax.tree.map(jnp.max, peaks), means)
