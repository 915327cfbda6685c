"""Completions that go on: prompt and tokens so far are read anew, into slots."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, Key

from rlvr_jax.models.caches import CompletionCache, PromptCache
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.rollout.slots import Slots


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Begun:
    """R completions of at least one token."""

    slot: Int[Array, "... R"]
    """Where each goes; as many as there are slots, or more: nowhere."""
    source: Int[Array, "... R"]
    """Its prompt, among those prefilled."""
    keys: Key[Array, "... R"]
    tokens: Int[Array, "... R T"]
    forced: Int[Array, "... R T"]
    step: Int[Array, "... R"]
    """Tokens so far."""
    stop_at: Int[Array, "... R"]


@functools.partial(jax.jit, static_argnames="graphdef", donate_argnames="slots")
def resume(
    graphdef: nnx.GraphDef,
    parameters: nnx.State,
    slots: Slots,
    prefilled: tuple[Float[Array, "P D"], PromptCache],
    begun: Begun,
) -> Slots:
    """Slots with the completions `begun`, as if they had decoded all of their tokens.

    Caches and states are those of `parameters`, whoever sampled the tokens; a model
    with experts picks them anew. Log-probs and kept sets of the tokens so far are the
    host's.

    Args:
      graphdef: of the decoder.
      parameters: of the decoder.
      slots: donated.
      prefilled: of `prefill`.
      begun: the completions.
    """
    decoder: Decoder = nnx.merge(graphdef, parameters)
    _, prompts = prefilled
    take = lambda array, axis: jnp.take(array, begun.source, axis=axis)
    own_prompts = PromptCache(
        take(prompts.keys, 1), take(prompts.values, 1), take(prompts.lengths, 0)
    )
    states, cache = decoder.read(begun.tokens[:, None], own_prompts)
    every = jnp.arange(len(begun.step))

    def put(array, rows, axis=0):
        where = (slice(None),) * axis + (begun.slot,)
        return array.at[where].set(rows.astype(array.dtype), mode="drop")

    def put_cache(old, new):
        return None if old is None else put(old, new, axis=1)

    return dataclasses.replace(
        slots,
        prompts=PromptCache(
            put(slots.prompts.keys, own_prompts.keys, 1),
            put(slots.prompts.values, own_prompts.values, 1),
            put(slots.prompts.lengths, own_prompts.lengths),
        ),
        cache=CompletionCache(
            put(slots.cache.keys, cache.keys, 1),
            put(slots.cache.values, cache.values, 1),
            put_cache(slots.cache.routes, cache.routes),
        ),
        hidden=put(slots.hidden, states[every, 0, begun.step - 1]),
        keys=put_keys(slots.keys, begun),
        step=put(slots.step, begun.step),
        stop_at=put(slots.stop_at, begun.stop_at),
        running=put(slots.running, begun.step < begun.stop_at),
        ended=put(slots.ended, jnp.zeros(len(every), bool)),
        tokens=put(slots.tokens, begun.tokens),
        forced=put(slots.forced, begun.forced),
    )


def put_keys(keys: Key[Array, " N"], begun: Begun) -> Key[Array, " N"]:
    """The keys with those of `begun` in their slots."""
    return keys.at[begun.slot].set(begun.keys, mode="drop")
