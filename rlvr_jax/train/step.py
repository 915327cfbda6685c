"""The train step: one jitted program from token ids and rewards to new parameters.

    old log-probs of the batch -> advantages over the batch -> for each minibatch:
    gradients summed over micro-batches, one division, clip, optimizer update

Loss and gradient do not depend on the micro-batch size or the mesh: weights and
denominators belong to the minibatch, and micro-batches only add numerators.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, UInt32

from rlvr_jax.config import BatchConfig, Objective
from rlvr_jax.core import diagnostics
from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.mesh.mesh import constrain_rows
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.train.objective import (
    Prompts,
    Rows,
    batch_advantages,
    flat,
    loss_mask,
    minibatch_weights,
    objective_sums,
    shaped_rewards,
)
from rlvr_jax.types import Ratio, Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """All that a step changes. Everything random is a function of (seed, step)."""

    parameters: nnx.State
    """float32 master weights."""
    optimizer: optax.OptState
    reference: nnx.State | None
    """Frozen parameters of the KL term; None at beta 0."""
    step: Int[Array, ""]
    """Rollout batches learned from so far: the version of the policy."""


@dataclasses.dataclass(frozen=True, eq=False)
class StepPlan:
    """What the step is compiled for."""

    graphdef: nnx.GraphDef
    optimizer: optax.GradientTransformation
    objective: Objective
    batch: BatchConfig
    max_completion_tokens: int
    temperature: float
    mesh: Mesh
    dtype: Any
    """Of activations, and of the weights they meet."""

    @property
    def updates(self) -> int:
        """Optimizer updates per step."""
        return self.batch.minibatches_per_step * self.batch.epochs_per_step


def train_step(
    state: TrainState,
    rollouts: Rollouts,
    rewards: Float[Array, "P G"],
    correct: Float[Array, "P G"],
    *,
    plan: StepPlan,
) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
    """Learns from one batch of rollouts.

    Args:
      state: donated by the caller's `jax.jit`.
      rollouts: P prompts with G completions each, sampled by `state.parameters`.
      rewards: of the verifiers, before any shaping by length or KL.
      correct: 1 where the verifier said so; for metrics alone.
      plan: static.

    Returns:
      the new state, and metrics by name (docs/metrics.md).
    """
    objective = plan.objective
    limit = plan.max_completion_tokens
    # With a single update the policy is its own old policy: no pass needed.
    in_reward = state.reference is not None and objective.kl_placement == "reward"
    old = reference = sequence_kl = None
    if plan.updates > 1 or in_reward:
        old = batch_logprobs(state.parameters, rollouts, plan)
    if state.reference is not None:
        reference = batch_logprobs(state.reference, rollouts, plan)
    if old is not None and reference is not None and in_reward:
        gap = jnp.where(rollouts.token_mask, old - reference, 0.0)
        sequence_kl = gap.sum(axis=-1)  # k1 of the whole completion
    shaped = shaped_rewards(rewards, rollouts, objective, limit, sequence_kl)
    advantages = batch_advantages(shaped, rollouts, objective)
    rows = Rows(
        completion_tokens=rollouts.completion_tokens,
        token_mask=rollouts.token_mask.astype(jnp.float32),
        weights=loss_mask(rollouts, objective),  # of each minibatch further down
        advantages=advantages,
        correct=correct,
        rollout_logprobs=rollouts.rollout_logprobs,
        old_logprobs=old if plan.updates > 1 else None,
        reference_logprobs=None if in_reward else reference,
        kept_tokens=rollouts.kept_tokens,
    )
    prompts = Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths)
    minibatches = plan.batch.minibatches_per_step
    per_minibatch = rewards.shape[0] // minibatches

    def update(carry, index):
        # Epochs go through the minibatches again, in the same order.
        start = (index % minibatches) * per_minibatch

        def take(array):
            return jax.lax.dynamic_slice_in_dim(array, start, per_minibatch)

        batch = (prompts, rows, rollouts.group_id)
        some_prompts, some_rows, group_id = jax.tree.map(take, batch)
        weights, denominator = minibatch_weights(
            some_rows.weights, group_id, objective, limit
        )
        some_rows = dataclasses.replace(some_rows, weights=weights)
        return _update(carry, some_prompts, some_rows, denominator, plan)

    carry = (state.parameters, state.optimizer)
    carry, (sums, peaks, means) = jax.lax.scan(update, carry, jnp.arange(plan.updates))
    metrics = {
        name: Ratio(ratio.numerator.sum(), ratio.denominator.sum()).value()
        for name, ratio in sums.items()
    }
    metrics |= {name: peak.max() for name, peak in peaks.items()}
    metrics["ratio/min"] = -metrics["ratio/min"]
    metrics |= {name: values.mean() for name, values in means.items()}
    metrics |= _batch_metrics(rollouts, rewards, shaped, correct, advantages)
    new_state = TrainState(*carry, state.reference, state.step + 1)
    return new_state, metrics


def _update(carry, prompts: Prompts, rows: Rows, denominator, plan: StepPlan):
    """One optimizer update from one minibatch."""
    parameters, optimizer_state = carry

    def loss(parameters, prompts, rows):
        policy_logprobs, entropies = completion_logprobs(
            parameters, prompts, rows.completion_tokens, rows.kept_tokens, plan
        )
        numerator, sums, peaks = objective_sums(
            policy_logprobs, entropies, rows, plan.objective
        )
        return numerator, (sums, peaks)

    def accumulate(gradients, micro):
        micro_prompts, micro_rows = constrain_rows(micro[0], micro[1], plan.mesh)
        with_gradient = jax.value_and_grad(loss, has_aux=True)
        (numerator, aux), new = with_gradient(parameters, micro_prompts, micro_rows)
        return jax.tree.map(jnp.add, gradients, new), (numerator, *aux)

    zeros = jax.tree.map(jnp.zeros_like, parameters)
    micros = split_micro_batches(prompts, rows, plan.batch.micro_batch_size)
    gradients, (numerators, sums, peaks) = jax.lax.scan(accumulate, zeros, micros)
    total = Ratio(numerators.sum(), denominator)
    sums = jax.tree.map(jnp.sum, sums)
    sums = {
        name: Ratio(ratio.numerator, denominator) if name.startswith("loss/") else ratio
        for name, ratio in sums.items()
    }
    sums["loss/total"] = total

    # THE division: after every micro-batch and device has been summed.
    scale = 1.0 / jnp.where(denominator == 0, 1.0, denominator)
    gradients = jax.tree.map(lambda gradient: gradient * scale, gradients)
    norm = optax.tree.norm(gradients)
    changes, new_optimizer_state = plan.optimizer.update(
        gradients, optimizer_state, parameters
    )
    new = (optax.apply_updates(parameters, changes), new_optimizer_state)
    # Nothing to learn from, or a gradient that is not finite: leave all as it was.
    usable = jnp.isfinite(norm) & (denominator > 0)
    carry = jax.tree.map(lambda a, b: jnp.where(usable, a, b), new, carry)
    means = {
        "grad/norm": norm,
        "optimizer/skipped": 1.0 - usable.astype(jnp.float32),
    }
    return carry, (sums, jax.tree.map(jnp.max, peaks), means)


def completion_logprobs(
    parameters: nnx.State,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    kept_tokens: UInt32[Array, "P G T W"] | None,
    plan: StepPlan,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Log-probs of completion tokens, and entropies; rows B = P * G.

    A prompt is computed once for its G completions.
    """
    parameters = jax.tree.map(lambda p: p.astype(plan.dtype), parameters)
    decoder: Decoder = nnx.merge(plan.graphdef, parameters)
    hidden, cache = decoder.prefill(prompts.tokens, prompts.lengths)
    count, groups, length = completion_tokens.shape
    # The prompt's last state predicts the first token; the last token predicts nothing.
    states = jnp.broadcast_to(
        hidden[:, -1][:, None, None], (count, groups, 1, hidden.shape[-1])
    )
    if length > 1:
        extended = decoder.extend(completion_tokens[:, :, :-1], cache)
        states = jnp.concatenate([states, extended], axis=2)
    chunk = max(1, plan.batch.logprob_chunk_tokens // (count * groups))
    return token_logprobs(
        flat(states),
        decoder.head_weight,
        flat(completion_tokens),
        temperature=plan.temperature,
        kept_words=None if kept_tokens is None else flat(kept_tokens),
        chunk=chunk,
    )


def batch_logprobs(
    parameters: nnx.State, rollouts: Rollouts, plan: StepPlan
) -> Float[Array, "P G T"]:
    """Log-probs of a whole batch under fixed parameters, by micro-batches."""
    prompts = Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths)
    rows = (rollouts.completion_tokens, rollouts.kept_tokens)

    def body(_, micro):
        prompts, rows = constrain_rows(micro[0], micro[1], plan.mesh)
        tokens, kept = rows
        return None, completion_logprobs(parameters, prompts, tokens, kept, plan)[0]

    micros = split_micro_batches(prompts, rows, plan.batch.micro_batch_size)
    _, logprobs = jax.lax.scan(body, None, micros)
    return jax.lax.stop_gradient(logprobs.reshape(rollouts.completion_tokens.shape))


def split_micro_batches(prompts: Any, rows: Any, micro_batch_size: int) -> Any:
    """Cuts a batch into micro-batches of whole groups, or of parts of one group.

    Args:
      prompts: arrays [P, ...].
      rows: arrays [P, G, ...].
      micro_batch_size: completions; divides G or is a multiple of it. 0 for all.

    Returns:
      (prompts, rows) as [micro-batches, p, ...] and [micro-batches, p, g, ...] with
      p * g = micro_batch_size; the prompt of a split group comes with each part.
    """
    count, groups = jax.tree.leaves(rows)[0].shape[:2]
    size = micro_batch_size or count * groups
    per_micro, generations = max(1, size // groups), min(size, groups)

    def split_rows(array):
        return array.reshape(-1, per_micro, generations, *array.shape[2:])

    def split_prompts(array):
        repeated = jnp.repeat(array, groups // generations, axis=0)
        return repeated.reshape(-1, per_micro, *array.shape[1:])

    return jax.tree.map(split_prompts, prompts), jax.tree.map(split_rows, rows)


def _batch_metrics(rollouts, rewards, shaped, correct, advantages):
    """Metrics of the rollouts as a whole."""
    lengths = rollouts.completion_lengths.astype(jnp.float32)
    solved = correct.mean(axis=1)

    def mean_where(values, mask):
        return Ratio((values * mask).sum(), mask.sum()).value()

    zero = diagnostics.zero_advantage_share(flat(advantages), flat(rollouts.group_id))
    return {
        "reward/mean": rewards.mean(),
        "reward/shaped_mean": shaped.mean(),
        "reward/std": rewards.std(),
        "pass_rate/mean": correct.mean(),
        "pass_rate/all_correct": (solved == 1).mean(),
        "pass_rate/all_wrong": (solved == 0).mean(),
        "advantage/zero_share": zero.value(),
        "advantage/abs_mean": jnp.abs(advantages).mean(),
        "completion/length_mean": lengths.mean(),
        "completion/length_correct": mean_where(lengths, correct),
        "completion/length_wrong": mean_where(lengths, 1 - correct),
        "completion/length_max": lengths.max(),
        "completion/truncated_share": 1 - rollouts.ended.mean(),
    }
