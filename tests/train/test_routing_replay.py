"""Experts of the rollout replayed in training: what a nudge of the routers does.

A tiny decoder of four experts per layer, two per token, of which the first two are
tied for every token to about 3e-4. The nudge moves no logit of a router by more than
1e-3 (its std is 1.2e-4). With a std of 1e-3 the worst ratio under replay was 1.005: the
experts are the rollout's, but their gates move with the router.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.config import Objective
from rlvr_jax.train.step import train_step
from tests import tiny, tiny_experts

# The sampler as the denominator: the ratio says how far the trainer is from it.
OBJECTIVE = Objective(old_policy="rollout")
NORM = tiny_experts.ARCHITECTURE.hidden_size**0.5  # of what a router reads


def with_router(parameters, change):
    router = parameters["layers"]["router"]
    moved = jax.tree.map(lambda leaf: leaf, parameters)
    moved["layers"]["router"] = router.replace(change(router[...]))
    return moved


@pytest.fixture(scope="module")
def policy():
    graphdef, parameters = tiny_experts.policy()

    def tie(router):
        noise = jax.random.normal(jax.random.key(1), router[..., 0].shape)
        return router.at[..., 1].set(router[..., 0] + 3e-4 / NORM * noise)

    return graphdef, with_router(parameters, tie)


@pytest.fixture(scope="module")
def nudged(policy):
    def nudge(router):
        noise = jax.random.normal(jax.random.key(2), router.shape)
        return router + 1.2e-4 / NORM * noise

    return with_router(policy[1], nudge)


@pytest.fixture(scope="module")
def rollouts(policy):
    return tiny.rollouts(*policy)


@functools.cache
def program(graphdef, replay, **batch):
    plan = tiny.plan(graphdef, OBJECTIVE, replay_routing=replay, **batch)
    return plan, jax.jit(functools.partial(train_step, plan=plan))


def step(policy, rollouts, replay=True, **batch):
    graphdef, parameters = policy
    plan, run = program(graphdef, replay, **batch)
    rewards = tiny.rewards()
    return run(tiny.state(parameters, plan), rollouts, rewards, rewards)


def test_without_a_nudge_the_ratio_is_one(policy, rollouts):
    """CLIP-14: at the first step the trainer is the sampler, to float32 rounding."""
    state, metrics = step(policy, rollouts)
    assert metrics["mismatch/abs_logprob_max"] < 1e-5
    # Ties of 3e-4 and float32: hardly any is decided otherwise, and none counts.
    assert metrics["routing/flip_share"] < 0.01
    # Gates are computed with today's router: it learns although the choice is fixed.
    before = policy[1]["layers"]["router"][...]
    assert np.abs(state.parameters["layers"]["router"][...] - before).max() > 1e-5


def test_a_nudge_moves_the_ratio_without_replay_and_not_with_it(
    policy, nudged, rollouts
):
    """CLIP-14: ratios jump with the flipped experts, and are back within 1e-3 of 1.

    With replay only the shares of two experts move, each by a quarter of what their
    logits differ by more, some 1e-4; the head turns that into ratios off by a few times
    as much.
    """
    graphdef, _ = policy
    _, free = step((graphdef, nudged), rollouts, replay=False)
    _, forced = step((graphdef, nudged), rollouts)
    assert free["routing/flip_share"] > 0.005
    assert max(free["ratio/max"] - 1, 1 - free["ratio/min"]) > 0.1
    assert max(forced["ratio/max"] - 1, 1 - forced["ratio/min"]) < 1e-3
    # What training would have picked is measured in either case.
    np.testing.assert_allclose(
        forced["routing/flip_share"], free["routing/flip_share"], atol=0.02
    )


def test_flip_share_counts_experts_not_in_the_rollout(policy, nudged, rollouts):
    """By loops over tokens, layers and experts, with the decoder's own picks."""
    graphdef, _ = policy
    _, metrics = step((graphdef, nudged), rollouts, replay=False)

    @jax.jit
    def picks(state):
        decoder = nnx.merge(graphdef, state)
        _, cache = decoder.prefill(rollouts.prompt_tokens, rollouts.prompt_lengths)
        return decoder.read(rollouts.completion_tokens, cache)[1].routes

    found = np.moveaxis(np.asarray(picks(nudged)), 0, -2)
    flipped = total = 0
    for p, g in np.ndindex(rollouts.ended.shape):
        for t in range(int(rollouts.completion_lengths[p, g]) - 1):
            for layer in range(tiny_experts.ARCHITECTURE.num_layers):
                now = set(found[p, g, t, layer].tolist())
                then = set(np.asarray(rollouts.routes)[p, g, t, layer].tolist())
                flipped += len(now - then)
                total += 2
    np.testing.assert_allclose(
        metrics["routing/flip_share"], flipped / total, rtol=1e-6
    )


@pytest.mark.slow
def test_parts_of_a_group_change_nothing(policy, nudged, rollouts):
    """Routes are cut into micro-batches with their rows."""
    graphdef, _ = policy
    whole, metrics = step((graphdef, nudged), rollouts)
    cut, others = step((graphdef, nudged), rollouts, micro_batch_size=2)
    # Two units in the last place of the largest parameters, as in test_step.py.
    assert tiny.largest_difference(cut.parameters, whole.parameters) < 1e-6
    np.testing.assert_allclose(
        others["routing/flip_share"], metrics["routing/flip_share"], rtol=1e-6
    )


def test_routes_are_those_of_the_tokens(policy, rollouts):
    """One byte per expert; the last token of a completion has been read by nothing."""
    arch = tiny_experts.ARCHITECTURE
    shape = (*rollouts.completion_tokens.shape, arch.num_layers, 2)
    assert rollouts.routes.shape == shape
    assert rollouts.routes.dtype == jnp.uint8
    read = np.arange(tiny.LENGTH) < np.asarray(rollouts.completion_lengths)[..., None]
    routes = np.asarray(rollouts.routes)
    last = np.asarray(rollouts.completion_lengths)[..., None] - 1
    np.testing.assert_array_equal(routes[np.arange(tiny.LENGTH) >= last], 0)
    # Two different experts wherever a token was read.
    inner = read & (np.arange(tiny.LENGTH) < last)
    assert (routes[inner][..., 0] != routes[inner][..., 1]).all()
