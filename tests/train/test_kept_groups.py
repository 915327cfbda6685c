"""Groups outside the loss (curriculum.filter): masking equals dropping."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train.step import Extras, train_step
from tests import bigram, tiny

KEPT = np.array([0, 1, 4, 6])
ROUNDING = 1e-6
"""As in test_step: float32 sums in another order."""


@pytest.fixture(scope="module")
def rollouts():
    return tiny.rollouts(*tiny.policy())


def learn(rollouts, rewards, correct, objective, kept=None):
    graphdef, parameters = bigram.policy()
    count = rewards.shape[0]
    plan = tiny.plan(graphdef, objective, prompts_per_step=count)
    extras = None if kept is None else Extras(kept_groups=jnp.asarray(kept))
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    state, metrics = step(
        tiny.state(parameters, plan), rollouts, rewards, correct, extras
    )
    moved = jax.tree.map(jnp.subtract, state.parameters, parameters)
    return moved, metrics


def rows(rollouts, where):
    chosen = jax.tree.map(lambda leaf: leaf[where], rollouts)
    numbers = jnp.broadcast_to(jnp.arange(len(where))[:, None], chosen.group_id.shape)
    return dataclasses.replace(chosen, group_id=numbers)


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("dapo", {}),
        ("grpo", {"beta": 0.0}),
        ("scalerl", {}),
        ("magistral", {}),
        ("gpg", {}),
        ("dapo", {"imitation_coefficient": 0.1}),
        ("dapo", {"advantage": "reinforce_pp_baseline", "scale_rewards": "batch"}),
    ],
)
def test_masked_groups_are_as_if_they_had_not_been_sampled(rollouts, preset, changes):
    """DATA-04: the normaliser and the statistics of the batch use kept groups only.

    The expected update is that of a batch which holds the kept groups alone.
    """
    objective = Objective(**(PRESETS[preset] | changes))
    objective.overlong_filter = False
    correct = jax.random.bernoulli(
        jax.random.key(1), 0.5, (tiny.PROMPTS, tiny.GENERATIONS)
    ).astype(jnp.float32)
    rewards = correct + 0.1 * jnp.arange(tiny.GENERATIONS)  # no group's are equal
    kept = np.isin(np.arange(tiny.PROMPTS), KEPT)
    masked, metrics = learn(rollouts, rewards, correct, objective, kept)
    alone, expected = learn(
        rows(rollouts, KEPT), rewards[KEPT], correct[KEPT], objective
    )
    assert tiny.largest_difference(alone, jax.tree.map(jnp.zeros_like, alone)) > 1e-4
    assert tiny.largest_difference(masked, alone) < ROUNDING
    for name in ("loss/total", "grad/norm"):
        np.testing.assert_allclose(metrics[name], expected[name], atol=ROUNDING)
    everything, _ = learn(rollouts, rewards, correct, objective)
    assert tiny.largest_difference(everything, alone) > 1e-4


def test_a_step_without_any_kept_group_changes_nothing(rollouts):
    """DATA-01: at the bound a batch may be empty; it is skipped, and says so."""
    correct = jnp.ones((tiny.PROMPTS, tiny.GENERATIONS))
    none = np.zeros(tiny.PROMPTS, bool)
    moved, metrics = learn(rollouts, correct, correct, Objective(), none)
    assert tiny.largest_difference(moved, jax.tree.map(jnp.zeros_like, moved)) == 0
    assert metrics["optimizer/skipped"] == 1


def test_keeping_all_is_no_rule_at_all(rollouts):
    rewards = tiny.rewards()
    everything = np.ones(tiny.PROMPTS, bool)
    masked, _ = learn(rollouts, rewards, rewards, Objective(), everything)
    plain, _ = learn(rollouts, rewards, rewards, Objective())
    assert tiny.largest_difference(masked, plain) == 0
