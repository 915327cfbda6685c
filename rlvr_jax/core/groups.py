"""Sums, extrema and ranks within groups of rows that carry an explicit group id.

Rows of one group may stand anywhere in the batch, and groups may differ in size. Ids
are values in 0..B-1 for B rows, so that the number of segments is known while tracing:
the functions jit, vmap and shard over rows. They are jitted here already, so that a
call from a notebook compiles one program rather than ten operations. An id outside
0..B-1 cannot be refused while tracing; its rows get NaN, so that it is noticed.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped


def widened(values: Shaped[Array, "..."]) -> Float[Array, "..."]:
    """float64 stays float64; every other type becomes float32."""
    keep = values.dtype == jnp.float64
    return values.astype(jnp.float64 if keep else jnp.float32)


def kept_rows(
    row_mask: Bool[Array, " B"] | None, rows: Shaped[Array, " B"]
) -> Bool[Array, " B"]:
    """The mask, or True for every row where none was given."""
    return jnp.ones(rows.shape, bool) if row_mask is None else row_mask


def of_segment(
    per_segment: Float[Array, " N"], segment: Int[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """The value of each element's segment; NaN for a segment that does not exist."""
    return per_segment.at[segment].get(
        mode="fill", fill_value=jnp.nan, wrap_negative_indices=False
    )


@jax.jit
def group_sum(
    values: Float[Array, " B"], group_id: Int[Array, " B"], kept: Bool[Array, " B"]
) -> Float[Array, " B"]:
    """The sum over the kept rows of each row's group, written to every row of it."""
    # A NaN in a row that does not count must not count, hence no multiplication.
    sums = jax.ops.segment_sum(
        jnp.where(kept, values, 0), group_id, num_segments=group_id.shape[0]
    )
    return of_segment(sums, group_id)


def group_count(
    group_id: Int[Array, " B"], kept: Bool[Array, " B"], dtype: jnp.dtype
) -> Float[Array, " B"]:
    """How many rows of each row's group are kept."""
    return group_sum(jnp.ones(group_id.shape, dtype), group_id, kept)


@jax.jit
def group_mean(
    values: Float[Array, " B"], group_id: Int[Array, " B"], kept: Bool[Array, " B"]
) -> Float[Array, " B"]:
    """The mean over the kept rows of each row's group; 0 where no row is kept."""
    count = group_count(group_id, kept, values.dtype)
    return group_sum(values, group_id, kept) / jnp.maximum(count, 1)


@jax.jit
def group_max(
    values: Float[Array, " B"], group_id: Int[Array, " B"], kept: Bool[Array, " B"]
) -> Float[Array, " B"]:
    """The largest kept value of each row's group; -inf where no row is kept."""
    largest = jax.ops.segment_max(
        jnp.where(kept, values, -jnp.inf), group_id, num_segments=group_id.shape[0]
    )
    return of_segment(largest, group_id)


@jax.jit
def group_is_constant(
    values: Float[Array, " B"], group_id: Int[Array, " B"], kept: Bool[Array, " B"]
) -> Bool[Array, " B"]:
    """True on rows whose group has one single value (or no kept row at all).

    Compared value by value: the mean of equal floats need not be that float.
    """
    largest = group_max(values, group_id, kept)
    smallest = -group_max(-values, group_id, kept)
    return largest <= smallest
