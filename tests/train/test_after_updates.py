"""What changes once per step: reference, reward history, entropy coefficient."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.train.after_updates import reset
from rlvr_jax.train.credit import shaped_rewards
from rlvr_jax.train.optimizer import updates_made
from rlvr_jax.train.step import Extras, train_step
from tests import bigram, tiny


@pytest.fixture(scope="module")
def rollouts():
    return tiny.rollouts(*tiny.policy())


def steps(objective, rollouts, count, *, optimizer=None, extras=None):
    """The states and metrics of `count` steps on the same rollouts."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, objective, optimizer=optimizer)
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    states, metrics = [tiny.state(parameters, plan)], []
    for _ in range(count):
        state, found = step(
            states[-1], rollouts, tiny.rewards(), tiny.rewards(), extras
        )
        states.append(state)
        metrics.append(found)
    return states, metrics


def same(left, right):
    return tiny.largest_difference(left, right) == 0.0


def test_a_reference_that_is_never_updated_stays(rollouts):
    states, _ = steps(Objective(beta=0.1), rollouts, 2)
    assert same(states[2].reference, states[0].parameters)
    assert not same(states[2].reference, states[2].parameters)


def test_copy_refreshes_the_reference_every_n_steps(rollouts):
    """KL-12: R1-Zero's reference is the policy of the last multiple of N steps."""
    objective = Objective(beta=0.1, reference_update="copy", reference_every_steps=2)
    states, metrics = steps(objective, rollouts, 3, optimizer=optax.adam(0.01))
    assert same(states[1].reference, states[0].parameters)
    assert same(states[2].reference, states[2].parameters)
    np.testing.assert_allclose(metrics[2]["kl/reference"], 0.0, atol=1e-9)
    assert same(states[3].reference, states[2].parameters)
    moments = optax.tree_utils.tree_get(states[2].optimizer, "mu")
    assert float(optax.tree.norm(moments)) > 0  # a copy leaves the optimizer alone


def test_reset_also_starts_the_optimizer_anew(rollouts):
    """KL-13, F-59: after ProRL's reset KL is 0, moments are 0, the count is 0."""
    objective = Objective(beta=0.1, reference_update="reset", reference_every_steps=2)
    states, metrics = steps(objective, rollouts, 3, optimizer=optax.adam(0.01))
    assert same(states[2].reference, states[2].parameters)
    before, after = (states[n].optimizer for n in (1, 2))
    for name in ("mu", "nu", "count"):
        get = functools.partial(optax.tree_utils.tree_get, key=name)
        assert float(optax.tree.norm(get(before))) > 0
        assert float(optax.tree.norm(get(after))) == 0
    np.testing.assert_allclose(metrics[2]["kl/reference"], 0.0, atol=1e-9)
    assert float(metrics[1]["kl/reference"]) > 1e-6


def test_a_reset_on_a_stall_waits_to_be_called(rollouts):
    """REC-22, KL-13: with reset_after_evaluations no step resets; `reset` does: KL 0,
    moments and count 0, the policy as it was."""
    objective = Objective(
        beta=0.1,
        reference_update="reset",
        reference_every_steps=1,
        reset_after_evaluations=2,
    )
    states, _ = steps(objective, rollouts, 2, optimizer=optax.adam(0.01))
    assert same(states[2].reference, states[0].parameters)
    plan = tiny.plan(bigram.policy()[0], objective, optimizer=optax.adam(0.01))
    policy = jax.tree.map(np.asarray, states[2].parameters)
    after = reset(states[2], plan)
    assert same(after.parameters, policy)
    assert same(after.reference, policy)
    for name in ("mu", "nu", "count"):
        moments = optax.tree_utils.tree_get(after.optimizer, name)
        assert float(optax.tree.norm(moments)) == 0, name


@pytest.mark.parametrize("on_a_stall", [False, True])
def test_a_reset_leaves_the_learning_rate_to_its_schedule(rollouts, on_a_stall):
    """KL-13: a cosine that began again at its peak would undo the decay."""
    rates = optax.linear_schedule(0.01, 0.0, 10)
    objective = Objective(
        beta=0.1,
        reference_update="reset",
        reference_every_steps=2,
        reset_after_evaluations=3 if on_a_stall else 0,
    )
    states, _ = steps(objective, rollouts, 2, optimizer=optax.adamw(rates))
    found = states[2]
    if on_a_stall:
        plan = tiny.plan(bigram.policy()[0], objective, optimizer=optax.adamw(rates))
        found = reset(found, plan)
    assert updates_made(found.optimizer) == 2
    moments = optax.tree_utils.tree_get(found.optimizer, "mu")
    assert float(optax.tree.norm(moments)) == 0


def test_ema_follows_by_its_decay(rollouts):
    """A moving average: reference' = decay x reference + (1 - decay) x policy."""
    objective = Objective(beta=0.1, reference_update="ema", reference_decay=0.75)
    states, _ = steps(objective, rollouts, 1)
    expected = jax.tree.map(
        lambda old, new: 0.75 * old + 0.25 * new,
        states[0].parameters,
        states[1].parameters,
    )
    assert tiny.largest_difference(states[1].reference, expected) < 1e-7


def test_running_mean_remembers_each_problem(rollouts):
    """PG-40, F-12: the first visit's baseline is 0, the second's the mean of the first
    visit's rewards; a window of 3 keeps the last three of four."""
    objective = Objective(
        advantage="running_mean", scale_rewards="none", baseline_window=3
    )
    extras = Extras(problem_ids=jnp.arange(tiny.PROMPTS)[::-1])
    states, metrics = steps(objective, rollouts, 2, extras=extras)
    rewards = np.asarray(tiny.rewards())
    first = np.abs(rewards).mean()
    second = np.abs(rewards - rewards[:, -3:].mean(axis=1, keepdims=True)).mean()
    np.testing.assert_allclose(metrics[0]["advantage/abs_mean"], first, rtol=1e-6)
    np.testing.assert_allclose(metrics[1]["advantage/abs_mean"], second, rtol=1e-6)
    history = np.asarray(states[1].history.rewards)[::-1]
    np.testing.assert_array_equal(history, rewards[:, :0:-1])


def test_a_running_mean_is_of_rewards_as_the_advantages_saw_them(rollouts):
    """With a length penalty in the reward and none in the past every completion would
    look worse than before. Second visit: reward less the mean of the first one's."""
    objective = Objective(
        advantage="running_mean",
        scale_rewards="none",
        baseline_window=tiny.GENERATIONS,
        overlong_buffer_tokens=5,
    )
    extras = Extras(problem_ids=jnp.arange(tiny.PROMPTS))
    states, metrics = steps(objective, rollouts, 2, extras=extras)
    shaped = shaped_rewards(
        tiny.rewards(), tiny.rewards(), rollouts, objective, tiny.LENGTH
    )
    shaped = np.asarray(shaped)
    assert (shaped < np.asarray(tiny.rewards())).any()
    expected = np.abs(shaped - shaped.mean(axis=1, keepdims=True)).mean()
    np.testing.assert_allclose(metrics[1]["advantage/abs_mean"], expected, rtol=1e-5)
    np.testing.assert_allclose(
        np.asarray(states[1].history.rewards)[:, ::-1], shaped, rtol=1e-6
    )


def test_the_entropy_coefficient_climbs_below_its_target_and_falls_above(rollouts):
    """Skywork-OR1: c + step while H <= target, else c - step and no bonus."""
    low = Objective(entropy_target=100.0, entropy_step=0.25, overlong_filter=False)
    _, metrics = steps(low, rollouts, 2)
    coefficients = [float(found["entropy/coefficient"]) for found in metrics]
    np.testing.assert_allclose(coefficients, [0.25, 0.5])
    assert float(metrics[0]["loss/entropy"]) == 0.0
    expected = -0.25 * metrics[1]["entropy/mean"]
    np.testing.assert_allclose(metrics[1]["loss/entropy"], expected, rtol=1e-5)
    high = Objective(entropy_target=1e-3, entropy_coefficient=0.5, entropy_step=0.25)
    states, metrics = steps(high, rollouts, 1)
    assert float(metrics[0]["entropy/coefficient"]) == 0.0
    assert float(states[1].entropy_coefficient[0]) == 0.25


def test_bands_follow_the_entropy(rollouts):
    """F-44: the shift climbs while entropy is at or below its target, falls above;
    the second step's loss is that of bands which were written as wide (by hand)."""
    bands = {"band_positive": (0.2, 5.0), "band_negative": (0.1, 10.0)}
    base = {
        "surrogate": "sign_bands",
        "old_policy": "rollout",
        "overlong_filter": False,
    }
    adapting = Objective(**base, **bands, band_entropy=100.0, band_step=0.5)
    states, metrics = steps(adapting, rollouts, 2)
    assert [float(found["clip/band_shift"]) for found in metrics] == [0.5, 1.0]
    high = Objective(**base, **bands, band_entropy=1e-3, band_step=0.5)
    _, falling = steps(high, rollouts, 1)
    assert float(falling[0]["clip/band_shift"]) == -0.5
    wide = {
        "band_positive": tuple(bound ** np.exp(0.5) for bound in (0.2, 5.0)),
        "band_negative": tuple(bound ** np.exp(-0.5) for bound in (0.1, 10.0)),
    }
    fixed, _ = steps(Objective(**base, **bands), rollouts, 1)
    assert same(fixed[1].parameters, states[1].parameters)  # the first step is alike
    graphdef, _ = bigram.policy()
    plan = tiny.plan(graphdef, Objective(**base, **wide))
    start = dataclasses.replace(states[1], band_shift=None)
    step = jax.jit(functools.partial(train_step, plan=plan))
    expected, _ = step(start, rollouts, tiny.rewards(), tiny.rewards())
    moved = tiny.largest_difference(states[1].parameters, states[2].parameters)
    assert moved > 1e-4
    gap = tiny.largest_difference(expected.parameters, states[2].parameters)
    assert gap < 1e-6  # bounds are rounded once more
