"""Grouped-query attention over a prompt shared by a group and a row of one's own.

The completions of a group all attend to the same prompt, so its keys and values are
kept once per prompt, never once per completion.
"""

import dataclasses
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
    scale = queries.shape[-1] ** -0.5
    scores = {
        "own": jnp.einsum(
            "pgqhrk,pghsk->pghrqs",
            queries,
            own.keys,
            preferred_element_type=jnp.float32,
        )
    }
    own_mask = own.mask
    if own.first is not None:
        own_mask &= jnp.arange(own_mask.shape[-1]) >= own.first[..., None]
    masks = {"own": own_mask[:, :, None, None]}
    if prompt is not None:
        scores["prompt"] = jnp.einsum(
            "pgqhrk,phsk->pghrqs",
            queries,
            prompt.keys,
            preferred_element_type=jnp.float32,
        )
        masks["prompt"] = prompt.mask[:, None, None, None]
    scores = {
        part: jnp.where(masks[part], value * scale, _MASKED)
        for part, value in scores.items()
    }
    # One softmax over both parts without joining them.
    peak = jax.lax.stop_gradient(
        jax.tree.reduce(
            jnp.maximum, [s.max(axis=-1, keepdims=True) for s in scores.values()]
        )
    )
    weights = {part: jnp.exp(value - peak) for part, value in scores.items()}
    total = sum(w.sum(axis=-1, keepdims=True) for w in weights.values())
    weights = {part: (w / total).astype(queries.dtype) for part, w in weights.items()}
    attended = jnp.einsum("pghrqs,pghsk->pgqhrk", weights["own"], own.values)
    if prompt is not None:
        attended += jnp.einsum("pghrqs,phsk->pgqhrk", weights["prompt"], prompt.values)
    return attended


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
