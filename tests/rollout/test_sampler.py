"""Completions against plain forward passes, and against other ways to sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.core.sampling import unpack_bits
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from tests import tiny


@pytest.fixture(scope="module")
def policy():
    return tiny.policy()


@pytest.fixture(scope="module")
def rollouts(policy):
    return tiny.rollouts(*policy)


def full_logits(policy, rollouts, p, g):
    """Logits that predict each completion token, from one plain row."""
    decoder = nnx.merge(*policy)
    length = int(rollouts.prompt_lengths[p])
    count = int(rollouts.completion_lengths[p, g])
    row = jnp.concatenate(
        [rollouts.prompt_tokens[p, -length:], rollouts.completion_tokens[p, g, :count]]
    )
    hidden, _ = decoder.prefill(row[None], jnp.array([length + count]))
    return (hidden[0] @ decoder.head_weight.T)[length - 1 : -1]


@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.6}, {"top_p": 0.8}, {"top_k": 3}]
)
def test_logprobs_are_those_of_a_full_forward_pass(policy, sampling):
    """The expected log-prob is a softmax over the full row's kept logits."""
    rollouts = tiny.rollouts(*policy, **sampling)
    for p, g in ((0, 0), (3, 2), (7, 3)):
        logits = full_logits(policy, rollouts, p, g)
        logits = np.asarray(logits, np.float64) / sampling.get("temperature", 1.0)
        count = len(logits)
        if rollouts.kept_tokens is not None:
            words = rollouts.kept_tokens[p, g, :count]
            logits[~np.asarray(unpack_bits(words, tiny.VOCAB))] = -np.inf
        logprobs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        tokens = np.asarray(rollouts.completion_tokens[p, g, :count])
        np.testing.assert_allclose(
            rollouts.rollout_logprobs[p, g, :count],
            logprobs[np.arange(count), tokens],
            atol=2e-5,
        )


def test_greedy_takes_the_most_likely_token(policy):
    rollouts = tiny.rollouts(*policy, temperature=0.0)
    for p in range(tiny.PROMPTS):
        logits = full_logits(policy, rollouts, p, 0)
        count = int(rollouts.completion_lengths[p, 0])
        tokens = rollouts.completion_tokens[p, 0, :count]
        np.testing.assert_array_equal(tokens, jnp.argmax(logits, -1))


def test_a_completion_stops_at_any_end_token_and_keeps_it(rollouts):
    """Ended rows have one end token, their last; others have none and full length."""
    tokens = np.asarray(rollouts.completion_tokens)
    is_end = np.isin(tokens, tiny.END_IDS) & np.asarray(rollouts.token_mask)
    np.testing.assert_array_equal(is_end.sum(-1), np.asarray(rollouts.ended))
    last = np.asarray(rollouts.completion_lengths) - 1
    ended = np.asarray(rollouts.ended)
    assert 0 < ended.mean() < 1
    assert np.take_along_axis(is_end, last[..., None], -1)[ended].all()
    assert (last[~ended] == tiny.LENGTH - 1).all()
    assert len({int(t) for t in tokens[is_end]}) > 1
    padding = ~np.asarray(rollouts.token_mask)
    assert (np.asarray(rollouts.rollout_logprobs)[padding] == 0).all()


def test_the_loop_stops_when_all_rows_have_ended(policy):
    """With every token an end token one step is made, whatever the limit."""
    graphdef, parameters = policy
    tokens, lengths = tiny.prompts()
    sampling = Sampling(2, 10_000, end_ids=tuple(range(tiny.VOCAB)))
    keys = row_keys(0, 0, jnp.arange(tiny.PROMPTS), 2)
    rollouts = sample(graphdef, parameters, tokens, lengths, keys, sampling=sampling)
    assert (rollouts.completion_lengths == 1).all()


def test_frequencies_follow_the_policy(policy):
    """Chi-squared of 8 x 512 first tokens against the policy's own distribution."""
    graphdef, parameters = policy
    rollouts = tiny.rollouts(graphdef, parameters, generations=512, length=1)
    statistic, cells = 0.0, 0
    for p in range(tiny.PROMPTS):
        logits = full_logits(policy, rollouts, p, 0)[0]
        probabilities = np.asarray(jax.nn.softmax(logits))
        counts = np.bincount(
            np.asarray(rollouts.completion_tokens[p, :, 0]), minlength=tiny.VOCAB
        )
        common = probabilities > 0.01
        expected = 512 * probabilities[common]
        statistic += ((counts[common] - expected) ** 2 / expected).sum()
        cells += common.sum()
    # Mean `cells`, variance 2 * cells: five standard deviations.
    assert abs(statistic - cells) < 5 * np.sqrt(2 * cells)


def test_a_completion_does_not_depend_on_its_batch(policy, rollouts):
    """Half of the prompts, in another order, give the same completions."""
    graphdef, parameters = policy
    tokens, lengths = tiny.prompts()
    chosen = jnp.array([6, 1, 4, 3])
    keys = row_keys(0, 0, chosen, tiny.GENERATIONS)
    sampling = Sampling(tiny.GENERATIONS, tiny.LENGTH, tiny.END_IDS)
    part = sample(
        graphdef, parameters, tokens[chosen], lengths[chosen], keys, sampling=sampling
    )
    np.testing.assert_array_equal(
        part.completion_tokens, rollouts.completion_tokens[chosen]
    )


@pytest.mark.parametrize("mesh_shape", [(8, 1, 1), (2, 2, 2)])
def test_a_completion_does_not_depend_on_the_devices(policy, rollouts, mesh_shape):
    graphdef, parameters = policy
    mesh = make_mesh(mesh_shape)
    parameters = jax.device_put(parameters, parameter_shardings(parameters, mesh))
    rows = NamedSharding(mesh, PartitionSpec(("data", "fsdp")))
    tokens, lengths = jax.device_put(tiny.prompts(), rows)
    keys = row_keys(0, 0, jnp.arange(tiny.PROMPTS), tiny.GENERATIONS)
    sampling = Sampling(tiny.GENERATIONS, tiny.LENGTH, tiny.END_IDS)
    sharded = sample(graphdef, parameters, tokens, lengths, keys, sampling=sampling)
    np.testing.assert_array_equal(sharded.completion_tokens, rollouts.completion_tokens)
    np.testing.assert_allclose(
        sharded.rollout_logprobs, rollouts.rollout_logprobs, atol=1e-5
    )


def test_keys_differ_between_steps_prompts_and_samples():
    runs = [(seed, step) for seed in (0, 1) for step in (0, 1)]
    keys = [jax.random.key_data(row_keys(*run, jnp.arange(3), 4)) for run in runs]
    data = np.concatenate([np.asarray(key).reshape(-1, 2) for key in keys])
    assert len(np.unique(data, axis=0)) == 4 * 3 * 4


def test_no_compile_after_the_first_call(policy):
    tiny.rollouts(*policy)
    before = sample._cache_size()
    tiny.rollouts(*policy, seed=1)
    assert sample._cache_size() == before


@pytest.mark.parametrize("at_once", [1, 4])
def test_groups_of_prompts_give_the_same_completions(policy, rollouts, at_once):
    """Eight prompts, sampled 1 or 4 at a time: tokens exactly, log-probs to what a
    matrix product of other row counts rounds differently (2e-6 seen)."""
    found = tiny.rollouts(*policy, prompts_at_once=at_once)
    for name in ("prompt_tokens", "completion_tokens", "completion_lengths", "ended"):
        np.testing.assert_array_equal(getattr(found, name), getattr(rollouts, name))
    np.testing.assert_array_equal(found.group_id, rollouts.group_id)
    np.testing.assert_allclose(
        found.rollout_logprobs, rollouts.rollout_logprobs, atol=1e-5
    )
