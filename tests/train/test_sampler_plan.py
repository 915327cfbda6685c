"""From the parameters to the sampler's weights, and from its rollouts to the step's."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.config import Config, ModelConfig
from rlvr_jax.mesh.mesh import fetch, make_mesh, rearranged
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.train.sampler_plan import (
    SamplerPlan,
    rollout_shardings,
    sampler_plan,
    weights_program,
)
from rlvr_jax.validate import ConfigError
from tests import tiny


@pytest.fixture(scope="module")
def policy():
    """A vocabulary and heads that eight devices divide."""
    return tiny.policy(num_heads=8, num_kv_heads=4, vocab_size=64)


def placed(parameters, mesh):
    return jax.device_put(parameters, parameter_shardings(parameters, mesh))


def meshes(shape, rollout_shape):
    mesh = make_mesh(shape)
    return mesh, rearranged(mesh, rollout_shape)


@pytest.mark.parametrize(
    ("shape", "rollout_shape"),
    [((1, 8, 1), (1, 1, 8)), ((2, 2, 2), (8, 1, 1)), ((2, 2, 2), (2, 2, 2))],
)
def test_weights_are_the_parameters_rounded_and_laid_out_anew(
    policy, shape, rollout_shape
):
    mesh, rollout_mesh = meshes(shape, rollout_shape)
    parameters = placed(policy[1], mesh)
    program = weights_program(parameters, "bfloat16", mesh, rollout_mesh)
    weights = program(parameters)
    expected = jax.tree.leaves(parameter_shardings(parameters, rollout_mesh))
    leaves = zip(jax.tree.leaves(weights), jax.tree.leaves(policy[1]), strict=True)
    for (leaf, full), at in zip(leaves, expected, strict=True):
        assert leaf.sharding == at
        assert leaf.dtype == jnp.bfloat16
        np.testing.assert_array_equal(leaf, np.asarray(full).astype(jnp.bfloat16))
    # The update donates the parameters; these are still there.
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(parameters))


def test_weights_travel_between_devices_alone(policy):
    """One program of collectives: it calls nothing on the host."""
    mesh, rollout_mesh = meshes((1, 8, 1), (1, 1, 8))
    shapes = jax.tree.map(
        lambda leaf, at: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=at),
        policy[1],
        parameter_shardings(policy[1], mesh),
    )
    program: nnx.State | object = weights_program(
        shapes, "bfloat16", mesh, rollout_mesh
    )
    text = program.lower(shapes).compile().as_text()
    assert "all-to-all" in text
    for word in ("custom-call", "outfeed", "infeed", "send(", "recv("):
        assert word not in text, word


def test_rollouts_are_split_by_the_rows_of_training(policy):
    mesh, rollout_mesh = meshes((2, 2, 2), (1, 1, 8))
    weights = placed(policy[1], rollout_mesh)
    rollouts = tiny.rollouts(policy[0], weights, top_k=8)
    sampler = SamplerPlan(policy[0], rollout_mesh, mesh, lambda parameters: parameters)
    found = sampler.for_training(rollouts)
    leaves = jax.tree.leaves(found)
    expected = rollout_shardings(rollouts, mesh)
    assert [leaf.sharding for leaf in leaves] == expected
    # Eight prompts over four row devices: two on each, with their completions.
    assert found.prompt_tokens.addressable_shards[0].data.shape[0] == 2
    assert found.kept_tokens.addressable_shards[0].data.shape[:2] == (2, 4)
    for ours, theirs in zip(leaves, jax.tree.leaves(rollouts), strict=True):
        np.testing.assert_array_equal(fetch(ours), fetch(theirs))
    same = dataclasses.replace(sampler, mesh=mesh)
    assert same.for_training(rollouts) is rollouts


def test_prompts_whose_completions_are_split_are_everywhere(policy):
    """Two prompts of eight completions over eight row devices."""
    mesh = make_mesh((1, 8, 1))
    rollouts = jax.tree.map(lambda leaf: leaf[:2], tiny.rollouts(*policy))
    doubled = {
        field.name: jnp.concatenate([getattr(rollouts, field.name)] * 2, axis=1)
        for field in dataclasses.fields(rollouts)
        if not field.name.startswith("prompt_")
        and getattr(rollouts, field.name) is not None
    }
    rollouts = dataclasses.replace(rollouts, **doubled)
    found = SamplerPlan(
        policy[0], make_mesh((1, 1, 8)), mesh, lambda parameters: parameters
    ).for_training(rollouts)
    assert found.prompt_tokens.sharding.is_fully_replicated
    assert found.completion_tokens.addressable_shards[0].data.shape[:2] == (2, 1)


@pytest.mark.parametrize("attention", ["splash", "dense"])
def test_kernels_are_those_of_the_mesh_of_sampling(attention):
    """Two key-value heads: two tensor devices take the kernel, eight do not."""
    model = ModelConfig(
        hidden_size=32,
        intermediate_size=48,
        num_layers=2,
        num_heads=8,
        num_kv_heads=2,
        attention=attention,
    )
    architecture = dataclasses.replace(tiny.ARCHITECTURE, num_heads=8, head_dim=4)
    graphdef, parameters = tiny.policy(num_heads=8, head_dim=4)
    plan = tiny.plan(graphdef, mesh_shape=(1, 8, 1))
    config = Config(model=model)
    two = rearranged(plan.mesh, (1, 4, 2))
    sampler = sampler_plan(config, architecture, plan, parameters, two)
    splash = nnx.merge(sampler.graphdef, parameters).splash
    assert (splash.mesh if splash else None) == (two if attention == "splash" else None)
    assert sampler.plan_beside(plan).mesh == two
    same = sampler_plan(config, architecture, plan, parameters, plan.mesh)
    assert same.graphdef is graphdef
    if attention == "splash":
        eight = rearranged(plan.mesh, (1, 1, 8))
        with pytest.raises(ConfigError, match=r"mesh\.rollout_shape"):
            sampler_plan(config, architecture, plan, parameters, eight)
