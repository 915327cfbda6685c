"""Grouped-query attention over a prompt shared by a group and a row of one's own.

The completions of a group all attend to the same prompt, so its keys and values are
kept once per prompt, never once per completion.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.models.architecture import RopeScaling

_MASKED = -1e30  # finite: a row with nothing to attend to stays finite

QUERY_BLOCK = 512
"""Queries whose scores live at once; changes memory, never the result."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class KeyValues:
    """What queries may attend to: keys, values, and which slots count."""

    keys: Float[Array, "*rows Hkv S K"]
    values: Float[Array, "*rows Hkv S K"]
    mask: Bool[Array, "*#rows #Q S"]
    first: Int[Array, "*rows Q"] | None = None
    """Of each query: slots before this one do not count either; None: no such bound.
    A mask of its own for every row would be [rows, Q, S] at once."""


def attention(
    queries: Float[Array, "P G Q Hkv R K"],
    own: KeyValues,
    prompt: KeyValues | None = None,
) -> Float[Array, "P G Q Hkv R K"]:
    """softmax(q k / sqrt(K)) v over the union of `prompt` and `own` slots.

    Args:
      queries: R query heads per key-value head, at Q positions of G rows per prompt.
      own: keys and values of each row, rows = (P, G).
      prompt: keys and values shared by a prompt's G rows, rows = (P,).

    Returns:
      The attended values, in the type of `queries`; scores are float32. Of more than
      QUERY_BLOCK queries they are computed a block at a time, and again in the backward
      pass: scores of all of 20,480 positions would be 1.7 GB per head.
    """
    count = queries.shape[2]
    if count == 0:
        return queries
    if count <= QUERY_BLOCK:
        return _attend(queries, own, prompt)
    blocks = -(-count // QUERY_BLOCK)
    pad = blocks * QUERY_BLOCK - count

    def split(values, axis):
        padding = [(0, pad if at == axis else 0) for at in range(values.ndim)]
        before, after = values.shape[:axis], values.shape[axis + 1 :]
        shape = (*before, blocks, QUERY_BLOCK, *after)
        return jnp.moveaxis(jnp.pad(values, padding).reshape(shape), axis, 0)

    per_query = {}
    if own.mask.shape[2] > 1:
        per_query["mask"] = split(own.mask, 2)
    if own.first is not None:
        per_query["first"] = split(own.first, 2)

    def block(_, inputs):
        some, parts = inputs
        return None, _attend(some, dataclasses.replace(own, **parts), prompt)

    inputs = (split(queries, 2), per_query)
    _, attended = jax.lax.scan(jax.checkpoint(block), None, inputs)
    attended = jnp.moveaxis(attended, 0, 2)
    shape = (*queries.shape[:2], blocks * QUERY_BLOCK, *queries.shape[3:])
    return attended.reshape(shape)[:, :, :count]


def _attend(queries, own: KeyValues, prompt: KeyValues | None):
    """`attention` with all scores at once."""
    parts = {"own": own} if prompt is None else {"own": own, "prompt": prompt}
    scores = {name: _scores(queries, name, part) for name, part in parts.items()}
    # One softmax over both parts without joining them.
    peak = functools.reduce(jnp.maximum, _over_slots(jnp.max, scores).values())
    peak = jax.lax.stop_gradient(peak)
    weights = {
        name: jnp.exp(value - _in_layout(name, peak)[..., None])
        for name, value in scores.items()
    }
    total = functools.reduce(jnp.add, _over_slots(jnp.sum, weights).values())
    shares = {
        name: (weight / _in_layout(name, total)[..., None]).astype(queries.dtype)
        for name, weight in weights.items()
    }
    return functools.reduce(
        jnp.add, (_attended(shares[name], name, p.values) for name, p in parts.items())
    )


_LAYOUTS = {"own": ("pgh", "rq"), "prompt": ("ph", "grq")}
"""Axes of the matrix products of a part: those both sides have, then the queries' own.
With results in this order a product needs no transposed copy of its operands; on CPU
that is 2 to 7 times as fast as the order of `queries`."""


def _scores(queries, name: str, part: KeyValues):
    """Scaled and masked products of queries and keys, [the part's layout, S]."""
    shared, free = _LAYOUTS[name]
    scores = jnp.einsum(
        f"pgqhrk,{shared}sk->{shared}{free}s",
        queries,
        part.keys,
        preferred_element_type=jnp.float32,
    )
    mask = part.mask
    if part.first is not None:
        mask &= jnp.arange(mask.shape[-1]) >= part.first[..., None]
    mask = mask[:, :, None, None] if name == "own" else mask[:, None, None, None]
    return jnp.where(mask, scores * queries.shape[-1] ** -0.5, _MASKED)


def _attended(weights, name: str, values):
    """The weighted values of a part, in the order of the queries."""
    shared, free = _LAYOUTS[name]
    natural = jnp.einsum(
        f"{shared}{free}s,{shared}sk->{shared}{free}k", weights, values
    )
    return jnp.einsum(f"{shared}{free}k->pgqhrk", natural)


def _over_slots(reduce, parts):
    """reduce over the last axis of each part; the results in the own part's layout."""
    found = {name: reduce(part, axis=-1) for name, part in parts.items()}
    return {name: _in_layout(name, array) for name, array in found.items()}


def _in_layout(name: str, array):
    """From the own part's layout to that of `name`, or back: the same change."""
    return array if name == "own" else array.swapaxes(1, 2)


def rotary_frequencies(
    head_dim: int, theta: float, scaling: RopeScaling | None
) -> tuple[Float[Array, " F"], float]:
    """Angle per position of each of F = K/2 pairs, and a factor on cos and sin.

    Plain RoPE (https://arxiv.org/abs/2104.09864): theta^(-2i/K). "linear" divides by
    `factor`; "llama3" divides only the slow pairs, with a smooth passage between;
    "yarn" (https://arxiv.org/abs/2309.00071) does so by a ramp over pairs, and scales
    cos and sin by `attention_factor` (0.1 ln(factor) + 1 unless a model states it).
    """
    # In float64 on the host, rounded once: float32 powers are off by up to 4e-7, which
    # is 0.01 rad at position 30,000.
    frequencies = theta ** -(np.arange(0, head_dim, 2) / head_dim)
    if scaling is None:
        return jnp.asarray(frequencies, jnp.float32), 1.0
    slowed = frequencies / scaling.factor
    if scaling.kind == "linear":
        return jnp.asarray(slowed, jnp.float32), 1.0
    if scaling.kind == "llama3":
        turns = scaling.original_max_positions * frequencies / (2 * np.pi)
        span = scaling.high_freq_factor - scaling.low_freq_factor
        keep = np.clip((turns - scaling.low_freq_factor) / span, 0.0, 1.0)
        mixed = keep * frequencies + (1 - keep) * slowed
        return jnp.asarray(mixed, jnp.float32), 1.0

    def pair_with_turns(turns: float) -> float:
        ratio = scaling.original_max_positions / (turns * 2 * math.pi)
        return head_dim * math.log(ratio) / (2 * math.log(theta))

    low = max(math.floor(pair_with_turns(scaling.beta_fast)), 0)
    high = min(math.ceil(pair_with_turns(scaling.beta_slow)), head_dim - 1)
    ramp = (np.arange(head_dim // 2) - low) / max(high - low, 1e-3)
    slow = np.clip(ramp, 0.0, 1.0)
    mixed = slow * slowed + (1 - slow) * frequencies
    return jnp.asarray(mixed, jnp.float32), scaling.attention_factor


def rotate(
    heads: Float[Array, "*rows Q N K"],
    positions: Int[Array, "*rows Q"],
    frequencies: Float[Array, " F"],
    factor: float,
) -> Float[Array, "*rows Q N K"]:
    """Applies RoPE: pair i is (i, i + K/2), turned by positions * frequencies[i]."""
    angles = positions[..., None, None].astype(jnp.float32) * frequencies
    cos, sin = jnp.cos(angles) * factor, jnp.sin(angles) * factor
    first, second = jnp.split(heads.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate(
        [first * cos - second * sin, second * cos + first * sin], axis=-1
    )
    return turned.astype(heads.dtype)
