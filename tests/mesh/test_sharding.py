"""How parameters are split: the rules by name, and bytes on one device."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.mesh.sharding import (
    RULES,
    bytes_per_device,
    parameter_shardings,
    parameter_spec,
)
from rlvr_jax.models.decoder import Decoder
from tests import tiny


@pytest.fixture(scope="module")
def mesh():
    return make_mesh((2, 2, 2))


@pytest.mark.parametrize(
    ("name", "shape", "spec"),
    [
        ("embedding", (60, 32), ("tensor", "fsdp")),
        ("head", (60, 32), ("tensor", "fsdp")),
        ("query", (2, 32, 32), (None, "fsdp", "tensor")),
        ("output", (2, 32, 32), (None, "tensor", "fsdp")),
        ("up", (2, 32, 48), (None, "fsdp", "tensor")),
        ("down", (2, 48, 32), (None, "tensor", "fsdp")),
        ("key_bias", (2, 16), (None, "tensor")),
        # Not in the table: on every device.
        ("final_norm", (32,), ()),
        ("query_norm", (2, 8), ()),
        # An axis of odd size stays whole, the others are split.
        ("embedding", (61, 32), (None, "fsdp")),
        ("down", (2, 47, 32), (None, None, "fsdp")),
        ("key", (2, 33, 7), ()),
    ],
)
def test_a_parameter_is_split_by_its_name(mesh, name, shape, spec):
    assert parameter_spec(name, shape, mesh) == PartitionSpec(*spec)


def test_an_axis_of_one_device_splits_nothing():
    """So that a mesh of data alone gives fully replicated parameters."""
    alone = make_mesh((8, 1, 1))
    for name in RULES:
        spec = parameter_spec(name, (8, 8, 8)[: len(RULES[name])], alone)
        assert spec == PartitionSpec()


@pytest.fixture(scope="module")
def shapes():
    """Of a decoder with every optional parameter there is, drawn by nobody."""
    options = ("qkv_bias", "output_bias", "mlp_bias", "qk_norm")

    def new():
        changes = {name: True for name in options} | {"tie_embeddings": False}
        architecture = dataclasses.replace(tiny.ARCHITECTURE, **changes)
        return Decoder(architecture, rngs=nnx.Rngs(0))

    return nnx.split(nnx.eval_shape(new))[1]


DENSE = {name for name in RULES if not name.startswith("expert")}
"""Rules that a decoder without experts uses."""


def test_every_rule_names_a_parameter_of_the_decoder(shapes):
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(shapes)]
    names = {
        next(k.key for k in reversed(p) if isinstance(k, jax.tree_util.DictKey))
        for p in paths
    }
    assert DENSE <= names
    assert all("norm" in name or name.endswith("_bias") for name in names - set(RULES))


def test_a_tree_of_shardings_follows_the_parameters(shapes, mesh):
    shardings = parameter_shardings(shapes, mesh)
    assert jax.tree.structure(shardings) == jax.tree.structure(shapes)
    pairs = zip(
        jax.tree_util.tree_leaves_with_path(shapes),
        jax.tree.leaves(shardings),
        strict=True,
    )
    split = 0
    for (path, leaf), sharding in pairs:
        name = next(k.key for k in reversed(path) if hasattr(k, "key"))
        expected = NamedSharding(mesh, parameter_spec(name, leaf.shape, mesh))
        assert sharding == expected
        split += not sharding.is_fully_replicated
    assert split == len(DENSE)


def test_bytes_that_one_device_holds(mesh):
    """8 x 4 float32 over 2 x 2: 32 of 128; over one axis of 2: 24 of 48 int16; a
    float32 scalar on every device: 4."""
    tree = {"a": jnp.ones((8, 4)), "b": jnp.ones((2, 12), jnp.int16), "c": jnp.ones(())}
    specs = {"a": ("fsdp", "tensor"), "b": ("data",), "c": ()}
    shardings = {
        name: NamedSharding(mesh, PartitionSpec(*spec)) for name, spec in specs.items()
    }
    assert bytes_per_device(tree, shardings) == 32 + 24 + 4
    held = sum(
        jax.device_put(tree[name], shardings[name]).addressable_shards[0].data.nbytes
        for name in tree
    )
    assert bytes_per_device(tree, shardings) == held
