"""The critic in the step: what it learns, when, and what it leaves alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlvr_jax.config import CriticConfig, Objective
from rlvr_jax.core import gae
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train.critic import batch_values, new_critic
from rlvr_jax.train.step import train_step
from tests import bigram, tiny

GAE = Objective(advantage="gae", scale_rewards="none", overlong_filter=False)


@pytest.fixture(scope="module")
def rollouts():
    return tiny.rollouts(*tiny.policy())


def stepper(objective=GAE, *, critic=None, **batch):
    """A step and its first state; every update is plain gradient descent."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, objective, **batch)
    plan = dataclasses.replace(plan, critic=critic or CriticConfig())
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    return step, tiny.state(parameters, plan), plan


def values_of(state, rollouts, plan):
    return batch_values(state.critic.parameters, rollouts, plan)


def test_a_new_critic_is_the_policy_and_says_zero(rollouts):
    _, state, plan = stepper()
    assert float(jnp.abs(values_of(state, rollouts, plan)).max()) == 0.0
    copy = state.critic.parameters["decoder"]
    assert tiny.largest_difference(copy, state.parameters) == 0.0


def test_the_first_update_is_the_gradient_of_the_squared_error(rollouts):
    """PG-23: 1/2 mean (V - R)^2 over sampled tokens, R the reward of the completion.

    At V = 0 its gradient on the bias is -mean R, on the head -mean R h.
    """
    step, state, _ = stepper()
    rewards = tiny.rewards()
    new, metrics = step(state, rollouts, rewards, rewards)
    mask = np.asarray(rollouts.token_mask)
    returns = np.where(mask, np.asarray(rewards)[..., None], 0.0)
    change = new.critic.parameters["value_bias"] - state.critic.parameters["value_bias"]
    np.testing.assert_allclose(change, 0.1 * returns.sum() / mask.sum(), rtol=1e-6)
    loss = 0.5 * (returns**2).sum() / mask.sum()
    np.testing.assert_allclose(metrics["critic/loss"], loss, rtol=1e-6)
    np.testing.assert_allclose(
        metrics["critic/return_mean"], returns.sum() / mask.sum(), rtol=1e-6
    )
    # Where V says the same of every token it explains nothing.
    np.testing.assert_allclose(metrics["critic/explained_variance"], 0.0, atol=1e-6)


def test_advantages_are_those_of_gae_under_the_old_values(rollouts):
    """PG-23, F-09: the policy's gradient is that of the batch's GAE advantages."""
    step, state, _ = stepper()
    biased = state.critic.parameters | {"value_bias": jnp.float32(0.3)}
    critic = dataclasses.replace(state.critic, parameters=biased)
    state = dataclasses.replace(state, critic=critic)
    rewards = tiny.rewards()
    _, metrics = step(state, rollouts, rewards, rewards)
    mask = rollouts.token_mask.reshape(-1, tiny.LENGTH)
    last = jnp.cumsum(mask[:, ::-1], axis=1)[:, ::-1] == 1
    paid = jnp.where(last & mask, rewards.reshape(-1, 1), 0.0)
    advantages = gae.gae(paid, jnp.full(mask.shape, 0.3), mask, lam=0.95)
    expected = jnp.abs(advantages).sum() / mask.sum()
    np.testing.assert_allclose(metrics["advantage/abs_mean"], expected, rtol=1e-5)


def test_the_critic_comes_to_explain_the_returns(rollouts):
    """Its error falls and its explained variance rises on one batch."""
    critic = CriticConfig(updates_per_minibatch=5)
    objective = dataclasses.replace(GAE, value_clip=0.0)
    step, state, _ = stepper(objective, critic=critic)
    rewards, seen = tiny.rewards(), []
    for _ in range(6):
        state, metrics = step(state, rollouts, rewards, rewards)
        seen.append(
            (
                float(metrics["critic/loss"]),
                float(metrics["critic/explained_variance"]),
            )
        )
    assert seen[-1][0] < 0.8 * seen[0][0]
    assert seen[-1][1] > 0.1


def test_pretraining_moves_the_critic_alone(rollouts):
    """PG-37, F-10: the policy stays for the given number of steps, then learns."""
    step, state, _ = stepper(critic=CriticConfig(pretraining_steps=1))
    rewards = tiny.rewards()
    first, _ = step(state, rollouts, rewards, rewards)
    assert tiny.largest_difference(first.parameters, state.parameters) == 0.0
    assert float(first.critic.parameters["value_bias"]) != 0.0
    second, _ = step(first, rollouts, rewards, rewards)
    assert tiny.largest_difference(second.parameters, first.parameters) > 1e-4


def test_values_move_by_at_most_the_clip(rollouts):
    """PG-23: a large learning rate cannot take a value further than `value_clip`
    towards its target within a step: beyond, its gradient is zero."""
    objective = dataclasses.replace(GAE, value_clip=0.05)
    settings = CriticConfig(updates_per_minibatch=50)
    step, state, plan = stepper(objective, critic=settings)
    rewards = jnp.ones_like(tiny.rewards())
    new, metrics = step(state, rollouts, rewards, rewards)
    moved = jnp.where(rollouts.token_mask, values_of(new, rollouts, plan), 0.0)
    assert float(metrics["critic/clip_share"]) > 0.5
    free = dataclasses.replace(GAE, value_clip=0.0)
    step, state, plan = stepper(free, critic=settings)
    new, _ = step(state, rollouts, rewards, rewards)
    far = jnp.where(rollouts.token_mask, values_of(new, rollouts, plan), 0.0)
    assert float(moved.mean()) < 0.5 * float(far.mean())


def test_frozen_attention_stays(rollouts):
    """PG-30: SAO trains the critic without its attention: those arrays do not move."""
    graphdef, parameters = tiny.policy()
    plan = tiny.plan(graphdef, GAE, minibatches_per_step=1)
    plan = dataclasses.replace(
        plan,
        critic=CriticConfig(freeze_attention=True),
        # With weight decay, which moves what has no gradient.
        critic_optimizer=optax.chain(optax.add_decayed_weights(0.1), optax.sgd(1.0)),
    )
    state = tiny.state(parameters, plan)
    # A head that is not zero, so that the layers below have a gradient.
    head = state.critic.parameters | {"value_head": jnp.ones(32)}
    critic = dataclasses.replace(state.critic, parameters=head)
    state = dataclasses.replace(state, critic=critic)
    rewards = tiny.rewards()
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    new, _ = step(state, rollouts, rewards, rewards)
    old_leaves = jax.tree_util.tree_leaves_with_path(state.critic.parameters)
    moved = {}
    for (path, old), leaf in zip(
        old_leaves, jax.tree.leaves(new.critic.parameters), strict=True
    ):
        name = [k.key for k in path if isinstance(k, jax.tree_util.DictKey)][-1]
        moved[name] = float(jnp.abs(old - leaf).max()) > 0
    frozen = {"attention_norm", "query", "key", "value", "output"}
    assert {name for name, did in moved.items() if not did} == frozen


def test_new_critic_shapes():
    parameters = new_critic(bigram.policy()[1], 8)
    assert parameters["value_head"].shape == (8,)
    assert parameters["value_bias"].shape == ()


def test_a_run_bootstraps_its_cut_completions(rollouts):
    """CLIP-22: with bootstrap_truncated the shaped rewards are those of the formula,
    cut rows paid their value, and no other.

    The critic starts at 0, so its first bias decides: V = 0.25 everywhere.
    """
    ended = np.asarray(rollouts.ended)
    assert 0 < ended.mean() < 1
    found = {}
    for bootstrap in (False, True):
        objective = Objective(
            advantage="gae", scale_rewards="none", bootstrap_truncated=bootstrap
        )
        graph, policy = bigram.policy()
        plan = tiny.plan(graph, objective)
        state = tiny.state(policy, plan)
        state = dataclasses.replace(
            state,
            critic=dataclasses.replace(
                state.critic,
                parameters=state.critic.parameters | {"value_bias": jnp.float32(0.25)},
            ),
        )
        step = jax.jit(
            functools.partial(train_step, plan=plan),
            compiler_options={"xla_backend_optimization_level": 0},
        )
        _, metrics = step(state, rollouts, tiny.rewards(), tiny.rewards())
        found[bootstrap] = float(metrics["reward/shaped_mean"])
    rewards = np.asarray(tiny.rewards())
    np.testing.assert_allclose(found[False], rewards.mean(), rtol=1e-6)
    expected = np.where(ended, rewards, 0.25).mean()
    np.testing.assert_allclose(found[True], expected, rtol=1e-6)


def test_the_step_skips_observations_and_counts_one_lambda_over_them(rollouts):
    """PG-30: a completion with written tokens in it, as a tool's answer is, V = 0: an
    action token with k action tokens after it gets lam^k R, lam = 1 - 1 / (1.5 l) of
    the l action tokens; how long the observation is does not matter."""
    objective = Objective(name="sao", **PRESETS["sao"])
    place = np.arange(tiny.LENGTH)
    forced = np.zeros(rollouts.completion_tokens.shape, bool)
    forced[:, 0] = (place >= 1) & (place < 3)
    forced[:, 1] = place == 2
    forced &= np.asarray(rollouts.token_mask)
    steered = dataclasses.replace(rollouts, forced=jnp.asarray(forced))
    rewards = tiny.rewards()
    step, state, _ = stepper(objective)
    _, metrics = step(state, steered, rewards, rewards)
    mask = np.asarray(steered.token_mask)
    assert (mask.sum(-1) < np.asarray(rollouts.token_mask).sum(-1)).any()
    after = mask[..., ::-1].cumsum(-1)[..., ::-1] - mask
    actions = mask.sum(-1, keepdims=True)
    lam = np.maximum(1 - 1 / np.maximum(1.5 * actions, 1), 0)
    expected = mask * lam**after * np.asarray(rewards)[..., None]
    np.testing.assert_allclose(
        metrics["advantage/abs_mean"], expected.sum() / mask.sum(), rtol=1e-5
    )


def test_two_critic_updates_beside_one_of_the_policy(rollouts):
    """PG-30: SAO's critic is updated twice per policy step. Targets are the rewards, so
    that two steps of one update each leave the same critic, and another policy."""
    objective = dataclasses.replace(GAE, value_clip=0.0)
    rewards = tiny.rewards()
    step, state, _ = stepper(objective, critic=CriticConfig(updates_per_minibatch=2))
    twice, _ = step(state, rollouts, rewards, rewards)
    single, state, _ = stepper(objective)
    once, _ = single(state, rollouts, rewards, rewards)
    again, _ = single(once, rollouts, rewards, rewards)
    gap = tiny.largest_difference(twice.critic.parameters, again.critic.parameters)
    assert gap < 1e-6
    assert tiny.largest_difference(twice.parameters, once.parameters) == 0
    assert tiny.largest_difference(again.parameters, once.parameters) > 1e-4
    moved = tiny.largest_difference(twice.critic.parameters, once.critic.parameters)
    assert moved > 1e-3


def test_bias_by_quarters_is_logged(rollouts):
    """OBJ-04: V = 0.25 on every token; R is the completion's reward."""
    step, state, _ = stepper()
    biased = state.critic.parameters | {"value_bias": jnp.float32(0.25)}
    critic = dataclasses.replace(state.critic, parameters=biased)
    rewards = np.asarray(tiny.rewards())
    _, metrics = step(
        dataclasses.replace(state, critic=critic), rollouts, rewards, rewards
    )
    mask = np.asarray(rollouts.token_mask)
    length = mask.sum(-1, keepdims=True)
    quarter = np.arange(tiny.LENGTH) * 4 // length
    for name, number in (("critic/bias_first", 0), ("critic/bias_last", 3)):
        counted = mask & (quarter == number)
        bias = (counted * (0.25 - rewards[..., None])).sum() / counted.sum()
        np.testing.assert_allclose(metrics[name], bias, rtol=1e-5)
