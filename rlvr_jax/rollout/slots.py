"""Rows that decode together although they began at different times.

A slot holds one completion: its prompt's cache, its own, and how far it has come. Three
programs move slots: `insert` puts new completions into some (resumed.py: begun ones),
`advance` decodes them all for a while, `packed` gathers those that still run into fewer
slots.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from rlvr_jax.core.logprobs import head_logits
from rlvr_jax.models.caches import CompletionCache, PromptCache
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.rollout.sampler import Sampling, draw_tokens

NOT_FORCED = -1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Slots:
    """N completions under way."""

    prompts: PromptCache
    cache: CompletionCache
    """Of one completion per slot: [L, N, 1, Hkv, T, K]. Routes are kept of completions
    only; the host has those of prompts."""
    hidden: Float[Array, "... N D"]
    """Predicts the next token of each slot."""
    keys: Key[Array, "... N"]
    step: Int[Array, "... N"]
    """Tokens so far."""
    stop_at: Int[Array, "... N"]
    """The slot rests once it has this many tokens."""
    running: Bool[Array, "... N"]
    ended: Bool[Array, "... N"]
    """Closed by an end token."""
    tokens: Int[Array, "... N T"]
    logprobs: Float[Array, "... N T"]
    forced: Int[Array, "... N T"]
    """Tokens to write whatever is drawn; NOT_FORCED elsewhere."""
    kept: UInt32[Array, "... N T W"] | None
    """As `Rollouts.kept_tokens`."""


@functools.partial(jax.jit, static_argnames=("graphdef",))
def prefill(
    graphdef: nnx.GraphDef,
    parameters: nnx.State,
    tokens: Int[Array, "P S"],
    lengths: Int[Array, " P"],
) -> tuple[Float[Array, "P D"], PromptCache]:
    """The state that predicts each prompt's first completion token, and the cache."""
    decoder: Decoder = nnx.merge(graphdef, parameters)
    hidden, cache = decoder.prefill(tokens, lengths)
    return hidden[:, -1], cache


def empty_slots(
    prefilled: tuple[Array, PromptCache], count: int, sampling: Sampling, vocab: int
) -> Slots:
    """`count` slots in which nothing runs, shaped for prompts like `prefilled`."""
    hidden, prompts = prefilled
    layers, _, heads, slots, width = prompts.keys.shape
    length = sampling.max_completion_tokens
    prompt = jnp.zeros((layers, count, heads, slots, width), prompts.keys.dtype)
    own = jnp.zeros((layers, count, 1, heads, length, width), prompts.keys.dtype)
    rows = functools.partial(jnp.zeros, (count,))
    words = (count, length, -(-vocab // 32))
    routes = prompts.routes
    if routes is not None:
        shape = (layers, count, 1, length, routes.shape[-1])
        routes = jnp.zeros(shape, routes.dtype)
    return Slots(
        prompts=PromptCache(prompt, jnp.copy(prompt), jnp.ones(count, jnp.int32)),
        # Donated: no buffer twice.
        cache=CompletionCache(own, jnp.copy(own), routes),
        hidden=jnp.zeros((count, hidden.shape[-1]), hidden.dtype),
        keys=jax.random.split(jax.random.key(0), count),
        step=rows(jnp.int32),
        stop_at=rows(jnp.int32),
        running=rows(bool),
        ended=rows(bool),
        tokens=jnp.zeros((count, length), jnp.int32),
        logprobs=jnp.zeros((count, length), jnp.float32),
        forced=jnp.full((count, length), NOT_FORCED, jnp.int32),
        kept=jnp.zeros(words, jnp.uint32) if sampling.truncates else None,
    )


@functools.partial(jax.jit, donate_argnames="slots")
def insert(
    slots: Slots,
    prefilled: tuple[Float[Array, "P D"], PromptCache],
    source: Int[Array, " N"],
    keys: Key[Array, " N"],
    stop_at: Int[Array, " N"],
    forced: Int[Array, "N T"],
) -> Slots:
    """Starts completions of prefilled prompts in some slots.

    Args:
      slots: donated.
      prefilled: of `prefill`.
      source: per slot the prompt to start, or -1 to leave the slot as it is.
      keys: of the new completions.
      stop_at: tokens after which they rest.
      forced: tokens to write into each, NOT_FORCED elsewhere.
    """
    hidden, prompts = prefilled
    new = source >= 0
    from_prompt = jnp.maximum(source, 0)

    def choose(old, fresh, axis=0):
        shape = [1] * old.ndim
        shape[axis] = -1
        return jnp.where(new.reshape(shape), fresh, old)

    def of_prompt(array, axis=0):
        return jnp.take(array, from_prompt, axis=axis)

    return dataclasses.replace(
        slots,
        prompts=PromptCache(
            choose(slots.prompts.keys, of_prompt(prompts.keys, 1), 1),
            choose(slots.prompts.values, of_prompt(prompts.values, 1), 1),
            choose(slots.prompts.lengths, of_prompt(prompts.lengths)),
        ),
        hidden=choose(slots.hidden, of_prompt(hidden)),
        keys=jnp.where(new, keys, slots.keys),
        step=choose(slots.step, 0),
        stop_at=choose(slots.stop_at, stop_at),
        running=slots.running | new,
        ended=slots.ended & ~new,
        forced=jnp.where(new[:, None], forced, slots.forced),
    )


@functools.partial(
    jax.jit, static_argnames=("graphdef", "sampling"), donate_argnames="slots"
)
def advance(
    graphdef: nnx.GraphDef,
    parameters: nnx.State,
    slots: Slots,
    max_steps: Int[Array, ""],
    free_enough: Int[Array, ""],
    *,
    sampling: Sampling,
) -> Slots:
    """Decodes every running slot, token by token.

    Args:
      graphdef: of the decoder.
      parameters: of the decoder.
      slots: donated.
      max_steps: of this call.
      free_enough: returns as soon as so many slots rest.
      sampling: static.
    """
    decoder: Decoder = nnx.merge(graphdef, parameters)
    ends = jnp.asarray(sampling.end_ids, jnp.int32)
    every = jnp.arange(slots.step.shape[0])

    def goes_on(carry):
        taken, slots = carry
        resting = (~slots.running).sum()
        return (taken < max_steps) & slots.running.any() & (resting < free_enough)

    def one_token(carry):
        taken, slots = carry
        logits = head_logits(slots.hidden, decoder.head_weight, decoder.head_dtype)
        tokens, logprobs, kept = draw_tokens(logits, slots.keys, slots.step, sampling)
        at = jnp.minimum(slots.step, slots.tokens.shape[1] - 1)
        forced = slots.forced[every, at]
        is_free = forced == NOT_FORCED
        tokens = jnp.where(is_free, tokens, forced)
        logprobs = jnp.where(is_free, logprobs, 0.0)
        if kept is not None:  # a forced token may be one that could not be drawn
            kept = jnp.where(is_free[:, None], kept, ~jnp.uint32(0))

        def write(buffer, values):
            mask = slots.running.reshape(-1, *[1] * (values.ndim - 1))
            return buffer.at[every, at].set(jnp.where(mask, values, buffer[every, at]))

        hidden, cache = decoder.decode(
            tokens[:, None], at[:, None], slots.prompts, slots.cache
        )
        is_end = (tokens[:, None] == ends).any(-1) & slots.running
        step = slots.step + slots.running
        return taken + 1, dataclasses.replace(
            slots,
            cache=cache,
            hidden=hidden[:, 0],
            step=step,
            ended=slots.ended | is_end,
            running=slots.running & ~is_end & (step < slots.stop_at),
            tokens=write(slots.tokens, tokens),
            logprobs=write(slots.logprobs, logprobs),
            kept=None if slots.kept is None else write(slots.kept, kept),
        )

    return jax.lax.while_loop(goes_on, one_token, (jnp.int32(0), slots))[1]


@functools.partial(jax.jit, donate_argnames="slots")
def steered(
    slots: Slots,
    changed: Bool[Array, " N"],
    step: Int[Array, " N"],
    stop_at: Int[Array, " N"],
    ended: Bool[Array, " N"],
    forced: Int[Array, "N T"],
) -> Slots:
    """Slots cut back to `step` tokens, with what is to be written next.

    What a slot's cache holds beyond `step` is overwritten before it is read, and the
    first token after a cut must be forced: its hidden state is that of the old text.
    """
    choose = lambda old, new: jnp.where(changed, new, old)
    step, stop_at, ended = (
        choose(slots.step, step),
        choose(slots.stop_at, stop_at),
        choose(slots.ended, ended),
    )
    return dataclasses.replace(
        slots,
        step=step,
        stop_at=stop_at,
        ended=ended,
        running=choose(slots.running, ~ended & (step < stop_at)),
        forced=jnp.where(changed[:, None], forced, slots.forced),
    )


@jax.jit
def packed(slots: Slots, rows: Int[Array, " M"]) -> Slots:
    """The slots `rows` alone: fewer of them, when the last completions run."""

    def pick(path, array):
        # Caches have layers first.
        in_cache = getattr(path[0], "name", "") in ("prompts", "cache")
        return jnp.take(array, rows, axis=1 if in_cache and array.ndim > 1 else 0)

    return jax.tree_util.tree_map_with_path(pick, slots)
