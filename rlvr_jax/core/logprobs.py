"""Token log-probs and entropies, from logits or straight from hidden states."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from rlvr_jax.core.fused_head import HeadKernel, fused_logprobs
from rlvr_jax.core.sampling import sampling_log_softmax, unpack_bits


def logprobs_from_logits(
    logits: Float[Array, "*rows V"],
    tokens: Int[Array, " *rows"],
    *,
    temperature: float = 1.0,
) -> Float[Array, " *rows"]:
    """log softmax(logits / temperature) at `tokens`, in nats.

    Example:
      >>> print(logprobs_from_logits(jnp.log(jnp.array([0.25, 0.75])), jnp.array(1)))
      -0.2876...
    """
    scaled = logits / temperature
    chosen = jnp.take_along_axis(scaled, tokens[..., None], axis=-1)[..., 0]
    return chosen - jax.nn.logsumexp(scaled, axis=-1)


def entropy_from_logits(
    logits: Float[Array, "*rows V"], *, temperature: float = 1.0
) -> Float[Array, " *rows"]:
    """-sum p log p of p = softmax(logits / temperature), in nats.

    Tokens with logit -inf have p log p = 0: entropy and gradient stay finite.

    Example:
      >>> print(entropy_from_logits(jnp.array([0.0, 0.0, -jnp.inf])))
      0.6931...
    """
    return _entropy(jax.nn.log_softmax(logits / temperature, axis=-1))


def token_logprobs(
    hidden: Float[Array, "B T D"],
    head: Float[Array, "V D"],
    tokens: Int[Array, "B T"],
    *,
    temperature: float = 1.0,
    kept_words: UInt32[Array, "B T W"] | None = None,
    head_dtype: jax.typing.DTypeLike = jnp.float32,
    chunk: int = 128,
    kernel: HeadKernel | None = None,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Log-probs of `tokens` and entropies, without ever holding [B, T, V].

    logits = hidden head^T / temperature, restricted to the sampler's kept set, taken
    `chunk` positions at a time; the backward pass computes each chunk's logits again.

    Args:
      hidden: states that predict `tokens` (position t predicts tokens[:, t]).
      head: the LM head; logits are float32 (or wider) whatever its type.
      tokens: ids, [B, T]. Any id at padding; mask the result.
      temperature: of the sampling distribution.
      kept_words: the sampler's kept sets (`pack_bits`), or None for all tokens.
      head_dtype: what logits are rounded to, as in `head_logits`.
      chunk: positions per chunk; B * chunk * V numbers live at once, and the head's
        gradient in float32.
      kernel: compute in tiles of the vocabulary by the TPU kernels of `fused_head`,
        where a tile is all that lives at once, and `chunk` says nothing. Not with
        `kept_words` nor a `head_dtype` below float32: those go by chunks all the same.

    Returns:
      log-probs [B, T] in nats, and entropies [B, T] of the same distribution, both
      differentiable.
    """
    exact = jnp.finfo(head_dtype).bits >= 32
    if kernel is not None and kept_words is None and exact:
        return fused_logprobs(
            hidden, head, tokens, temperature=temperature, kernel=kernel
        )
    rows, length, _ = hidden.shape
    chunk = min(chunk, length)
    count = -(-length // chunk)
    inputs = (hidden, tokens) if kept_words is None else (hidden, tokens, kept_words)
    pad = count * chunk - length

    def split(values):
        padding = [(0, 0), (0, pad)] + [(0, 0)] * (values.ndim - 2)
        values = jnp.pad(values, padding)
        values = values.reshape(rows, count, chunk, *values.shape[2:])
        return values.swapaxes(0, 1)

    # The backward pass sums the chunks' gradients of the head in the type that enters
    # the loop: in bfloat16, 512 chunks would be off by 2 %.
    wide = head.astype(jnp.promote_types(jnp.float32, head.dtype))
    piece = functools.partial(
        _chunk_logprobs, temperature=temperature, dtype=head_dtype
    )

    @jax.checkpoint
    def narrowed(wide, *inputs):
        return piece(wide.astype(head.dtype), *inputs)

    def body(_, inputs):
        return None, narrowed(wide, *inputs)

    _, results = jax.lax.scan(body, None, tuple(split(x) for x in inputs))

    def join(values):
        return values.swapaxes(0, 1).reshape(rows, count * chunk)[:, :length]

    return join(results[0]), join(results[1])


def head_logits(
    hidden: Float[Array, "*rows D"],
    head: Float[Array, "V D"],
    dtype: jax.typing.DTypeLike = jnp.float32,
) -> Float[Array, "*rows V"]:
    r"""hidden head^T, accumulated and returned in float32 or wider.

    Args:
      hidden: states.
      head: the LM head.
      dtype: a narrower type rounds the logits to what it can hold, as a head that
        computes in it does: bfloat16 has 8 bits, so a logit of 20 is off by up to
        0.06. MiniMax-M1 found that to be what set its sampler and trainer apart.

    References:
      MiniMax-M1, sec. 3.2. https://arxiv.org/abs/2506.13585

    Example:
      >>> hidden, head = jnp.array([[20.04]]), jnp.ones((1, 1))
      >>> print(head_logits(hidden, head), head_logits(hidden, head, jnp.bfloat16))
      [[20.04]] [[20.]]
    """
    wide = jnp.promote_types(jnp.float32, hidden.dtype)
    logits = jnp.einsum("...d,vd->...v", hidden, head, preferred_element_type=wide)
    kept = jnp.finfo(dtype)
    if kept.bits >= jnp.finfo(wide).bits or kept.bits >= 32:
        return logits
    # Not a cast there and back, which the compiler takes for a waste of time.
    return jax.lax.reduce_precision(logits, kept.nexp, kept.nmant)


def _chunk_logprobs(head, hidden, tokens, kept_words=None, *, temperature, dtype):
    logits = head_logits(hidden, head, dtype) / temperature
    if kept_words is None:
        logprobs = jax.nn.log_softmax(logits, axis=-1)
    else:
        kept = unpack_bits(kept_words, logits.shape[-1])
        # Padding keeps nothing: let it keep all, or its gradient is NaN.
        kept |= ~kept.any(axis=-1, keepdims=True)
        logprobs = sampling_log_softmax(logits, kept)
    chosen = jnp.take_along_axis(logprobs, tokens[..., None], axis=-1)[..., 0]
    return chosen, _entropy(logprobs)


def _entropy(logprobs):
    possible = logprobs > -jnp.inf
    finite = jnp.where(possible, logprobs, 0.0)
    return -jnp.sum(jnp.where(possible, jnp.exp(finite) * finite, 0.0), axis=-1)
