"""Learning rates in closed form, and what AdamW and the clip do with a gradient."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import BatchConfig, Config, OptimizerConfig
from rlvr_jax.train.optimizer import (
    learning_rate_schedule,
    make_optimizer,
    started_anew,
    updates_made,
)

PEAK = 0.5


def config(steps=10, minibatches=2, epochs=1, **optimizer):
    return Config(
        steps=steps,
        batch=BatchConfig(minibatches_per_step=minibatches, epochs_per_step=epochs),
        optimizer=OptimizerConfig(**{"learning_rate": PEAK} | optimizer),
    )


def rates(config, count):
    schedule = learning_rate_schedule(config)
    return np.array([float(np.asarray(schedule(update))) for update in range(count)])


def test_updates_are_minibatches_times_epochs():
    assert config(minibatches=4, epochs=3).batch.updates_per_step == 12


def test_constant_is_the_peak_from_the_first_update():
    np.testing.assert_array_equal(rates(config(), 30), PEAK)


def test_linear_falls_to_zero_at_the_end_of_the_run():
    """20 updates: PEAK * (1 - u / 20), and 0 afterwards."""
    updates = np.arange(25)
    expected = PEAK * np.clip(1 - updates / 20, 0, None)
    found = rates(config(schedule="linear"), 25)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_cosine_falls_to_zero_at_the_end_of_the_run():
    """20 updates: PEAK * (1 + cos(pi u / 20)) / 2."""
    expected = [PEAK * (1 + math.cos(math.pi * min(u, 20) / 20)) / 2 for u in range(25)]
    found = rates(config(schedule="cosine"), 25)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_the_warm_up_rises_by_updates_and_the_rest_fits_behind_it(schedule):
    """3 steps of 2 updates: 1/6, 2/6, ..., 6/6 of the peak; then 14 updates down."""
    found = rates(config(schedule=schedule, warmup_steps=3), 21)
    np.testing.assert_allclose(found[:6], PEAK * np.arange(1, 7) / 6, rtol=1e-6)
    left = np.arange(15) / 14
    shape = {
        "constant": np.ones(15),
        "linear": 1 - left,
        "cosine": (1 + np.cos(np.pi * left)) / 2,
    }[schedule]
    np.testing.assert_allclose(found[6:], PEAK * shape, atol=1e-7)


def test_a_warm_up_of_one_update_is_at_the_peak_at_once():
    """n = 1: the only rate of 1/n, ..., 1 is the peak."""
    found = rates(config(minibatches=1, warmup_steps=1), 4)
    np.testing.assert_allclose(found, PEAK)


def test_a_warm_up_longer_than_the_run_never_reaches_the_peak():
    """2 steps of 2 updates, 4 steps of warm-up: 1/8 to 4/8."""
    found = rates(config(steps=2, warmup_steps=4, schedule="linear"), 4)
    np.testing.assert_allclose(found, PEAK * np.arange(1, 5) / 8, rtol=1e-6)


def updates(settings, gradients, parameters):
    """What the optimizer adds at each of the gradients, from the same parameters."""
    optimizer = make_optimizer(settings)
    state = optimizer.init(parameters)
    added = []
    for gradient in gradients:
        change, state = optimizer.update(gradient, state, parameters)
        added.append(np.asarray(change))
    return added


def adamw(gradients, parameters, rates, *, b1, b2, eps, decay):
    """Loshchilov & Hutter, algorithm 2, with bias correction, in float64."""
    first = second = np.zeros_like(parameters)
    added = []
    for number, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        first = b1 * first + (1 - b1) * g
        second = b2 * second + (1 - b2) * g**2
        step = (first / (1 - b1**number)) / (np.sqrt(second / (1 - b2**number)) + eps)
        added.append(-rate * (step + decay * parameters))
    return added


def test_adamw_reads_every_setting():
    settings = config(
        steps=4,
        minibatches=1,
        schedule="linear",
        adam_b1=0.8,
        adam_b2=0.95,
        adam_eps=1e-3,
        weight_decay=0.1,
        max_grad_norm=0.0,
    )
    gradients = np.array([[0.3, -2.0], [0.1, 1.0], [-0.2, 4.0]])
    parameters = np.array([1.0, -3.0])
    expected = adamw(
        gradients,
        parameters,
        PEAK * (1 - np.arange(3) / 4),
        b1=0.8,
        b2=0.95,
        eps=1e-3,
        decay=0.1,
    )
    found = updates(
        settings,
        jnp.asarray(gradients, jnp.float32),
        jnp.asarray(parameters, jnp.float32),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_clip_acts_on_the_norm_of_the_whole_gradient():
    """Norm 5 to 1: [3, 4] counts as [0.6, 0.8]; a norm below 1 stays. The expected
    updates are those of an unclipped AdamW that is given the clipped gradients."""
    parameters = jnp.zeros(2)
    options = {"minibatches": 1, "adam_eps": 1.0}
    gradients = jnp.array([[3.0, 4.0], [0.3, 0.4]])
    clipped = updates(config(**options, max_grad_norm=1.0), gradients, parameters)
    by_hand = jnp.array([[0.6, 0.8], [0.3, 0.4]])
    unclipped = config(**options, max_grad_norm=0.0)
    expected = updates(unclipped, by_hand, parameters)
    np.testing.assert_allclose(clipped, expected, rtol=1e-6)
    free = updates(unclipped, gradients, parameters)
    assert np.abs(free[0] - clipped[0]).max() > 0.05


def test_the_schedule_counts_updates_inside_the_optimizer():
    """Constant gradients give AdamW steps of exactly the learning rate (eps 0).

    Moments that halve keep the bias corrections exact in float32.
    """
    halves = {"adam_b1": 0.5, "adam_b2": 0.5, "adam_eps": 0.0}
    settings = config(steps=2, schedule="linear", max_grad_norm=0.0, **halves)
    found = updates(settings, jnp.ones((4, 1)), jnp.zeros(1))
    expected = -PEAK * (1 - np.arange(4) / 4)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-5)


def test_moments_that_start_anew_leave_the_schedule_where_it_is():
    """ProRL's reset: constant gradients give steps of the learning rate, which goes on
    down; the first step after the reset is corrected like a first one."""
    halves = {"adam_b1": 0.5, "adam_b2": 0.5, "adam_eps": 0.0}
    settings = config(steps=2, schedule="linear", max_grad_norm=0.0, **halves)
    optimizer = make_optimizer(settings)
    parameters, found = jnp.zeros(1), []
    state = optimizer.init(parameters)
    for update in range(4):
        if update == 2:
            state = started_anew(optimizer.init(parameters), state)
        change, state = optimizer.update(jnp.ones(1), state, parameters)
        found.append(float(change[0]))
        assert updates_made(state) == update + 1
    np.testing.assert_allclose(found, -PEAK * (1 - np.arange(4) / 4), rtol=1e-5)
