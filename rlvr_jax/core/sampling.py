"""The distribution that completions are drawn from, for sampler and trainer alike.

Temperature, then top-k, top-p and min-p, in that order; ties at a border are kept.
A draw is by inverse distribution function: one vocabulary pass, where Gumbel noise
would need a random number per token of the vocabulary.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

_BLOCK = 256
"""Tokens per block of the two-level draw."""


def kept_tokens(
    logits: Float[Array, "*rows V"],
    *,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> Bool[Array, "*rows V"]:
    """Which tokens may be drawn.

    With p = softmax(logits), in this order (each on what the one before has left):

        top-k   tokens with at least the k-th largest p;
        top-p   the fewest most likely tokens whose share of the rest is >= top_p;
        min-p   tokens with p >= min_p * max p (https://arxiv.org/abs/2407.01082).

    Args:
      logits: already divided by the temperature, [..., V].
      top_k: 0 keeps all.
      top_p: in (0, 1]; 1 keeps all. https://arxiv.org/abs/1904.09751
      min_p: in [0, 1); 0 keeps all.

    Returns:
      True where a token is kept; at least the most likely one of every row.
    """
    if top_k == 0 and top_p >= 1.0 and min_p == 0.0:
        return jnp.ones(logits.shape, bool)
    ranks = _ordered_bits(logits.astype(jnp.float32))
    kept = jnp.ones(logits.shape, bool)
    if 0 < top_k < logits.shape[-1]:
        kept = ranks >= _highest_border(ranks, jnp.ones(logits.shape), float(top_k))
    if top_p < 1.0:
        mass = jnp.where(kept, jax.nn.softmax(logits, axis=-1), 0.0)
        needed = top_p * mass.sum(axis=-1, keepdims=True)
        kept &= ranks >= _highest_border(ranks, mass, needed)
    if min_p > 0.0:
        kept &= logits >= logits.max(axis=-1, keepdims=True) + jnp.log(min_p)
    return kept


def _ordered_bits(values):
    """float32 -> uint32 in the same order."""
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32)
    sign = jnp.uint32(1 << 31)
    return jnp.where(bits >= sign, ~bits, bits | sign)


def _highest_border(ranks, weights, needed):
    """The largest rank r such that weights of tokens with rank >= r sum to `needed`.

    Found bit by bit from the top: 32 passes over the vocabulary, where a sort or
    `lax.top_k` costs ten times as much on CPU. Sums of the same terms with more of them
    set to 0 never grow, so the search is exact also in floating point.
    """

    def step(index, border):
        trial = border | (jnp.uint32(1) << (31 - index).astype(jnp.uint32))
        reached = jnp.where(ranks >= trial, weights, 0.0).sum(axis=-1, keepdims=True)
        return jnp.where(reached >= needed, trial, border)

    border = jnp.zeros((*ranks.shape[:-1], 1), jnp.uint32)
    return jax.lax.fori_loop(0, 32, step, border)


def sampling_log_softmax(
    logits: Float[Array, "*rows V"], kept: Bool[Array, "*rows V"] | None
) -> Float[Array, "*rows V"]:
    """log softmax over the kept tokens; -inf elsewhere. None keeps all."""
    if kept is not None:
        logits = jnp.where(kept, logits, -jnp.inf)
    return jax.nn.log_softmax(logits, axis=-1)


def draw(
    keys: Key[Array, " *rows"], logprobs: Float[Array, "*rows V"]
) -> Int[Array, " *rows"]:
    """Draws one token per row by inverse distribution function, in two levels.

    First a block of 256 tokens by its mass, then a token within the block by a second,
    independent number: the resolution is that of both together (2^-46), so that rare
    tokens keep their chance. A token of probability 0 is never drawn.

    Args:
      keys: consumed; one per row.
      logprobs: normalised, -inf where a token may not be drawn.
    """
    vocab = logprobs.shape[-1]
    rows = logprobs.shape[:-1]
    blocks = -(-vocab // _BLOCK)
    padding = [(0, 0)] * len(rows) + [(0, blocks * _BLOCK - vocab)]
    mass = jnp.pad(jnp.exp(logprobs), padding).reshape(*rows, blocks, _BLOCK)
    uniform = jax.vmap(lambda key: jax.random.uniform(key, (2,)))(keys.reshape(-1))
    uniform = uniform.reshape(*rows, 2)
    block = _first_above(mass.sum(axis=-1), uniform[..., 0])
    inside = jnp.take_along_axis(mass, block[..., None, None], axis=-2)[..., 0, :]
    return block * _BLOCK + _first_above(inside, uniform[..., 1])


def _first_above(mass, uniform):
    """First index whose cumulated mass exceeds uniform * total."""
    cumulated = jnp.cumsum(mass, axis=-1)
    above = cumulated > uniform[..., None] * cumulated[..., -1:]
    # Rounding can leave none: then the last index that has any mass.
    last = mass.shape[-1] - 1 - jnp.argmax(mass[..., ::-1] > 0, axis=-1)
    return jnp.where(above.any(axis=-1), jnp.argmax(above, axis=-1), last)


def pack_bits(kept: Bool[Array, "*rows V"]) -> UInt32[Array, "*rows W"]:
    """Packs a kept set into words of 32 bits; bit v % 32 of word v // 32 is token v."""
    vocab = kept.shape[-1]
    words = -(-vocab // 32)
    padding = [(0, 0)] * (kept.ndim - 1) + [(0, words * 32 - vocab)]
    bits = jnp.pad(kept, padding).reshape(*kept.shape[:-1], words, 32)
    weights = jnp.left_shift(jnp.uint32(1), jnp.arange(32, dtype=jnp.uint32))
    return (bits.astype(jnp.uint32) * weights).sum(axis=-1, dtype=jnp.uint32)


def unpack_bits(words: UInt32[Array, "*rows W"], vocab: int) -> Bool[Array, "*rows V"]:
    """Inverse of `pack_bits`."""
    shifts = jnp.arange(32, dtype=jnp.uint32)
    bits = jnp.right_shift(words[..., None], shifts) & 1
    return bits.reshape(*words.shape[:-1], -1)[..., :vocab].astype(bool)
