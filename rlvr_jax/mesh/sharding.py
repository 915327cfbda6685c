"""From the name of a parameter to how it is split over the mesh: one table."""

import math
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import SHAPE

RULES: dict[str, tuple[str | None, ...]] = {
    "embedding": ("tensor", "fsdp"),
    "head": ("tensor", "fsdp"),
    # Stacked layers [L, inputs, outputs]: what is computed is split over "tensor".
    "query": (None, "fsdp", "tensor"),
    "key": (None, "fsdp", "tensor"),
    "value": (None, "fsdp", "tensor"),
    "output": (None, "tensor", "fsdp"),
    "gate": (None, "fsdp", "tensor"),
    "up": (None, "fsdp", "tensor"),
    "down": (None, "tensor", "fsdp"),
    # Of experts [L, E, inputs, outputs]: each is split like an MLP, none is apart.
    "expert_gate": (None, None, "fsdp", "tensor"),
    "expert_up": (None, None, "fsdp", "tensor"),
    "expert_down": (None, None, "tensor", "fsdp"),
    "query_bias": (None, "tensor"),
    "key_bias": (None, "tensor"),
    "value_bias": (None, "tensor"),
    "gate_bias": (None, "tensor"),
    "up_bias": (None, "tensor"),
}
"""Parameters without a row (norms, routers, other biases, adapters) are everywhere."""


def check_heads(
    num_heads: int, mesh: Mesh | AbstractMesh, *, setting: str = SHAPE
) -> None:
    """Each device of the axis "tensor" computes whole attention heads.

    Heads of keys and values need not divide: where they are fewer than the devices,
    several hold the same.

    Args:
      num_heads: of the queries.
      mesh: sizes of its axes.
      setting: where its shape comes from, for errors.

    Raises:
      UserError: the heads do not divide; the message says which sizes do.
    """
    parts = dict(mesh.shape)["tensor"]
    if num_heads % parts:
        fitting = [str(n) for n in range(1, num_heads + 1) if num_heads % n == 0]
        raise UserError(
            f"mesh: {num_heads} attention heads do not divide over {parts} tensor "
            f"devices ({setting}={tuple(dict(mesh.shape).values())}). Set its third "
            f"size to one of {', '.join(fitting)}."
        )


def parameter_spec(
    name: str, shape: tuple[int, ...], mesh: Mesh | AbstractMesh
) -> PartitionSpec:
    """The rule of `name`; an axis of the array that does not divide stays whole."""
    sizes = dict(mesh.shape)
    axes = [
        axis if axis and sizes[axis] > 1 and size % sizes[axis] == 0 else None
        for axis, size in zip(RULES.get(name, ()), shape, strict=False)
    ]
    # As XLA writes it: a trailing None would make equal shardings differ, and a second
    # call of a program compile again.
    while axes and axes[-1] is None:
        axes.pop()
    return PartitionSpec(*axes)


def parameter_shardings(parameters: Any, mesh: Mesh) -> Any:
    """A tree like `parameters` with the sharding of each."""

    def sharding(path, leaf):
        names = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
        return NamedSharding(mesh, parameter_spec(names[-1], leaf.shape, mesh))

    return jax.tree_util.tree_map_with_path(sharding, parameters)


def bytes_per_device(tree: Any, shardings: Any) -> int:
    """Bytes of the arrays of `tree` that one device holds."""

    def size(leaf, sharding):
        return math.prod(sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize

    return sum(jax.tree.leaves(jax.tree.map(size, tree, shardings)))
