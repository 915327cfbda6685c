"""Prompts as device arrays of one fixed shape, so that nothing compiles twice."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int

from rlvr_jax.mesh.mesh import prompt_spec, put, row_spec


@dataclasses.dataclass(frozen=True)
class PromptBatches:
    """Batches of `size` left-padded prompts of `slots` tokens, split over the mesh."""

    tokens: Sequence[Sequence[int]]
    size: int
    slots: int
    pad_id: int
    num_generations: int
    mesh: Mesh

    def arrays(
        self, indices: Int[np.ndarray, " P"]
    ) -> tuple[Int[Array, "P S"], Int[Array, " P"]]:
        """Tokens and lengths of the prompts `indices`, on the devices."""
        rows = left_padded([self.tokens[i] for i in indices], self.slots, self.pad_id)
        lengths = np.array([len(self.tokens[i]) for i in indices], np.int32)
        return self.put(rows), self.put(lengths)

    def put(self, array: np.ndarray) -> jax.Array:
        """An array of P rows, split like the prompts."""
        spec = row_spec(self.mesh, (self.size, self.num_generations))
        return put(np.asarray(array), self.mesh, prompt_spec(spec))


def left_padded(
    rows: Sequence[Sequence[int]], slots: int, pad_id: int
) -> Int[np.ndarray, "N S"]:
    """Rows of token ids, each ending at the last of `slots` columns."""
    padded = np.full((len(rows), slots), pad_id, np.int32)
    for row, ids in zip(padded, rows, strict=True):
        row[slots - len(ids) :] = ids
    return padded


def right_padded(
    rows: Sequence[Sequence[int]], slots: int, pad_id: int
) -> Int[np.ndarray, "N T"]:
    """Rows of token ids, each starting at the first of `slots` columns."""
    padded = np.full((len(rows), slots), pad_id, np.int32)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def slots_for(*groups: Sequence[Sequence[int]], multiple: int = 8) -> int:
    """The longest row of all groups, rounded up to a multiple."""
    longest = max((len(row) for rows in groups for row in rows), default=1)
    return -(-longest // multiple) * multiple
