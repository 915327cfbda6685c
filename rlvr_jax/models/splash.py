"""Attention by JAX's splash kernel for TPU: scores live only as tiles in fast memory.

The kernel takes one sequence of queries and one of keys, a causal mask that it computes
as it goes, and ids of segments. A completion's keys are those of its prompt and then
its own, with its queries starting behind the prompt; padding is a segment of its own.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu import splash_attention as library
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float

from rlvr_jax.mesh.mesh import prompt_spec, row_spec, rows_divide

LEAST_QUERIES = 128
"""Fewer would leave most of a tile empty."""


@dataclasses.dataclass(frozen=True)
class Splash:
    """How the kernel runs; hashable, as part of a decoder's definition."""

    mesh: Mesh | None = None
    """Devices of the arrays, rows over "data" and "fsdp", heads over "tensor"."""
    block: int = 512
    """Queries, and slots, of a tile at most; a multiple of 128."""
    least_queries: int = LEAST_QUERIES
    """Of fewer the dense form is taken."""
    interpret: bool = False
    """Run on any device, slowly: for tests."""

    def takes(self, queries: int, kv_heads: int) -> bool:
        """Whether queries of that many positions and heads go by the kernel."""
        tensor = 1 if self.mesh is None else self.mesh.shape["tensor"]
        return queries >= self.least_queries and kv_heads % tensor == 0


def splash_attention(
    queries: Float[Array, "P G Q Hkv R K"],
    keys: Float[Array, "P G Hkv Q K"],
    values: Float[Array, "P G Hkv Q K"],
    *,
    own_kept: Bool[Array, "P Q"] | None = None,
    prompt: tuple[Array, Array, Array] | None = None,
    kernel: Splash,
) -> Float[Array, "P G Q Hkv R K"]:
    """Causal attention of rows over their own slots, and all of a prompt's before.

    Args:
      queries: R query heads per key-value head, at Q positions of G rows per prompt.
      keys: of the same positions.
      values: of the same positions.
      own_kept: the row's slots that count, as of a padded prompt; None: all. What comes
        out at others is finite and means nothing.
      prompt: keys and values [P, Hkv, S, K], shared by a prompt's rows, and which of
        their slots count, [P, S].
      kernel: how and where to run.

    Returns:
      as `attention.attention`: scores and sums are float32, the result has the type of
      `queries`.
    """
    count, groups, length = queries.shape[:3]
    if own_kept is None:
        own_kept = jnp.ones((count, length), bool)
    arrays = [queries, keys, values, own_kept, *(prompt or ())]
    part = functools.partial(_local, kernel=kernel)
    mesh = kernel.mesh
    if mesh is None or math.prod(mesh.shape.values()) == 1:
        return part(*arrays)
    by_prompt, by_row = _row_specs(mesh, count, groups)
    heads = (None,) * (2 - len(by_row)) + ("tensor",)
    shared = PartitionSpec(*(by_prompt or (None,)), "tensor")
    per_query = PartitionSpec(*by_row, *(None,) * (3 - len(by_row)), "tensor")
    own = PartitionSpec(*by_row, *heads)
    specs = [per_query, own, own, PartitionSpec(*by_prompt)]
    if prompt is not None:
        specs += [shared, shared, PartitionSpec(*by_prompt)]
    # Kernels say nothing of how their outputs vary over the mesh.
    return jax.shard_map(
        part,
        mesh=mesh,
        in_specs=tuple(specs),
        out_specs=per_query,
        check_vma=False,
    )(*arrays)


def _row_specs(mesh: Mesh, count: int, groups: int) -> tuple[tuple, tuple]:
    """How [P, ...] and [P, G, ...] are split; not at all where nothing divides."""
    if not rows_divide(mesh, (count, groups)):
        return (), ()
    rows = row_spec(mesh, (count, groups))
    return tuple(prompt_spec(rows)), tuple(rows)


def _local(queries, keys, values, own_kept, *prompt, kernel: Splash):
    """On one device."""
    length, kv_heads, repeats, width = queries.shape[2:]
    segments = own_kept
    before = 0
    if prompt:
        prompt_keys, prompt_values, prompt_kept = prompt
        before = prompt_keys.shape[-2]

        def joined(shared, own):
            shape = (*own.shape[:3], before, width)
            shared = jnp.broadcast_to(shared[:, None], shape)
            return jnp.concatenate([shared, own], axis=-2)

        keys, values = joined(prompt_keys, keys), joined(prompt_values, values)
        segments = jnp.concatenate([prompt_kept, own_kept], axis=-1)
    block = min(kernel.block, -(-length // 128) * 128)
    padded, slots = (-(-size // block) * block for size in (length, before + length))
    scaled = queries * width**-0.5
    scaled = jnp.moveaxis(scaled, 2, 4).reshape(
        *queries.shape[:2], kv_heads * repeats, length, width
    )

    def filled(array, size, axis, with_value=0):
        pad = [(0, 0)] * array.ndim
        pad[axis] = (0, size - array.shape[axis])
        return jnp.pad(array, pad, constant_values=with_value)

    # Slots that fill up come behind every query that counts: causality hides them.
    # Queries that do look at what counts, as a softmax over nothing is no number.
    attend = _kernel(kv_heads * repeats, padded, slots, before, block, kernel.interpret)
    ids = library.SegmentIds(
        filled(own_kept.astype(jnp.int32), padded, -1, 1),
        filled(segments.astype(jnp.int32), slots, -1),
    )
    per_row = jax.vmap(attend, (0, 0, 0, None))
    attended = jax.vmap(per_row)(
        filled(scaled, padded, -2),
        filled(keys, slots, -2),
        filled(values, slots, -2),
        ids,
    )[..., :length, :]
    attended = attended.reshape(*queries.shape[:2], kv_heads, repeats, length, width)
    return jnp.moveaxis(attended, 4, 2)


@functools.lru_cache(maxsize=32)
def _kernel(heads: int, queries: int, slots: int, before: int, block: int, interpret):
    """The library's kernel; which tiles its mask needs takes seconds to find out."""
    mask = library.CausalMask((queries, slots), offset=before)
    sizes = library.BlockSizes(
        block_q=block,
        block_kv=block,
        block_kv_compute=block,
        block_q_dkv=block,
        block_kv_dkv=block,
        block_kv_dkv_compute=block,
        block_q_dq=block,
        block_kv_dq=block,
    )
    # Arrays that outlive the trace in which they are first needed.
    with jax.ensure_compile_time_eval():
        made = library.make_splash_mha(
            library.MultiHeadMask([mask] * heads),
            block_sizes=sizes,
            head_shards=1,
            q_seq_shards=1,
            interpret=interpret,
        )
    return jax.tree.map(np.asarray, made)
