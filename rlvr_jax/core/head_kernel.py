"""Pallas kernels for TPU: the LM head, log-softmax and entropy of one device.

Logits live only as tiles of [vocabulary, rows] in fast memory, the transposed product:
what belongs to a row then lies along lanes, and is stored without padding.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxtyping import Array, Float, Int

_LOW = -1e30
"""Of slots beyond the vocabulary: exp gives 0, and 0 times it is 0."""
_NO_WORD = jnp.iinfo(jnp.int32).min
_ROWS_ACROSS = (((1,), (1,)), ((), ()))
_VMEM_BUDGET = 36 * 2**20
_VMEM_LIMIT = 48 * 2**20
"""Bytes; the smallest memory of a core among v5e, v5p, v6e and tpu7x is 64 MiB."""


def tile_size(width: int, itemsize: int) -> int:
    """Rows, and words, of a tile: the largest that fast memory has room for.

    Two buffers of each input, an accumulator in float32, two buffers of the output,
    and four arrays of the tile's logits.
    """
    for size in (512, 384, 256):
        needed = size * width * (6 * itemsize + 4) + 16 * size**2
        if needed <= _VMEM_BUDGET:
            return size
    return 128


def head_forward(
    hidden: Float[Array, "N D"],
    head: Float[Array, "V D"],
    tokens: Int[Array, " N"],
    *,
    temperature: float,
    tiles: tuple[int, int] | None = None,
    interpret: bool = False,
) -> tuple[Float[Array, " N"], Float[Array, " N"], Float[Array, " N"]]:
    """One pass over the vocabulary with a running log-sum-exp.

    Args:
      hidden: states.
      head: all or a part of the LM head.
      tokens: rows of `head`; another number is not in this part.
      temperature: divides the logits.
      tiles: rows of `hidden` and of `head` at once; None for `tile_size`.
      interpret: run on any device, slowly.

    Returns:
      the logit of the token (0 if it is not in this part), log sum exp of the logits,
      and the entropy of their softmax: float32 each.
    """
    rows, words = _tiles(hidden, head, tiles)
    grid = (pl.cdiv(hidden.shape[0], rows), pl.cdiv(head.shape[0], words))
    kernel = functools.partial(
        _forward_kernel, temperature=temperature, vocabulary=head.shape[0]
    )
    per_row = lambda i, j: (0, i)
    found = pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[
            pl.BlockSpec((1, rows), per_row),
            pl.BlockSpec((rows, hidden.shape[1]), lambda i, j: (i, 0)),
            pl.BlockSpec((words, head.shape[1]), lambda i, j: (j, 0)),
        ],
        out_specs=pl.BlockSpec((3, rows), per_row),
        out_shape=jax.ShapeDtypeStruct((3, hidden.shape[0]), jnp.float32),
        scratch_shapes=[pltpu.VMEM((1, rows), jnp.float32)] * 4,
        compiler_params=_compiler_params("parallel", "arbitrary"),
        name="head_forward",
        interpret=interpret,
    )(tokens[None], hidden, head)
    return found[0], found[1], found[2]


def head_backward(
    hidden: Float[Array, "N D"],
    head: Float[Array, "V D"],
    tokens: Int[Array, " N"],
    per_row: Float[Array, "4 N"],
    *,
    temperature: float,
    tiles: tuple[int, int] | None = None,
    interpret: bool = False,
) -> tuple[Float[Array, "N D"], Float[Array, "V D"]]:
    """Gradients by `hidden` and `head`, each in one pass that makes the logits again.

    Args:
      hidden: as in `head_forward`, like the four arguments after the next.
      head: all or a part of the LM head.
      tokens: rows of `head`.
      per_row: log sum exp and entropy over all parts, and the cotangents of log-prob
        and entropy.
      temperature: as before.
      tiles: as before.
      interpret: as before.

    Returns:
      this part's share of the gradient by `hidden`, and the gradient by `head`; in
      their types, sums in float32.
    """
    (count, width), vocabulary = hidden.shape, head.shape[0]
    rows, words = _tiles(hidden, head, tiles)
    settings = {"temperature": temperature, "vocabulary": vocabulary}

    def call(kernel, name, grid, row, word, like, out_tile):
        """`row`, `word`: the grid axes over them; axis 0 is the output's."""
        return pl.pallas_call(
            functools.partial(kernel, **settings),
            grid=grid,
            in_specs=[
                pl.BlockSpec((1, rows), lambda *at: (0, at[row])),
                pl.BlockSpec((4, rows), lambda *at: (0, at[row])),
                pl.BlockSpec((rows, width), lambda *at: (at[row], 0)),
                pl.BlockSpec((words, width), lambda *at: (at[word], 0)),
            ],
            out_specs=pl.BlockSpec((out_tile, width), lambda i, j: (i, 0)),
            out_shape=jax.ShapeDtypeStruct(like.shape, like.dtype),
            scratch_shapes=[pltpu.VMEM((out_tile, width), jnp.float32)],
            compiler_params=_compiler_params("parallel", "arbitrary"),
            name=name,
            interpret=interpret,
        )(tokens[None], per_row, hidden, head)

    row_tiles, word_tiles = pl.cdiv(count, rows), pl.cdiv(vocabulary, words)
    by_hidden = call(
        _hidden_kernel,
        "head_backward_hidden",
        (row_tiles, word_tiles),
        0,
        1,
        hidden,
        rows,
    )
    by_head = call(
        functools.partial(_head_kernel, count=count),
        "head_backward_head",
        (word_tiles, row_tiles),
        1,
        0,
        head,
        words,
    )
    return by_hidden, by_head


def _tiles(hidden, head, tiles) -> tuple[int, int]:
    size = tile_size(hidden.shape[1], max(hidden.dtype.itemsize, head.dtype.itemsize))
    rows, words = (size, size) if tiles is None else tiles
    return min(rows, hidden.shape[0]), min(words, head.shape[0])


def _compiler_params(*semantics: Any) -> pltpu.CompilerParams:
    return pltpu.CompilerParams(
        dimension_semantics=semantics, vmem_limit_bytes=_VMEM_LIMIT
    )


def _logits(head_ref, hidden_ref, first: Any, temperature: float, vocabulary: int):
    """A tile [words, rows], and which word each of its rows is."""
    logits = jax.lax.dot_general(
        head_ref[...],
        hidden_ref[...],
        _ROWS_ACROSS,
        preferred_element_type=jnp.float32,
    )
    words = first + jax.lax.broadcasted_iota(jnp.int32, logits.shape, 0)
    logits = logits / temperature
    if vocabulary % logits.shape[0]:
        inside = words < vocabulary
        logits = jnp.where(inside, logits, _LOW)
        # A token of the part behind this one must not find itself here.
        words = jnp.where(inside, words, _NO_WORD)
    return logits, words


def _forward_kernel(
    tokens_ref,
    hidden_ref,
    head_ref,
    out_ref,
    chosen_ref,
    peak_ref,
    mass_ref,
    moment_ref,
    *,
    temperature,
    vocabulary,
):
    step = pl.program_id(1)

    @pl.when(step == 0)
    def _():
        chosen_ref[...] = jnp.zeros_like(chosen_ref)
        peak_ref[...] = jnp.full_like(peak_ref, _LOW)
        mass_ref[...] = jnp.zeros_like(mass_ref)
        moment_ref[...] = jnp.zeros_like(moment_ref)

    first = step * head_ref.shape[0]
    logits, words = _logits(head_ref, hidden_ref, first, temperature, vocabulary)
    hit = words == tokens_ref[...]
    chosen_ref[...] += jnp.sum(jnp.where(hit, logits, 0.0), axis=0, keepdims=True)
    before, mass = peak_ref[...], mass_ref[...]
    peak = jnp.maximum(before, jnp.max(logits, axis=0, keepdims=True))
    weights = jnp.exp(logits - peak)
    moved = before - peak
    keep = jnp.exp(moved)
    # mass = sum exp(z - peak), moment = sum exp(z - peak) (z - peak).
    moment_ref[...] = keep * (moment_ref[...] + mass * moved) + jnp.sum(
        weights * (logits - peak), axis=0, keepdims=True
    )
    mass_ref[...] = keep * mass + jnp.sum(weights, axis=0, keepdims=True)
    peak_ref[...] = peak

    @pl.when(step == pl.num_programs(1) - 1)
    def _():
        log_mass = jnp.log(mass_ref[...])
        out_ref[0:1] = chosen_ref[...]
        out_ref[1:2] = peak_ref[...] + log_mass
        out_ref[2:3] = log_mass - moment_ref[...] / mass_ref[...]


def _logit_gradients(
    tokens_ref, rows_ref, hidden_ref, head_ref, first, temperature, vocabulary
):
    r"""d loss / d (hidden head^T), a tile [words, rows].

    d log p_t / d z_j = [j = t] - p_j,    d H / d z_j = -p_j (log p_j + H)
    """
    logits, words = _logits(head_ref, hidden_ref, first, temperature, vocabulary)
    total, entropy = rows_ref[0:1], rows_ref[1:2]
    by_logprob, by_entropy = rows_ref[2:3], rows_ref[3:4]
    logprobs = logits - total
    hit = words == tokens_ref[...]
    gradients = jnp.where(hit, by_logprob, 0.0) - jnp.exp(logprobs) * (
        by_logprob + by_entropy * (logprobs + entropy)
    )
    return gradients / temperature


def _hidden_kernel(
    tokens_ref,
    rows_ref,
    hidden_ref,
    head_ref,
    out_ref,
    sum_ref,
    *,
    temperature,
    vocabulary,
):
    # Rows past the end are computed, and left out by the output's shape.
    first = pl.program_id(1) * head_ref.shape[0]
    gradients = _logit_gradients(
        tokens_ref, rows_ref, hidden_ref, head_ref, first, temperature, vocabulary
    )
    table = _within(head_ref[...], first, vocabulary)
    _add_product(gradients.T, table, sum_ref, out_ref)


def _head_kernel(
    tokens_ref,
    rows_ref,
    hidden_ref,
    head_ref,
    out_ref,
    sum_ref,
    *,
    temperature,
    vocabulary,
    count,
):
    first = pl.program_id(0) * head_ref.shape[0]
    gradients = _logit_gradients(
        tokens_ref, rows_ref, hidden_ref, head_ref, first, temperature, vocabulary
    )
    row = pl.program_id(1) * hidden_ref.shape[0]
    gradients = _within(gradients, row, count, axis=1)
    _add_product(gradients, _within(hidden_ref[...], row, count), sum_ref, out_ref)


def _add_product(gradients, values, sum_ref, out_ref):
    """Adds gradients values to the sum over the grid's second axis; the last is out."""
    step = pl.program_id(1)

    @pl.when(step == 0)
    def _():
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += jnp.matmul(
        gradients.astype(values.dtype), values, preferred_element_type=jnp.float32
    )

    @pl.when(step == pl.num_programs(1) - 1)
    def _():
        out_ref[...] = sum_ref[...].astype(out_ref.dtype)


def _within(values, first: Any, size: int, axis: int = 0):
    """A tile with zeros past the end of the array, where anything may be read."""
    if size % values.shape[axis] == 0:
        return values
    at = first + jax.lax.broadcasted_iota(jnp.int32, values.shape, axis)
    return jnp.where(at < size, values, jnp.zeros_like(values))
