"""The optimizer and its learning-rate schedule, counted in updates."""

from typing import Any

import jax
import numpy as np
import optax

from rlvr_jax.config import Config


def learning_rate_schedule(config: Config) -> optax.Schedule:
    """Learning rate by update: a linear warm-up, then constant or down to 0."""
    settings, updates = config.optimizer, config.batch.updates_per_step
    peak, warmup = settings.learning_rate, settings.warmup_steps * updates
    rest = max(1, config.steps * updates - warmup)
    after = {
        "constant": optax.constant_schedule(peak),
        "linear": optax.linear_schedule(peak, 0.0, rest),
        "cosine": optax.cosine_decay_schedule(peak, rest),
    }[settings.schedule]
    if warmup == 0:
        return after
    # The first update already moves: rates 1/n, 2/n, ..., 1 of the peak.
    rising = optax.linear_schedule(peak / warmup, peak, max(1, warmup - 1))
    return optax.join_schedules([rising, after], [warmup])


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """AdamW behind a clip of the global gradient norm."""
    return _adamw(config, learning_rate_schedule(config))


def make_critic_optimizer(config: Config) -> optax.GradientTransformation:
    """The same at the critic's own, constant learning rate."""
    return _adamw(config, config.critic.learning_rate)


def updates_made(state: optax.OptState) -> int:
    """Updates that the schedule has counted: without those that were left out."""
    nodes = jax.tree.leaves(state, is_leaf=_is_schedule)
    (found,) = (node for node in nodes if _is_schedule(node))
    return int(np.asarray(found.count))


def started_anew(fresh: optax.OptState, state: optax.OptState) -> optax.OptState:
    """`fresh` moments that go on with the schedule of `state`.

    A reset is of what Adam remembers; the learning rate stays where it is in the run.
    """
    pick = lambda new, old: old if _is_schedule(new) else new
    return jax.tree.map(pick, fresh, state, is_leaf=_is_schedule)


def _is_schedule(node: Any) -> bool:
    return isinstance(node, optax.ScaleByScheduleState)


def _adamw(config: Config, learning_rate) -> optax.GradientTransformation:
    settings = config.optimizer
    adam = optax.adamw(
        learning_rate,
        b1=settings.adam_b1,
        b2=settings.adam_b2,
        eps=settings.adam_eps,
        weight_decay=settings.weight_decay,
        mu_dtype=settings.moment_dtype,
    )
    if settings.max_grad_norm == 0:
        return adam
    return optax.chain(optax.clip_by_global_norm(settings.max_grad_norm), adam)
