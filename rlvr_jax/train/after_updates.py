"""What changes once per step, after its updates."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.core.baselines import push_rewards
from rlvr_jax.core.entropy import adapt_band_shift, adapt_entropy_coefficient
from rlvr_jax.train.optimizer import started_anew
from rlvr_jax.train.policy import copied, new_moments
from rlvr_jax.train.state import RewardHistory, StepPlan, TrainState
from rlvr_jax.train.trainable import trainable_of


def after_updates(
    state: TrainState,
    rewards: Float[Array, "P G"],
    problem_ids: Int[Array, " P"] | None,
    metrics: dict[str, Float[Array, ""]],
    plan: StepPlan,
) -> TrainState:
    """The state for the next step: its number, reference, history, entropy control.

    Args:
      state: after the updates.
      rewards: as the advantages saw them, for the history.
      problem_ids: of the P problems, for the history.
      metrics: of the step.
      plan: of the step.
    """
    objective, step = plan.objective, state.step + 1
    changes: dict = {"step": step}
    if state.reference is not None and objective.reference_update != "never":
        changes |= _reference_update(state, step, plan)
    if state.history is not None:
        ids = problem_ids
        pushed = (state.history.rewards[ids], state.history.seen[ids])
        for column in range(rewards.shape[1]):
            pushed = push_rewards(*pushed, rewards[:, column])
        changes["history"] = RewardHistory(
            state.history.rewards.at[ids].set(pushed[0]),
            state.history.seen.at[ids].set(pushed[1]),
        )
    if state.entropy_coefficient is not None:
        changes["entropy_coefficient"] = adapt_entropy_coefficient(
            state.entropy_coefficient[0],
            metrics["entropy/mean"],
            target=objective.entropy_target,
            step=objective.entropy_step,
        )
    if state.band_shift is not None:
        changes["band_shift"] = adapt_band_shift(
            state.band_shift,
            metrics["entropy/mean"],
            target=objective.band_entropy,
            step=objective.band_step,
        )
    return dataclasses.replace(state, **changes)


def _reference_update(state: TrainState, step, plan: StepPlan) -> dict:
    """A nearer reference: copied every few steps, or a moving average."""
    objective = plan.objective
    if objective.reference_update == "ema":
        decay = objective.reference_decay
        mix = lambda old, new: decay * old + (1 - decay) * new
        return {"reference": jax.tree.map(mix, state.reference, state.parameters)}
    if objective.reset_after_evaluations > 0:
        return {}  # the run says when: `reset`
    now = step % objective.reference_every_steps == 0
    choose = lambda new, old: jnp.where(now, new, old)
    changes = {"reference": jax.tree.map(choose, state.parameters, state.reference)}
    if objective.reference_update == "reset":
        fresh = plan.optimizer.init(trainable_of(state.parameters))
        fresh = started_anew(fresh, state.optimizer)
        changes["optimizer"] = jax.tree.map(choose, fresh, state.optimizer)
    return changes


def reset(state: TrainState, plan: StepPlan) -> TrainState:
    """ProRL's reset: the policy becomes its own reference, the moments start anew.

    The learning rate goes on with its schedule.

    Outside of the step; each array stays on its part of the mesh.
    """
    moments = new_moments(trainable_of(state.parameters), plan.optimizer, plan.mesh)
    return dataclasses.replace(
        state,
        reference=copied(state.parameters),
        optimizer=started_anew(moments, state.optimizer),
    )
