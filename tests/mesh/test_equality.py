"""A mesh changes nothing: completions, losses, gradients, parameters of one device."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.config import Objective
from rlvr_jax.mesh.mesh import ROW_AXES, make_mesh, rearranged, row_spec
from rlvr_jax.mesh.sharding import check_heads, parameter_shardings
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.train.policy import new_state
from rlvr_jax.train.sampler_plan import SamplerPlan, weights_program
from rlvr_jax.train.step import train_step
from tests import tiny

DEFAULT = [(2, 2, 2), (1, 1, 8)]
SHAPES = [
    (data, fsdp, 8 // data // fsdp)
    for data in (1, 2, 4, 8)
    for fsdp in (1, 2, 4, 8)
    if data * fsdp <= 8
]
"""All ten ways to lay 8 devices out."""


def marked(shapes):
    slow = pytest.mark.slow
    return [
        shape if shape in DEFAULT else pytest.param(shape, marks=slow)
        for shape in shapes
    ]


PAIRS = [((1, 8, 1), (1, 1, 8)), ((2, 2, 2), (8, 1, 1))]
"""Of training and of sampling."""


def test_there_are_ten_shapes():
    assert len(SHAPES) == 10


@pytest.fixture(scope="module")
def policy():
    """Eight heads, so that eight tensor devices have one each; four of keys and
    values, which two devices then share. A vocabulary that divides, too."""
    return tiny.policy(num_heads=8, num_kv_heads=4, vocab_size=64)


@pytest.fixture(scope="module")
def alone(policy):
    """Rollouts and a step on a single device."""
    rollouts = drawn(policy, (1, 1, 1))
    return rollouts, learned(policy, rollouts, (1, 1, 1))


def drawn(policy, shape):
    """Completions sampled on the mesh, on the host."""
    graphdef, parameters = policy
    mesh = make_mesh(shape, jax.devices()[: np.prod(shape)])
    parameters = jax.device_put(parameters, parameter_shardings(parameters, mesh))
    return on_host(sampled_on(mesh, graphdef, parameters))


def on_host(rollouts):
    """Not held to the devices of a mesh: others will take them."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), rollouts)


def sampled_on(mesh, graphdef, parameters):
    rows = NamedSharding(mesh, PartitionSpec(ROW_AXES))
    tokens, lengths = jax.device_put(tiny.prompts(), rows)
    keys = row_keys(0, 0, jnp.arange(tiny.PROMPTS), tiny.GENERATIONS)
    sampling = Sampling(tiny.GENERATIONS, tiny.LENGTH, tiny.END_IDS)
    return sample(graphdef, parameters, tokens, lengths, keys, sampling=sampling)


def learned(policy, rollouts, shape, **batch):
    """What one update at rate 1 subtracts (the gradient), and the metrics.

    Not Adam: it divides by the size of a gradient, and so makes the rounding of one
    near 0 as large as any other.
    """
    graphdef, parameters = policy
    plan = tiny.plan(
        graphdef,
        Objective(beta=0.1),
        mesh_shape=shape,
        optimizer=optax.sgd(1.0),
        **batch,
    )
    step = jax.jit(functools.partial(train_step, plan=plan))
    state = new_state(parameters, plan)
    rewards = tiny.rewards()
    state, metrics = step(state, rollouts, rewards, rewards)
    new = jax.device_get(state.parameters)
    gradients = jax.tree.map(lambda a, b: np.asarray(a) - b, parameters, new)
    return gradients, new, jax.device_get(metrics)


@pytest.mark.parametrize("shape", marked(SHAPES))
def test_a_mesh_changes_nothing(policy, alone, shape):
    """Of every shape of 8 devices, tokens exactly and numbers to rounding."""
    rollouts, _ = alone
    assert_same_completions(drawn(policy, shape), rollouts)
    assert_same_step(learned(policy, rollouts, shape), alone[1])


@pytest.mark.parametrize("shape", [(2, 4, 1), (4, 2, 1), (2, 2, 2)])
def test_prompts_over_one_axis_and_completions_over_another(policy, alone, shape):
    """Two prompts x 4: no eight devices of one axis divide either."""
    rows = row_spec(make_mesh(shape), (2, 4))
    assert set(rows) == {"data", "fsdp"}
    single, ours = (
        learned(policy, alone[0], on, micro_batch_size=8) for on in ((1, 1, 1), shape)
    )
    assert_same_step(ours, single)


def assert_same_completions(ours, rollouts):
    for name in ("completion_tokens", "completion_lengths", "ended", "group_id"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(rollouts, name))
    np.testing.assert_allclose(
        ours.rollout_logprobs, rollouts.rollout_logprobs, atol=1e-5
    )


ROUNDING = 2e-6
"""Of gradients up to 1.2 in float32, summed in another order: one device differs from
itself by 0.7e-6 where it takes the batch in four parts, from two by up to 1.3e-6."""


def assert_same_step(ours, theirs):
    our_gradients, our_parameters, our_metrics = ours
    gradients, parameters, metrics = theirs
    largest = tiny.largest_difference(gradients, jax.tree.map(np.zeros_like, gradients))
    assert largest > 0.1  # there is something to compare
    assert tiny.largest_difference(our_parameters, parameters) < ROUNDING
    assert tiny.largest_difference(our_gradients, gradients) < ROUNDING
    assert our_metrics.keys() == metrics.keys()
    for name, value in metrics.items():
        # The mismatch of sampler and trainer is itself nothing but rounding.
        atol = 1e-5 if name.startswith("mismatch/") else 2e-6
        np.testing.assert_allclose(
            our_metrics[name], value, rtol=1e-4, atol=atol, err_msg=name
        )


def sampled_on_another(policy, shape, other):
    """As `launch.train` goes from one to the other; the sampler and its rollouts."""
    graphdef, parameters = policy
    mesh = make_mesh(shape)
    sampler = SamplerPlan(
        graphdef,
        rearranged(mesh, other),
        mesh,
        weights_program(parameters, "float32", mesh, rearranged(mesh, other)),
    )
    there = jax.device_put(parameters, parameter_shardings(parameters, mesh))
    weights = sampler.weights(there)
    on_host_alone = [jax.device_get(tree) for tree in (weights, parameters)]
    assert tiny.largest_difference(*on_host_alone) == 0
    return sampler, sampled_on(sampler.mesh, graphdef, weights)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("other", SHAPES)
def test_completions_of_every_pair_of_meshes(policy, alone, other):
    """Trained on any shape of eight devices, sampled on `other`."""
    for shape in SHAPES:
        _, rollouts = sampled_on_another(policy, shape, other)
        assert_same_completions(on_host(rollouts), alone[0])


@pytest.mark.parametrize(("shape", "other"), PAIRS)
def test_sampling_on_another_mesh_changes_nothing(policy, alone, shape, other):
    """Weights, completions, and what the step of training makes of these."""
    sampler, rollouts = sampled_on_another(policy, shape, other)
    assert_same_completions(on_host(rollouts), alone[0])
    ours = learned(policy, sampler.for_training(rollouts), shape)
    assert_same_step(ours, alone[1])
    # The policy that sampled is the one that learns: their log-probs are equal.
    assert ours[2]["mismatch/abs_logprob_max"] < 1e-5


def test_heads_that_do_not_divide_are_named():
    mesh = make_mesh((1, 1, 8))
    check_heads(8, mesh)
    with pytest.raises(
        ValueError, match="12 attention heads do not divide over 8"
    ) as e:
        check_heads(12, mesh)
    assert str(e.value).endswith("one of 1, 2, 3, 4, 6, 12.")
    with pytest.raises(ValueError, match=r"\(mesh\.rollout_shape=\(1, 1, 8\)\)"):
        check_heads(12, mesh, setting="mesh.rollout_shape")
