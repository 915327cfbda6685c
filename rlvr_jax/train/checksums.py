"""Sums that tell whether an array comes back as it was saved, on any mesh."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from rlvr_jax.errors import UserError


@jax.jit
def checksums(arrays: dict[str, jax.Array]) -> dict[str, jax.Array]:
    r"""The sum over elements of bits_i (2 i + 1), modulo 2^32, of each array.

    Whole numbers add up to the same in any order, so the sum does not depend on how
    the array is split. As 2 i + 1 is odd, a change of one element always shows; one of
    several goes unseen with probability 2^-32.

    Args:
      arrays: by name, of 8 to 32 bits.

    Returns:
      uint32 scalars, by the same names.
    """
    return {name: _checksum(array) for name, array in arrays.items()}


def _checksum(array: jax.Array) -> jax.Array:
    bits = array.astype(jnp.uint8) if array.dtype == bool else array
    width = bits.dtype.itemsize * 8
    bits = jax.lax.bitcast_convert_type(bits, f"uint{width}").astype(jnp.uint32)
    # Not one long axis: to number that, a split array would be gathered.
    position = jnp.zeros(array.shape, jnp.uint32)
    for axis, size in enumerate(array.shape):
        along = jax.lax.broadcasted_iota(jnp.uint32, array.shape, axis)
        position = position * jnp.uint32(size) + along
    return (bits * (2 * position + 1)).sum(dtype=jnp.uint32)


def host_checksums(arrays: dict[str, jax.Array]) -> dict[str, int]:
    """`checksums` as plain numbers."""
    return {name: int(value) for name, value in checksums(arrays).items()}


def text_checksum(values: Mapping[str, Any]) -> str:
    """Of JSON values."""
    plain = json.loads(
        json.dumps(values)
    )  # as it comes back: numbers as keys are texts
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def check_sums(found: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Raises a UserError that names the first array with another sum than before."""
    for name, value in found.items():
        if value != saved[name]:
            raise UserError(f"{name} is not as it was saved: its checksum differs")
