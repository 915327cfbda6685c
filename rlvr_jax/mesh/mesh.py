"""The device mesh, and moving host arrays onto it and back."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import Device
from jax.experimental import mesh_utils, multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

AXES = ("data", "fsdp", "tensor")
ROW_AXES = ("data", "fsdp")
"""Rows of a batch are split over both; parameters over "fsdp" and "tensor"."""


def make_mesh(shape: Sequence[int], devices: Sequence[Device] | None = None) -> Mesh:
    """The mesh of `shape` over axes (data, fsdp, tensor); one -1 takes what is left.

    Raises:
      ValueError: the shape does not multiply to the number of devices.
    """
    devices = jax.devices() if devices is None else devices
    count = len(devices)
    sizes = list(shape)
    fixed = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and fixed > 0 and count % fixed == 0:
        sizes[sizes.index(-1)] = count // fixed
    if len(sizes) != len(AXES) or math.prod(sizes) != count or min(sizes) < 1:
        raise ValueError(
            f"make_mesh: mesh.shape={tuple(shape)} over {AXES} does not fill "
            f"{count} devices. Set three sizes whose product is {count}, one of them "
            "may be -1."
        )
    # An axis of 8 on a 4 x 4 x 4 slice takes one physical axis and half of another.
    arranged = mesh_utils.create_device_mesh(
        sizes, devices, allow_split_physical_axes=True
    )
    return Mesh(arranged, AXES, axis_types=(AxisType.Auto,) * len(AXES))


def row_spec(mesh: Mesh, shape: Sequence[int]) -> PartitionSpec:
    """Splits the first axis that all row devices divide: prompts, else completions.

    Raises:
      ValueError: neither of the first two axes divides.
    """
    parts = mesh.shape["data"] * mesh.shape["fsdp"]
    if parts == 1:
        return PartitionSpec()
    for axis, size in enumerate(shape[:2]):
        if size % parts == 0:
            return PartitionSpec(*[None] * axis, ROW_AXES)
    raise ValueError(
        f"row_spec: {parts} row devices (mesh.shape, data x fsdp) divide neither axis "
        f"of a batch of {tuple(shape[:2])} (prompts, completions per prompt). Change "
        "batch.prompts_per_step, batch.micro_batch_size or mesh.shape."
    )


def constrain_rows(prompts: Any, rows: Any, mesh: Mesh) -> tuple[Any, Any]:
    """Inside jit: splits a batch over the row devices.

    Args:
      prompts: arrays [P, ...].
      rows: arrays [P, G, ...] of the same P.
      mesh: the devices.
    """
    spec = row_spec(mesh, jax.tree.leaves(rows)[0].shape)
    by_prompt = spec if len(spec) == 1 else PartitionSpec()

    def constrain(tree, spec):
        return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, spec))

    return constrain(prompts, by_prompt), constrain(rows, spec)


def put(array: np.ndarray, mesh: Mesh, spec: PartitionSpec) -> jax.Array:
    """A global array from the same host array on every process."""
    sharding = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(array.shape, sharding, lambda at: array[at])


def fetch(tree: Any) -> Any:
    """Global arrays as host arrays, the same on every process."""
    if jax.process_count() == 1:
        return jax.device_get(tree)
    return multihost_utils.process_allgather(tree, tiled=True)
