"""Sampling completions: prefill once per prompt, then one jitted decode loop."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, Key, UInt32

from rlvr_jax.config import RolloutConfig
from rlvr_jax.core.logprobs import head_logits
from rlvr_jax.core.sampling import draw, kept_tokens, pack_bits, sampling_log_softmax
from rlvr_jax.models.caches import CompletionCache, PromptCache
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.types import Rollouts


@dataclasses.dataclass(frozen=True)
class Sampling:
    """What a sampling program is compiled for."""

    num_generations: int
    max_completion_tokens: int
    end_ids: tuple[int, ...]
    """Tokens that end a completion; they are part of it."""
    temperature: float = 1.0
    """0 takes the most likely token."""
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    prompts_at_once: int = 0
    """0, or a size that divides the prompts of a batch: one group of them after the
    other, in the same program."""

    @classmethod
    def from_config(cls, rollout: RolloutConfig, end_ids: tuple[int, ...]):
        """The settings of training rollouts."""
        shared = {
            field.name: getattr(rollout, field.name)
            for field in dataclasses.fields(cls)
            if field.name != "end_ids"
        }
        return cls(end_ids=end_ids, **shared)

    @property
    def truncates(self) -> bool:
        """Some tokens cannot be drawn, so the kept sets belong to the rollouts."""
        cut = self.top_k > 0 or self.top_p < 1.0 or self.min_p > 0.0
        return cut and self.temperature > 0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Progress:
    """The decode loop's state; `hidden` predicts token `step`."""

    step: Int[Array, ""]
    rollouts: Rollouts
    cache: CompletionCache


def row_keys(
    seed: int,
    step: Int[Array, ""] | int,
    prompt_ids: Int[Array, " P"],
    num_generations: int,
) -> Key[Array, "P G"]:
    """One key per completion: a function of (seed, step, prompt id, sample id).

    The sampler folds in the position, so a completion does not depend on the batch, the
    devices or the process that sampled it.
    """
    base = jax.random.fold_in(jax.random.key(seed), step)
    fold = jax.random.fold_in
    samples = jnp.arange(num_generations)
    per_prompt = jax.vmap(fold, (None, 0))(base, prompt_ids)
    return jax.vmap(jax.vmap(fold, (None, 0)), (0, None))(per_prompt, samples)


@functools.partial(jax.jit, static_argnames=("graphdef", "sampling"))
def sample(
    graphdef: nnx.GraphDef,
    parameters: nnx.State,
    prompt_tokens: Int[Array, "P S"],
    prompt_lengths: Int[Array, " P"],
    keys: Key[Array, "P G"],
    *,
    sampling: Sampling,
) -> Rollouts:
    """Samples G completions of every prompt; stops when all rows have ended.

    Args:
      graphdef: of the decoder (`nnx.split`).
      parameters: of the decoder.
      prompt_tokens: left-padded, [P, S].
      prompt_lengths: tokens of each prompt, >= 1.
      keys: one per completion (`row_keys`).
      sampling: the program is compiled once per value of it and shape.
    """
    decoder: Decoder = nnx.merge(graphdef, parameters)
    count, at_once = len(prompt_lengths), sampling.prompts_at_once
    if at_once == 0 or count <= at_once:
        return _sample(decoder, prompt_tokens, prompt_lengths, keys, sampling)

    # Group i takes prompts i, n + i, ...: each device keeps the prompts it has, which
    # runs of neighbours would bring to a few of them.
    def split(array):
        parts = array.reshape(at_once, count // at_once, *array.shape[1:])
        return parts.swapaxes(0, 1)

    def join(array):
        return array.swapaxes(0, 1).reshape(count, *array.shape[2:])

    def some(inputs):
        tokens, lengths, some_keys = inputs
        return _sample(decoder, tokens, lengths, some_keys, sampling)

    inputs = (prompt_tokens, prompt_lengths, keys)
    rollouts = jax.tree.map(join, jax.lax.map(some, jax.tree.map(split, inputs)))
    groups = jnp.broadcast_to(jnp.arange(count)[:, None], keys.shape)
    return dataclasses.replace(rollouts, group_id=groups)


def _sample(decoder: Decoder, prompt_tokens, prompt_lengths, keys, sampling):
    """`sample` of all prompts at the same time."""
    hidden, prompts = decoder.prefill(prompt_tokens, prompt_lengths)
    count, groups = keys.shape
    length = sampling.max_completion_tokens
    vocab = decoder.architecture.vocab_size
    shape = (count, groups, length)
    words = (*shape, -(-vocab // 32))
    empty = Rollouts(
        prompt_tokens=prompt_tokens,
        prompt_lengths=prompt_lengths,
        completion_tokens=jnp.zeros(shape, jnp.int32),
        completion_lengths=jnp.zeros((count, groups), jnp.int32),
        ended=jnp.zeros((count, groups), bool),
        rollout_logprobs=jnp.zeros(shape, jnp.float32),
        group_id=jnp.broadcast_to(jnp.arange(count)[:, None], (count, groups)),
        kept_tokens=jnp.zeros(words, jnp.uint32) if sampling.truncates else None,
    )

    def pick(step, hidden, rollouts):
        logits = head_logits(hidden, decoder.head_weight, decoder.head_dtype)
        return _pick_tokens(step, logits, rollouts, keys, sampling)

    first = jnp.broadcast_to(
        hidden[:, -1:], (count, groups, decoder.architecture.hidden_size)
    )
    rollouts = pick(jnp.int32(0), first, empty)
    cache = decoder.empty_cache(prompts, groups, length)

    def unfinished(progress):
        return (progress.step < length) & ~progress.rollouts.ended.all()

    def advance(progress):
        step, rollouts = progress.step, progress.rollouts
        last = jax.lax.dynamic_index_in_dim(
            rollouts.completion_tokens, step - 1, axis=2, keepdims=False
        )
        hidden, cache = decoder.decode(last, step - 1, prompts, progress.cache)
        return _Progress(step + 1, pick(step, hidden, rollouts), cache)

    start = _Progress(jnp.int32(1), rollouts, cache)
    done = jax.lax.while_loop(unfinished, advance, start)
    return _with_routes(done.rollouts, prompts, done.cache)


def _with_routes(
    rollouts: Rollouts, prompts: PromptCache, cache: CompletionCache
) -> Rollouts:
    """The rollouts with the experts of their tokens, if the model has any."""
    if prompts.routes is None or cache.routes is None:
        return rollouts
    # The last token of a completion is not read, or only after the row has ended.
    slots = jnp.arange(cache.routes.shape[-2])
    was_read = slots < rollouts.completion_lengths[..., None] - 1
    routes = jnp.moveaxis(cache.routes, 0, -2)
    return dataclasses.replace(
        rollouts,
        routes=jnp.where(was_read[..., None, None], routes, 0),
        prompt_routes=jnp.moveaxis(prompts.routes, 0, -2),
    )


def draw_tokens(
    logits: Float[Array, "*rows V"],
    keys: Key[Array, "*rows"],
    positions: Int[Array, ""] | Int[Array, "*rows"],
    sampling: Sampling,
) -> tuple[Int[Array, "*rows"], Float[Array, "*rows"], UInt32[Array, "*rows W"] | None]:
    """Draws the token at `positions` of each row.

    Returns:
      tokens, their log-probs, and the kept sets as bits where the sampler truncates.
    """
    if sampling.temperature == 0:
        logprobs = sampling_log_softmax(logits, None)
        tokens, kept = jnp.argmax(logits, axis=-1), None
    else:
        logits = logits / sampling.temperature
        kept = None
        if sampling.truncates:
            kept = kept_tokens(
                logits,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                min_p=sampling.min_p,
            )
        logprobs = sampling_log_softmax(logits, kept)
        at = jnp.broadcast_to(positions, keys.shape)
        fold = jax.vmap(jax.random.fold_in)
        folded = fold(keys.reshape(-1), at.reshape(-1)).reshape(keys.shape)
        tokens = draw(folded, logprobs)
    chosen = jnp.take_along_axis(logprobs, tokens[..., None], axis=-1)[..., 0]
    return tokens, chosen, None if kept is None else pack_bits(kept)


def _pick_tokens(
    step: Int[Array, ""],
    logits: Float[Array, "P G V"],
    rollouts: Rollouts,
    keys: Key[Array, "P G"],
    sampling: Sampling,
) -> Rollouts:
    """Draws token `step` of every row that has not ended and records it."""
    active = ~rollouts.ended
    tokens, chosen, kept = draw_tokens(logits, keys, step, sampling)
    is_end = (tokens[..., None] == jnp.asarray(sampling.end_ids, jnp.int32)).any(-1)

    def write(buffer, values):
        mask = active.reshape(active.shape + (1,) * (values.ndim - 2))
        values = jnp.where(mask, values, 0).astype(buffer.dtype)
        return jax.lax.dynamic_update_index_in_dim(buffer, values, step, axis=2)

    words = rollouts.kept_tokens
    if words is not None and kept is not None:
        words = write(words, kept)
    return dataclasses.replace(
        rollouts,
        completion_tokens=write(rollouts.completion_tokens, tokens),
        completion_lengths=rollouts.completion_lengths + active,
        ended=rollouts.ended | (active & is_end),
        rollout_logprobs=write(rollouts.rollout_logprobs, chosen),
        kept_tokens=words,
    )
