"""Mesh shapes, the axis that rows are split along, and arrays there and back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.mesh.mesh import (
    AXES,
    ROW_AXES,
    constrain_rows,
    fetch,
    filled_shape,
    make_mesh,
    moved,
    put,
    rearranged,
    row_spec,
    rows_divide,
)

WHOLE, PROMPTS = PartitionSpec(), PartitionSpec(ROW_AXES)
COMPLETIONS = PartitionSpec(None, ROW_AXES)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((-1, 1, 1), (8, 1, 1)),
        ((2, -1, 2), (2, 2, 2)),
        ((4, 2, -1), (4, 2, 1)),
        ((2, 4, 1), (2, 4, 1)),
        ([1, 1, 8], (1, 1, 8)),
    ],
)
def test_shapes_that_fill_the_eight_devices(shape, sizes):
    mesh = make_mesh(shape)
    assert mesh.shape == dict(zip(AXES, sizes, strict=True))
    assert {d.id for d in mesh.devices.flat} == {d.id for d in jax.devices()}


def test_a_mesh_of_the_devices_given():
    devices = jax.devices()[2:4]
    mesh = make_mesh((1, -1, 1), devices)
    assert list(mesh.devices.flat) == devices


@pytest.mark.parametrize(
    "shape",
    [
        (2, 2, 1),
        (3, -1, 1),
        (-1, -1, 1),
        (-1, 16, 1),
        (8, 1),
        (2, 2, 2, 1),
        (-2, -4, 1),
        (0, -1, 1),
        (-8, -1, 1),
        (),
    ],
)
def test_shapes_that_do_not(shape):
    with pytest.raises(ValueError, match=r"mesh\.shape=.* does not fill 8 devices"):
        make_mesh(shape)


def test_the_same_devices_in_the_same_order_as_another_shape():
    """What a program that goes from one to the other needs."""
    mesh = make_mesh((2, -1, 1), jax.devices()[::-1])
    other = rearranged(mesh, (1, 2, -1))
    assert other.shape == {"data": 1, "fsdp": 2, "tensor": 4}
    assert list(other.devices.flat) == list(mesh.devices.flat)
    assert rearranged(mesh, ()) is mesh
    assert rearranged(mesh, (2, 4, 1)) == mesh
    with pytest.raises(ValueError, match=r"^mesh: mesh\.rollout_shape=\(1, 3, 2\) ove"):
        rearranged(mesh, (1, 3, 2))
    assert filled_shape((-1, 4, 2), 64) == (8, 4, 2)


def test_arrays_move_between_meshes_past_the_host():
    """The guard refuses what comes from the host; `device_put` is refused, as with all
    devices in one process it takes that way."""
    mesh = make_mesh((2, 2, 2))
    other = NamedSharding(rearranged(mesh, (1, 1, 8)), PartitionSpec("tensor"))
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    there = put(array, mesh, PartitionSpec(None, "tensor"))
    tree = {"rows": there, "twice": there + there}
    wanted = {"rows": other, "twice": NamedSharding(mesh, PROMPTS)}
    with jax.transfer_guard_host_to_device("disallow_explicit"):
        found = moved(tree, wanted)
        with pytest.raises(Exception, match="Disallowed host-to-device"):
            jax.device_put(there, other)
    assert jax.tree.map(lambda leaf: leaf.sharding, found) == wanted
    np.testing.assert_array_equal(found["rows"], array)
    np.testing.assert_array_equal(found["twice"], 2 * array)


@pytest.mark.parametrize(
    ("mesh_shape", "rows", "spec"),
    [
        ((1, 1, 8), (3, 5), WHOLE),
        ((2, 2, 2), (4, 3), PROMPTS),
        ((2, 2, 2), (8, 4, 7), PROMPTS),
        ((2, 2, 2), (3, 4), COMPLETIONS),
        ((2, 2, 2), (2, 4), PartitionSpec("data", "fsdp")),
        ((4, 2, 1), (6, 8), PartitionSpec("fsdp", "data")),
        ((4, 2, 1), (1, 16, 5), COMPLETIONS),
        ((2, 4, 1), (2, 12, 5), PartitionSpec("data", "fsdp")),
        ((2, 4, 1), (4, 6, 5), PartitionSpec("fsdp", "data")),
        ((4, 2, 1), (16,), PROMPTS),
    ],
)
def test_rows_split_so_that_a_device_reads_few_prompts(mesh_shape, rows, spec):
    assert row_spec(make_mesh(mesh_shape), rows) == spec


@pytest.mark.parametrize("rows", [(2, 3), (3, 5, 4), (6,)])
def test_rows_that_divide_along_neither(rows):
    """An axis after the first two does not count: it is tokens."""
    mesh = make_mesh((2, 2, 2))
    assert not rows_divide(mesh, rows)
    assert rows_divide(mesh, (4, *rows))
    with pytest.raises(ValueError, match=r"or mesh\.rollout_shape\.$"):
        row_spec(mesh, rows, setting="mesh.rollout_shape")
    with pytest.raises(ValueError, match=r"^row_spec: 2 x 2 row devices") as caught:
        row_spec(mesh, rows)
    for name in ("batch.prompts_per_step", "batch.micro_batch_size", "mesh.shape"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "by_prompt", "by_row"),
    [
        ((8, 2, 3), PROMPTS, PROMPTS),
        ((3, 8, 3), WHOLE, COMPLETIONS),
        ((4, 6, 3), PartitionSpec("data"), PartitionSpec("data", "fsdp")),
    ],
)
def test_rows_are_constrained_inside_a_program(shape, by_prompt, by_row):
    """Prompts go with their rows, or to all devices that share their completions."""
    mesh = make_mesh((4, 2, 1))
    prompts = {"lengths": np.arange(shape[0])}
    rows = {"tokens": np.arange(np.prod(shape)).reshape(shape)}

    @jax.jit
    def program(prompts, rows):
        return constrain_rows(prompts, rows, mesh)

    new_prompts, new_rows = program(prompts, rows)
    lengths, tokens = new_prompts["lengths"], new_rows["tokens"]
    assert lengths.sharding.is_equivalent_to(NamedSharding(mesh, by_prompt), 1)
    assert tokens.sharding.is_equivalent_to(NamedSharding(mesh, by_row), 3)
    np.testing.assert_array_equal(lengths, prompts["lengths"])
    np.testing.assert_array_equal(tokens, rows["tokens"])


@pytest.mark.parametrize(
    ("spec", "part"),
    [(WHOLE, (8, 4)), (PROMPTS, (2, 4)), (PartitionSpec("tensor", "data"), (4, 2))],
)
def test_put_and_fetch_are_there_and_back(spec, part):
    mesh = make_mesh((2, 2, 2))
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    there = put(array, mesh, spec)
    assert there.sharding == NamedSharding(mesh, spec)
    assert {shard.data.shape for shard in there.addressable_shards} == {part}
    for shard in there.addressable_shards:
        np.testing.assert_array_equal(shard.data, array[shard.index])
    back = fetch({"rows": there, "scalar": jnp.float32(2)})
    assert isinstance(back["rows"], np.ndarray)
    np.testing.assert_array_equal(back["rows"], array)
    assert back["scalar"] == 2
