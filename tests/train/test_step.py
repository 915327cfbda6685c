"""The fused step against a plain computation, and against itself cut up otherwise."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from rlvr_jax.config import Objective
from rlvr_jax.train.policy import new_state
from rlvr_jax.train.step import train_step
from tests import bigram, tiny

ROUNDING = 1e-6
"""Two units in the last place of float32 numbers between 4 and 8, as the largest
parameters are: what summing in another order may do. Measured 5.4e-7."""
AGGREGATIONS = ("sequence_mean", "token_mean", "constant", "prompt_mean")


@pytest.fixture(scope="module")
def policy():
    return tiny.policy()


@pytest.fixture(scope="module")
def rollouts(policy):
    return tiny.rollouts(*policy)


def one_step(policy, rollouts, objective=None, *, reference=None, **options):
    graphdef, parameters = policy
    plan = tiny.plan(graphdef, objective, **options)
    step = jax.jit(functools.partial(train_step, plan=plan))
    state = tiny.state(parameters, plan, reference)
    rewards = tiny.rewards(rollouts.ended.shape[1])
    return step(state, rollouts, rewards, rewards)


def row_logprobs(decoder, rollouts, temperature=1.0):
    """Log-probs of each completion alone: prompt and completion in one plain row."""
    rows = {}
    for p, g in np.ndindex(rollouts.ended.shape):
        length = int(rollouts.prompt_lengths[p])
        count = int(rollouts.completion_lengths[p, g])
        prompt = rollouts.prompt_tokens[p, -length:]
        completion = rollouts.completion_tokens[p, g, :count]
        row = jnp.concatenate([prompt, completion])[None]
        hidden, _ = decoder.prefill(row, jnp.array([length + count]))
        logits = hidden[0] @ decoder.head_weight.T / temperature
        logprobs = jax.nn.log_softmax(logits)[length - 1 : -1]
        rows[p, g] = logprobs[jnp.arange(count), completion]
    return rows


def dapo_loss(parameters, graphdef, rollouts, rewards):
    """DAPO's token-mean loss at ratio 1, written as loops over completions."""
    rows = row_logprobs(nnx.merge(graphdef, parameters), rollouts)
    total, tokens = 0.0, 0
    for (p, g), logprobs in rows.items():
        group = np.asarray(rewards[p], np.float64)
        if not rollouts.ended[p, g]:
            continue
        tokens += len(logprobs)
        if group.std() > 0:
            advantage = (group[g] - group.mean()) / (group.std() + 1e-6)
            ratio = jnp.exp(logprobs - jax.lax.stop_gradient(logprobs))
            total -= (ratio * float(advantage)).sum()
    return total / tokens


def test_gradient_equals_a_loop_over_completions(policy, rollouts):
    """CLIP-06, OBJ-12: the expected value is the formula, one completion at a time."""
    graphdef, parameters = policy
    rewards = tiny.rewards()
    loss, gradients = jax.value_and_grad(dapo_loss)(
        parameters, graphdef, rollouts, rewards
    )
    state, metrics = one_step(policy, rollouts, optimizer=optax.sgd(1.0))
    moved = jax.tree.map(jnp.subtract, parameters, state.parameters)
    assert 0 < float(rollouts.ended.mean()) < 1  # the filter has something to do
    np.testing.assert_allclose(metrics["loss/total"], loss, atol=1e-6)
    np.testing.assert_allclose(
        metrics["grad/norm"], optax.tree.norm(gradients), rtol=1e-5
    )
    # Measured 2e-8 on gradients of up to 0.1; float32 sums in another order.
    assert tiny.largest_difference(moved, gradients) < 1e-6


@pytest.mark.parametrize("loss_aggregation", AGGREGATIONS)
@pytest.mark.parametrize("surrogate", ["clip", "reinforce"])
def test_micro_batch_size_changes_nothing(rollouts, loss_aggregation, surrogate):
    """Whole groups (8), one group (4) and parts of a group (2, 1) make one gradient."""
    objective = Objective(
        loss_aggregation=loss_aggregation, surrogate=surrogate, overlong_filter=False
    )
    run = functools.partial(
        one_step, bigram.policy(), rollouts, objective, minibatches_per_step=2
    )
    whole, metrics = run(micro_batch_size=0)
    for size in (8, 4, 2, 1):
        state, cut = run(micro_batch_size=size)
        # float32 sums in another order.
        assert tiny.largest_difference(state.parameters, whole.parameters) < 5e-7, size
        for name in metrics:
            np.testing.assert_allclose(
                cut[name], metrics[name], rtol=2e-5, atol=1e-6, err_msg=name
            )


def test_micro_batch_size_changes_nothing_for_the_decoder(policy, rollouts):
    """The same with attention, for a group cut in two."""
    run = functools.partial(one_step, policy, rollouts, minibatches_per_step=2)
    whole, cut = run(micro_batch_size=0)[0], run(micro_batch_size=2)[0]
    assert tiny.largest_difference(cut.parameters, whole.parameters) < ROUNDING


def mesh_step(policy, rollouts, mesh_shape, *, learning_rate, epochs):
    """New parameters and metrics, on the host, with a KL term."""
    graphdef, parameters = policy
    plan = tiny.plan(
        graphdef,
        Objective(beta=0.1),
        mesh_shape=mesh_shape,
        optimizer=optax.sgd(learning_rate),
        epochs_per_step=epochs,
    )
    state = new_state(parameters, plan)
    rewards = tiny.rewards()
    step = jax.jit(functools.partial(train_step, plan=plan))
    state, metrics = step(state, rollouts, rewards, rewards)
    return jax.device_get((state.parameters, metrics))


@pytest.mark.parametrize("mesh_shape", [(8, 1, 1), (1, 8, 1), (4, 2, 1)])
def test_row_devices_change_nothing(rollouts, mesh_shape):
    """The same new parameters and metrics on 1 and 8 devices, to float32 rounding."""
    # Two updates: the second one has ratios, which a small step keeps near 1.
    run = functools.partial(
        mesh_step, bigram.policy(), rollouts, learning_rate=0.01, epochs=2
    )
    single, metrics = run((1, 1, 1))
    sharded, others = run(mesh_shape)
    assert tiny.largest_difference(single, sharded) < 5e-7
    for name in metrics:
        np.testing.assert_allclose(
            others[name], metrics[name], rtol=1e-4, atol=2e-6, err_msg=name
        )


def test_split_layers_change_nothing(policy, rollouts):
    """The decoder on a 2 x 2 x 2 mesh: data, fsdp and tensor at once."""
    # One update at rate 1: parameters move by the gradient, of norm 15.
    run = functools.partial(mesh_step, policy, rollouts, learning_rate=1.0, epochs=1)
    single, _ = run((1, 1, 1))
    sharded, _ = run((2, 2, 2))
    assert tiny.largest_difference(single, sharded) < ROUNDING


def test_single_update_needs_no_old_logprobs(policy, rollouts):
    """One update with the policy as its own old policy = the first of two updates."""
    graphdef, parameters = policy
    once, _ = one_step(policy, rollouts)
    frozen = optax.chain(optax.sgd(0.1), optax.scale_by_schedule(lambda n: n == 0))
    twice, metrics = one_step(policy, rollouts, optimizer=frozen, epochs_per_step=2)
    assert tiny.largest_difference(once.parameters, twice.parameters) < 5e-7
    assert metrics["ratio/max"] > 1  # the second pass is off-policy
    del graphdef, parameters


@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.6}, {"top_p": 0.9}, {"top_k": 5, "min_p": 0.05}]
)
def test_ratio_is_one_before_the_first_update(policy, sampling):
    """CLIP-32: the trainer's log-probs are the sampler's, also under truncation."""
    rollouts = tiny.rollouts(*policy, **sampling)
    temperature = sampling.get("temperature", 1.0)
    _, metrics = one_step(policy, rollouts, temperature=temperature)
    # Log-probs of up to 10 nats in float32, computed in another order.
    assert metrics["mismatch/abs_logprob_max"] < 1e-5
    assert metrics["ratio/max"] == metrics["ratio/min"] == 1.0


def test_truncation_without_the_kept_set_is_off_policy(policy):
    """CLIP-32, the other half: dropping the kept sets leaves ratios away from 1."""
    rollouts = tiny.rollouts(*policy, top_p=0.9)
    blind = dataclasses.replace(rollouts, kept_tokens=None)
    _, metrics = one_step(policy, blind)
    assert metrics["mismatch/abs_logprob_mean"] > 0.02


def test_kl_in_the_loss_pulls_to_the_reference(policy, rollouts):
    """With all rewards equal only the KL term moves the policy, to the reference."""
    graphdef, parameters = policy
    _, reference = tiny.policy(seed=1)
    plan = tiny.plan(
        graphdef,
        Objective(beta=1.0, overlong_filter=False),
        optimizer=optax.sgd(0.002),
    )
    step = jax.jit(functools.partial(train_step, plan=plan))
    state = tiny.state(parameters, plan, reference)
    equal = jnp.ones(rollouts.ended.shape)
    gaps = []
    for _ in range(5):
        state, metrics = step(state, rollouts, equal, equal)
        gaps.append(float(metrics["kl/reference"]))
        assert metrics["loss/policy"] == 0.0
    assert all(later < earlier for earlier, later in itertools.pairwise(gaps))


def test_kl_in_the_reward_changes_rewards_only(policy, rollouts):
    """KL-09: A = group-centred (r - beta * sum_t k1), computed here by hand."""
    graphdef, parameters = policy
    _, reference = tiny.policy(seed=1)
    objective = Objective(
        beta=0.5, kl_placement="reward", kl_estimator="k1", scale_rewards="none"
    )
    _, metrics = one_step(policy, rollouts, objective, reference=reference)
    ours = row_logprobs(nnx.merge(graphdef, parameters), rollouts)
    theirs = row_logprobs(nnx.merge(graphdef, reference), rollouts)
    kl = np.array([float((ours[key] - theirs[key]).sum()) for key in ours])
    expected = np.asarray(tiny.rewards()) - 0.5 * kl.reshape(rollouts.ended.shape)
    np.testing.assert_allclose(
        metrics["reward/shaped_mean"], expected.mean(), rtol=1e-5
    )
    centred = expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(
        metrics["advantage/abs_mean"], np.abs(centred).mean(), rtol=1e-5
    )
    assert "loss/kl" not in metrics


def test_gradient_that_is_not_finite_is_skipped(policy, rollouts):
    """Parameters and moments stay; the metric says so."""
    graphdef, parameters = policy
    broken = jax.tree.map(jnp.copy, parameters)
    broken["final_norm"] = broken["final_norm"].replace(
        broken["final_norm"].get_value().at[0].set(jnp.nan)
    )
    plan = tiny.plan(graphdef, optimizer=optax.adam(1e-2))
    state = tiny.state(broken, plan)
    rewards = tiny.rewards()
    new, metrics = jax.jit(functools.partial(train_step, plan=plan))(
        state, rollouts, rewards, rewards
    )
    assert metrics["optimizer/skipped"] == 1.0
    np.testing.assert_array_equal(
        new.parameters["embedding"].get_value(), parameters["embedding"].get_value()
    )
    assert optax.tree.norm(new.optimizer[0].mu) == 0.0
    assert int(new.step) == 1


def test_nothing_to_learn_leaves_the_policy(policy, rollouts):
    """All completions cut and filtered: no division by zero, no update."""
    cut = dataclasses.replace(rollouts, ended=jnp.zeros_like(rollouts.ended))
    state, metrics = one_step(policy, cut, optimizer=optax.adam(1e-2))
    assert metrics["optimizer/skipped"] == 1.0
    assert metrics["loss/total"] == 0.0
    assert tiny.largest_difference(state.parameters, policy[1]) == 0.0


def test_the_second_step_compiles_nothing(rollouts):
    """What a step returns has the shardings and types of what it took."""
    graphdef, parameters = bigram.policy()
    plan = tiny.plan(graphdef, optimizer=optax.adamw(1e-3))
    state = new_state(parameters, plan)
    step = jax.jit(functools.partial(train_step, plan=plan))
    for _ in range(2):
        state, _ = step(state, rollouts, tiny.rewards(), tiny.rewards())
    assert step._cache_size() == 1


def test_policy_learns(policy):
    """Forty steps on "draw even tokens": the reward rises from 0.5 to above 0.9."""
    graphdef, parameters = policy
    plan = tiny.plan(
        graphdef,
        Objective(overlong_filter=False),
        optimizer=optax.adamw(3e-3),
        minibatches_per_step=2,
    )
    step = jax.jit(functools.partial(train_step, plan=plan))
    state, means = tiny.state(parameters, plan), []
    for index in range(40):
        drawn = tiny.rollouts(graphdef, state.parameters, seed=index)
        even = (drawn.completion_tokens % 2 == 0) & drawn.token_mask
        reward = even.sum(-1) / drawn.token_mask.sum(-1)
        state, metrics = step(state, drawn, reward, reward)
        means.append(float(metrics["reward/mean"]))
    assert np.mean(means[:2]) < 0.65
    assert np.mean(means[-5:]) > 0.9
