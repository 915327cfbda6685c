"""Bundles: an update computed again is the same, and a fault is found where it is."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from launch import replay as command
from rlvr_jax.config import Objective
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train import replay
from rlvr_jax.train.guard import Diverged, DivergenceGuard
from rlvr_jax.train.step import Extras, train_step
from tests import bigram, tiny


@pytest.fixture(scope="module")
def rollouts():
    return tiny.rollouts(*tiny.policy())


def bundle(rollouts, objective, folder):
    """The file of one update, and the loss that the step reports."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, objective)
    state = tiny.state(parameters, plan)
    if state.reference is not None:
        nearby = jax.tree.map(lambda leaf: 0.9 * leaf, parameters)
        state = dataclasses.replace(state, reference=nearby)
    rewards = tiny.rewards()
    path = folder / "replay" / "step_7.npz"
    replay.save(
        path, replay.capture(state, rollouts, rewards, rewards, plan), plan, step=7
    )
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    _, metrics = step(state, rollouts, rewards, rewards)
    return path, float(metrics["loss/total"])


@pytest.mark.parametrize("name", ["grpo", "dapo", "olmo3", "gspo", "vapo"])
def test_the_stored_loss_is_the_step_s_and_comes_out_again(rollouts, tmp_path, name):
    row = PRESETS[name]
    if name == "vapo":  # its imitation term; a bundle holds no critic
        row = {"imitation_coefficient": 0.1, "overlong_filter": False}
    path, loss = bundle(rollouts, Objective(name=name, **row), tmp_path)
    arrays, settings = replay.load(path)
    assert settings["step"] == 7
    np.testing.assert_allclose(arrays["stage/loss"], loss, rtol=1e-5, atol=1e-6)
    assert replay.compare(arrays, settings) is None


@pytest.mark.parametrize("stage", replay.STAGES)
def test_a_difference_is_named_at_its_stage(rollouts, tmp_path, stage):
    """A value planted in one stage is found there, not where it comes from or goes."""
    path, _ = bundle(rollouts, Objective(overlong_buffer_tokens=3), tmp_path)
    arrays, settings = replay.load(path)
    planted = arrays[f"stage/{stage}"].copy()
    at = np.unravel_index(planted.size - 1, planted.shape)
    planted[at] += 0.5
    arrays[f"stage/{stage}"] = planted
    found = replay.compare(arrays, settings)
    assert found is not None
    assert (found.stage, found.at) == (stage, tuple(at))
    np.testing.assert_allclose(found.largest, 0.5, rtol=1e-4)


def test_the_command_says_where_and_exits_with_1(rollouts, tmp_path, capsys):
    path, _ = bundle(rollouts, Objective(), tmp_path)
    with pytest.raises(SystemExit) as ended:
        command.main([str(path), "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == {"step": 7, "difference": None}
    arrays, settings = replay.load(path)
    arrays["stage/advantages"] = -arrays["stage/advantages"]
    broken = tmp_path / "broken.npz"
    with broken.open("wb") as file:
        np.savez(file, settings=json.dumps(settings), **arrays)
    with pytest.raises(SystemExit) as ended:
        command.main([str(broken)])
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    assert "shaped_rewards: agrees" in printed
    assert "advantages: differs" in printed


def test_what_is_no_bundle_is_an_error(tmp_path):
    path = tmp_path / "some.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"some\.npz is no bundle"):
        replay.load(path)


def test_advantages_of_a_critic_cannot_be_replayed(rollouts, tmp_path):
    objective = Objective(advantage="gae", scale_rewards="none")
    with pytest.raises(ValueError, match="needs more than a bundle holds"):
        bundle(rollouts, objective, tmp_path)


def test_the_guard_allows_some_bad_steps_in_a_row():
    guard = DivergenceGuard(max_steps=2)
    bad, good = {"optimizer/not_finite": 1.0}, {"optimizer/not_finite": 0.5}
    for step, metrics in enumerate([bad, bad, good, bad, bad]):
        guard.check(step, metrics)
    with pytest.raises(Diverged, match="steps 3 to 5, more than"):
        guard.check(5, bad)
    never = DivergenceGuard(max_steps=0)
    for step in range(50):
        never.check(step, bad)


def test_groups_outside_the_loss_stay_outside(rollouts):
    """curriculum.filter: the step's loss is over the kept groups, and so is a bundle's;
    scaled by the batch, their advantages depend on which those are."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, Objective(scale_rewards="batch"))
    state, rewards = tiny.state(parameters, plan), tiny.rewards()
    kept = jnp.arange(tiny.PROMPTS) % 3 > 0
    arrays = replay.capture(state, rollouts, rewards, rewards, plan, kept)
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    extras = Extras(kept_groups=kept)
    _, metrics = step(state, rollouts, rewards, rewards, extras)
    loss = float(metrics["loss/total"])
    np.testing.assert_allclose(arrays["stage/loss"], loss, rtol=1e-5, atol=1e-6)
    everything = replay.capture(state, rollouts, rewards, rewards, plan)
    assert abs(float(everything["stage/loss"]) - loss) > 1e-4
