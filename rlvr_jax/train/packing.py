"""Several completions per row: short ones share the slots that one long one needs.

    completions [P, G, T]  ->  rows [N, L], each of one prompt  ->  log-probs [P, G, T]

A row holds completions of one prompt, one after the other; a token attends to that
prompt and to its own completion, at the positions it had alone. Only the way from
tokens to log-probs is packed: losses and metrics see [P, G, T] again. How many rows a
prompt gets is its own affair: long answers to one do not give others more rows.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int

from rlvr_jax.mesh.mesh import ROW_AXES, put, row_devices, row_spec

WORTH = 0.9
"""Packed rows with more than this share of the plain slots are not worth a program."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Packing:
    """Where each token of a (micro-)batch of P prompts is in its N rows of L slots.

    Of a whole batch, both have a leading axis of micro-batches.
    """

    source: Int[Array, "... N L"]
    """The token in each slot, as its place in [P, G, T] laid out flat; -1: nothing."""
    slots: Int[Array, "... P G T"]
    """The slot of each token, as its place in [N, L] laid out flat; -1: padding."""
    blocks: int = dataclasses.field(default=1, metadata={"static": True})
    """Equal parts of rows and prompts: a row's prompt is in its own part."""

    @property
    def times(self) -> Int[Array, "N L"]:
        """Which token of its completion is in each slot; 0 where nothing is."""
        return jnp.where(self.source < 0, 0, self.source % self.slots.shape[-1])

    @property
    def starts(self) -> Int[Array, "N L"]:
        """The column where the completion of each slot begins."""
        return jnp.arange(self.source.shape[-1]) - self.times

    def packed(self, array: Array) -> Array:
        """[P, G, T, ...] -> [N, 1, L, ...]; empty slots repeat the very first token."""
        tokens = array.reshape(-1, *array.shape[3:])
        return tokens[jnp.maximum(self.source, 0)][:, None]

    def unpacked(self, array: Array) -> Array:
        """[N, L] -> [P * G, T]; 0 at padding."""
        found = array.reshape(-1)[jnp.maximum(self.slots, 0)]
        found = jnp.where(self.slots < 0, 0, found)
        return found.reshape(-1, found.shape[-1])

    def of_rows(self, array: Array, axis: int = 0) -> Array:
        """What each row's prompt has: [..., P, ...] -> [..., N, ...].

        Rows look no further than their own block, which is on their own device.
        """
        generations, tokens = self.slots.shape[1:]
        per_block = self.slots.shape[0] // self.blocks
        prompt = jnp.maximum(self.source[:, 0], 0) // (generations * tokens)
        chosen = (prompt % per_block).reshape(self.blocks, -1)
        parts = jnp.moveaxis(array, axis, 0)
        parts = parts.reshape(self.blocks, per_block, *parts.shape[1:])
        found = jax.vmap(lambda part, at: part[at])(parts, chosen)
        return jnp.moveaxis(found.reshape(-1, *found.shape[2:]), 0, axis)

    def on_row_devices(self, mesh: Mesh) -> "Packing":
        """Inside jit: the rows split over the row devices."""
        spread = NamedSharding(mesh, PartitionSpec(ROW_AXES))
        source = jax.lax.with_sharding_constraint(self.source, spread)
        return dataclasses.replace(self, source=source)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where completions go, before any array is made."""

    tokens: int
    """Slots of a row."""
    size: int
    """Rows of a micro-batch."""
    begins: Int[np.ndarray, "P G"]
    """Slot of each completion's first token, within its micro-batch."""
    blocks: int
    """Of `Packing`."""


def pack(
    lengths: Int[np.ndarray, "P G"],
    row_tokens: int,
    *,
    micro_batch_prompts: int,
    mesh: Mesh,
) -> Packing | None:
    """Lays completions into rows; None where that would save next to nothing.

    First-fit decreasing within each prompt. So that few programs are compiled, the
    number of rows is rounded up to three significant bits per device, and rows are
    `row_tokens` long, or a half, a quarter, ... of it where the longest fits.

    Args:
      lengths: of the completions.
      row_tokens: T, the most that a completion can have.
      micro_batch_prompts: whole prompts of a micro-batch; divides P.
      mesh: over whose devices rows are split.

    Returns:
      a Packing with a leading axis of micro-batches, on every device of the mesh.
    """
    count, generations = lengths.shape
    best = layout_of(
        lengths, row_tokens, micro_batch_prompts=micro_batch_prompts, mesh=mesh
    )
    if best is None:
        return None
    slots = np.full((count, generations, row_tokens), -1, np.int32)
    source = np.full(
        (count // micro_batch_prompts, best.size * best.tokens), -1, np.int32
    )
    for p, g in np.ndindex(count, generations):
        micro, place = divmod(p, micro_batch_prompts)
        steps = np.arange(int(lengths[p, g]))
        slots[p, g, : len(steps)] = best.begins[p, g] + steps
        token = (place * generations + g) * row_tokens
        source[micro, best.begins[p, g] + steps] = token + steps
    slots = slots.reshape(-1, micro_batch_prompts, generations, row_tokens)
    source = source.reshape(-1, best.size, best.tokens)
    everywhere = PartitionSpec()
    return Packing(
        put(source, mesh, everywhere), put(slots, mesh, everywhere), best.blocks
    )


def layout_of(
    lengths: Int[np.ndarray, "P G"],
    row_tokens: int,
    *,
    micro_batch_prompts: int,
    mesh: Mesh,
) -> Layout | None:
    """Where `pack` puts completions; None if they have as good as rows of their own."""
    generations = lengths.shape[1]
    devices = row_devices(mesh)
    by_prompt = len(row_spec(mesh, (micro_batch_prompts, generations))) == 1
    blocks = devices if by_prompt else 1
    layouts = [
        _layout(lengths, tokens, micro_batch_prompts // blocks, blocks, devices)
        for tokens in _row_lengths(row_tokens, int(lengths.max()))
    ]
    # Of equals the one with the shortest rows: attention is over whole rows.
    best = min(layouts, key=lambda layout: (layout.size * layout.tokens, layout.tokens))
    plain = micro_batch_prompts * generations * row_tokens
    return best if best.size * best.tokens <= WORTH * plain else None


def _layout(
    lengths: Int[np.ndarray, "P G"],
    tokens: int,
    per_block: int,
    blocks: int,
    devices: int,
) -> Layout:
    """Rows of `tokens` slots for blocks of `per_block` prompts."""
    places, rows = zip(*(_first_fit(row, tokens) for row in lengths), strict=True)
    rows = np.array(rows).reshape(-1, per_block)
    per_device = -(-int(rows.sum(axis=1).max()) * blocks // devices)
    size = _rounded_up(per_device) * devices
    before = np.cumsum(rows, axis=1) - rows  # rows of the block's earlier prompts
    block = np.arange(len(rows)) % blocks
    first = before + block[:, None] * (size // blocks)
    return Layout(
        tokens, size, np.array(places) + first.reshape(-1, 1) * tokens, blocks
    )


def _first_fit(
    lengths: Int[np.ndarray, " G"], tokens: int
) -> tuple[Int[np.ndarray, " G"], int]:
    """Slot of each completion, longest first into the first row with room; rows."""
    filled: list[int] = []
    begins = np.zeros(len(lengths), np.int64)
    for g in np.argsort(-lengths, kind="stable"):
        length = max(1, int(lengths[g]))
        fits = (row for row, used in enumerate(filled) if used + length <= tokens)
        row = next(fits, len(filled))
        if row == len(filled):
            filled.append(0)
        begins[g] = row * tokens + filled[row]
        filled[row] += length
    return begins, len(filled)


def _row_lengths(row_tokens: int, longest: int) -> list[int]:
    """`row_tokens` and its halves, as far as they are whole and the longest fits."""
    found = [row_tokens]
    while found[-1] % 2 == 0 and found[-1] // 2 >= max(1, longest):
        found.append(found[-1] // 2)
    return found


def _rounded_up(number: int) -> int:
    """To three significant bits: 1, ..., 8, 10, 12, 14, 16, 20, ..."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit
