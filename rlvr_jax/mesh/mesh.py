"""The device mesh, and moving arrays onto it, between two of them, and back."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils, multihost_utils
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from rlvr_jax.errors import UserError

AXES = ("data", "fsdp", "tensor")
ROW_AXES = ("data", "fsdp")
"""Rows of a batch are split over both; parameters over "fsdp" and "tensor"."""
SHAPE, ROLLOUT_SHAPE = "mesh.shape", "mesh.rollout_shape"
"""The settings that shapes come from, for errors that name them."""


def make_mesh(shape: Sequence[int], devices: Sequence[Any] | None = None) -> Mesh:
    """The mesh of `shape` over axes (data, fsdp, tensor); one -1 takes what is left.

    Args:
      shape: sizes of the axes.
      devices: jax.Device each (jaxlib says nothing about its types); all by default.

    Raises:
      UserError: the shape does not multiply to the number of devices.
    """
    devices = jax.devices() if devices is None else devices
    sizes = filled_shape(shape, len(devices))
    # An axis of 8 on a 4 x 4 x 4 slice takes one physical axis and half of another.
    arranged = mesh_utils.create_device_mesh(
        sizes, devices, allow_split_physical_axes=True
    )
    return _mesh_of(arranged)


def rearranged(mesh: Mesh, shape: Sequence[int]) -> Mesh:
    """The devices of `mesh` as another shape, for sampling; () is `mesh` itself.

    They keep their order: only then can one program take arrays that lie on the one
    and return arrays that lie on the other. The order that `make_mesh` gives a slice
    follows its links, so those of a tensor axis stay neighbours: 8 on a v5p:4x4x4 are
    a block of 4 x 2, as in a mesh made for the shape.

    Args:
      mesh: of training.
      shape: mesh.rollout_shape.

    Raises:
      UserError: the shape does not multiply to the number of devices.
    """
    if not shape:
        return mesh
    sizes = filled_shape(shape, mesh.size, setting=ROLLOUT_SHAPE)
    return _mesh_of(mesh.devices.reshape(sizes))


def _mesh_of(arranged: np.ndarray) -> Mesh:
    return Mesh(arranged, AXES, axis_types=(AxisType.Auto,) * len(AXES))


def filled_shape(
    shape: Sequence[int], devices: int, *, setting: str = SHAPE
) -> tuple[int, int, int]:
    """`shape` with its -1 worked out.

    Args:
      shape: sizes of (data, fsdp, tensor).
      devices: their number.
      setting: where the shape comes from, for errors.

    Raises:
      UserError: it does not multiply to the number of devices.

    Example:
      >>> filled_shape((1, -1, 4), 64)
      (1, 16, 4)
    """
    sizes = list(shape)
    fixed = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and fixed > 0 and devices % fixed == 0:
        sizes[sizes.index(-1)] = devices // fixed
    if len(sizes) != len(AXES) or math.prod(sizes) != devices or min(sizes) < 1:
        raise UserError(
            f"mesh: {setting}={tuple(shape)} over {AXES} does not fill {devices} "
            f"devices. Set three sizes whose product is {devices}, one of them may be "
            "-1."
        )
    return (sizes[0], sizes[1], sizes[2])


def axes_in_words(mesh: Mesh | AbstractMesh) -> str:
    """A mesh for reading.

    Example:
      >>> axes_in_words(AbstractMesh((1, 8, 4), AXES))
      'data 1, fsdp 8, tensor 4'
    """
    return ", ".join(f"{axis} {size}" for axis, size in mesh.shape.items())


def row_devices(mesh: Mesh | AbstractMesh) -> int:
    """Devices over which the rows of a batch are split."""
    return math.prod(mesh.shape[axis] for axis in ROW_AXES)


def row_spec(
    mesh: Mesh | AbstractMesh, shape: Sequence[int], *, setting: str = SHAPE
) -> PartitionSpec:
    """Splits prompts over all row devices, or completions, or each over one axis.

    Of the ways that divide, the one where a device reads the fewest prompts.

    Args:
      mesh: the devices.
      shape: of the batch; its first two axes count.
      setting: where the mesh's shape comes from, for errors.

    Raises:
      UserError: none of these divides.
    """
    if row_devices(mesh) == 1:
        return PartitionSpec()
    prompts, completions = (*shape, 1)[:2]
    data, fsdp = ROW_AXES
    ways = [
        (_parts(mesh, by_prompt), by_prompt, by_completion)
        for by_prompt, by_completion in (
            (ROW_AXES, None),
            (None, ROW_AXES),
            (data, fsdp),
            (fsdp, data),
        )
        if prompts % _parts(mesh, by_prompt) == 0
        and completions % _parts(mesh, by_completion) == 0
    ]
    if ways:
        _, by_prompt, by_completion = max(ways, key=lambda way: way[0])
        whole = by_completion is None
        return PartitionSpec(by_prompt, *() if whole else (by_completion,))
    sizes = " x ".join(str(mesh.shape[axis]) for axis in ROW_AXES)
    raise UserError(
        f"row_spec: {sizes} row devices ({setting}, data x fsdp) divide neither axis "
        f"of a batch of {tuple(shape[:2])} (prompts, completions per prompt), together "
        "or one each. Change batch.prompts_per_step, batch.micro_batch_size or "
        f"{setting}."
    )


def _parts(mesh: Mesh | AbstractMesh, axes: str | tuple[str, ...] | None) -> int:
    """Into how many an entry of a PartitionSpec splits an axis."""
    names = (axes,) if isinstance(axes, str) else axes or ()
    return math.prod(mesh.shape[name] for name in names)


def prompt_spec(rows: PartitionSpec) -> PartitionSpec:
    """How [P, ...] is split where [P, G, ...] is split by `rows`.

    Devices that share a prompt's completions each hold the whole prompt.
    """
    return PartitionSpec(rows[0]) if rows and rows[0] else PartitionSpec()


def prompts_per_device(mesh: Mesh | AbstractMesh, shape: Sequence[int]) -> int:
    """Of a batch that `row_spec` splits, the prompts that one device reads."""
    by_prompt = prompt_spec(row_spec(mesh, shape))
    return shape[0] // _parts(mesh, by_prompt[0] if by_prompt else None)


def rows_divide(mesh: Mesh | AbstractMesh, shape: Sequence[int]) -> bool:
    """Whether `row_spec` splits such a batch."""
    try:
        row_spec(mesh, shape)
    except UserError:
        return False
    return True


def constrain_rows(prompts: Any, rows: Any, mesh: Mesh) -> tuple[Any, Any]:
    """Inside jit: splits a batch over the row devices.

    Args:
      prompts: arrays [P, ...].
      rows: arrays [P, G, ...] of the same P.
      mesh: the devices.
    """
    spec = row_spec(mesh, jax.tree.leaves(rows)[0].shape)

    def constrain(tree, spec):
        return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, spec))

    return constrain(prompts, prompt_spec(spec)), constrain(rows, spec)


def put(array: np.ndarray, mesh: Mesh, spec: PartitionSpec) -> jax.Array:
    """A global array from the same host array on every process."""
    sharding = NamedSharding(mesh, spec)
    return jax.make_array_from_callback(array.shape, sharding, lambda at: array[at])


def moved(tree: Any, shardings: Any) -> Any:
    """Global arrays under other shardings of their devices, from device to device.

    `jax.device_put` would take them through the host where one process has all of the
    devices.

    Args:
      tree: arrays.
      shardings: a tree like it, over the same devices in the same order.
    """
    leaves, structure = jax.tree.flatten(tree)
    found = _mover(tuple(jax.tree.leaves(shardings)))(leaves)
    return jax.tree.unflatten(structure, found)


@functools.lru_cache(maxsize=64)
def _mover(shardings: tuple[NamedSharding, ...]) -> Callable:
    return jax.jit(lambda leaves: leaves, out_shardings=list(shardings))


def fetch(tree: Any) -> Any:
    """Global arrays as host arrays, the same on every process."""
    if jax.process_count() == 1:
        return jax.device_get(tree)
    return multihost_utils.process_allgather(tree, tiled=True)
