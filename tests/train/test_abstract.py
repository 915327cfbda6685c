"""A state that goes on from a checkpoint is not made first, only described."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from rlvr_jax.config import CheckpointConfig, Config, ModelConfig, Objective
from rlvr_jax.mesh.mesh import make_mesh, rearranged
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.weights import save_decoder
from rlvr_jax.train.abstract import abstract_state
from rlvr_jax.train.checkpoint import Checkpoints
from rlvr_jax.train.policy import abstract_parameters, make_decoder, new_state
from tests import tiny

SMALL = ModelConfig(
    hidden_size=32, intermediate_size=48, num_layers=2, num_heads=4, num_kv_heads=2
)
OBJECTIVES = {
    "plain": Objective(),
    "reference": Objective(beta=0.1),
    "critic": Objective(advantage="gae", scale_rewards="none"),
    "history": Objective(advantage="running_mean"),
    "entropy": Objective(entropy_target=0.5),
    "band": Objective(band_entropy=0.5),
}


@pytest.fixture(scope="module")
def mesh():
    return make_mesh((2, 2, 2))


@pytest.fixture(scope="module", params=["new", "loaded", "adapters"])
def settings(request, tmp_path_factory):
    """Of a policy drawn anew, loaded from a directory, and one with adapters."""
    if request.param == "new":
        return Config(seed=4, model=SMALL)
    if request.param == "adapters":
        return Config(seed=4, model=dataclasses.replace(SMALL, lora_rank=2))
    folder = tmp_path_factory.mktemp("abstract") / "model"
    save_decoder(Decoder(tiny.ARCHITECTURE, rngs=nnx.Rngs(3)), folder)
    return Config(model=ModelConfig(path=str(folder)))


def test_parameters_are_described_as_they_are_made(settings, mesh):
    """The same definition, so that programs compile from either; no file is read."""
    graphdef, made = make_decoder(settings, tiny.ARCHITECTURE, mesh)
    settings.model.path = settings.model.path and "/nowhere"
    described, shapes = abstract_parameters(settings, tiny.ARCHITECTURE, mesh)
    assert described == graphdef
    assert jax.tree.structure(shapes) == jax.tree.structure(made)
    for a, b in zip(jax.tree.leaves(shapes), jax.tree.leaves(made), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_state_is_described_as_it_is_made(mesh, name):
    graphdef, parameters = tiny.policy()
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.1))
    plan = tiny.plan(
        graphdef, OBJECTIVES[name], mesh_shape=(2, 2, 2), optimizer=optimizer
    )
    made = new_state(parameters, plan, num_problems=5)
    found = abstract_state(parameters, plan, num_problems=5)
    paths, tree = jax.tree_util.tree_flatten_with_path(made)
    assert found.tree == tree
    assert found.names == [jax.tree_util.keystr(path) for path, _ in paths]
    for a, (path, b) in zip(found.leaves, paths, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), path
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim), path


def test_resuming_allocates_the_state_once(mesh, tmp_path):
    """The arrays alive while orbax reads are those of nobody else: before, a whole
    new state waited beside the one that was read."""
    graphdef, parameters = tiny.policy()
    plan = tiny.plan(graphdef, mesh_shape=(2, 2, 2), optimizer=optax.adamw(0.1))
    state = new_state(parameters, plan)
    with Checkpoints(tmp_path / "checkpoints", CheckpointConfig()) as checkpoints:
        checkpoints.save(state, 1, {})
    whole = bytes_of(jax.tree.leaves(state))
    shapes = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), parameters
    )
    tree = jax.tree.structure(state)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    del state, parameters
    before = bytes_of(jax.live_arrays())
    like = abstract_state(shapes, plan, num_problems=0)
    assert bytes_of(jax.live_arrays()) - before < whole / 100
    with Checkpoints(tmp_path / "checkpoints", CheckpointConfig()) as checkpoints:
        found, _ = checkpoints.restore(like=like)
    assert bytes_of(jax.live_arrays()) - before < whole * 1.01
    assert jax.tree.structure(found) == tree
    for a, b in zip(jax.tree.leaves(found), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_policies_under_way_are_part_of_it(mesh):
    """In the type that they sample with, as checkpoints of a stale run hold them."""
    graphdef, parameters = tiny.policy()
    plan = dataclasses.replace(
        tiny.plan(graphdef, mesh_shape=(2, 2, 2)), dtype=jnp.dtype("bfloat16")
    )
    found = abstract_state(parameters, plan, num_problems=0, behaviours=2)
    under_way = [
        leaf
        for name, leaf in zip(found.names, found.leaves, strict=True)
        if name.startswith(".behaviour[1]")
    ]
    assert len(under_way) == len(jax.tree.leaves(parameters))
    assert {str(leaf.dtype) for leaf in under_way} == {"bfloat16"}
    assert {leaf.sharding.mesh for leaf in found.leaves} == {mesh}


def test_policies_under_way_lie_where_they_sample(mesh):
    """The rest of the state lies on the mesh of training."""
    graphdef, parameters = tiny.policy()
    plan = tiny.plan(graphdef, mesh_shape=(2, 2, 2))
    other = rearranged(plan.mesh, (1, 2, 4))
    found = abstract_state(
        parameters, plan, num_problems=0, behaviours=1, rollout_mesh=other
    )
    expected = jax.tree.leaves(parameter_shardings(parameters, other))
    shardings = {True: [], False: []}
    for name, leaf in zip(found.names, found.leaves, strict=True):
        shardings[name.startswith(".behaviour")].append(leaf.sharding)
    assert shardings[True] == expected
    assert {each.mesh for each in shardings[False]} == {plan.mesh}


def bytes_of(arrays) -> int:
    return sum(array.nbytes for array in arrays)
