"""From token ids to log-probs of completions, whole batches or micro-batches."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, UInt32

from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.mesh.mesh import constrain_rows
from rlvr_jax.train.state import StepPlan
from rlvr_jax.types import Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prompts:
    """The prompts of a (micro-)batch, left-padded."""

    tokens: Int[Array, "... P S"]
    lengths: Int[Array, "... P"]


def flat(array: Array) -> Array:
    """[P, G, ...] -> [P * G, ...], the rows of `core`."""
    return array.reshape(-1, *array.shape[2:])


def decoder_of(parameters: nnx.State, plan: StepPlan) -> Any:
    """The plan's `Decoder` with these parameters, in the type it computes with."""
    parameters = jax.tree.map(lambda p: p.astype(plan.dtype), parameters)
    return nnx.merge(plan.graphdef, parameters)


def completion_states(
    decoder: Any, prompts: Prompts, completion_tokens: Int[Array, "P G T"]
) -> Float[Array, "P G T D"]:
    """The hidden state before each completion token: the one that predicts it.

    A prompt is computed once for its G completions.
    """
    hidden, cache = decoder.prefill(prompts.tokens, prompts.lengths)
    count, groups, length = completion_tokens.shape
    # The prompt's last state predicts the first token; the last token predicts nothing.
    first = hidden[:, -1][:, None, None]
    first = jnp.broadcast_to(first, (count, groups, 1, hidden.shape[-1]))
    if length == 1:
        return first
    later = decoder.extend(completion_tokens[:, :, :-1], cache)
    return jnp.concatenate([first, later], axis=2)


def completion_logprobs(
    parameters: nnx.State,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    kept_tokens: UInt32[Array, "P G T W"] | None,
    plan: StepPlan,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Log-probs of completion tokens, and entropies; rows B = P * G."""
    decoder = decoder_of(parameters, plan)
    states = completion_states(decoder, prompts, completion_tokens)
    rows = states.shape[0] * states.shape[1]
    return token_logprobs(
        flat(states),
        decoder.head_weight,
        flat(completion_tokens),
        temperature=plan.temperature,
        kept_words=None if kept_tokens is None else flat(kept_tokens),
        chunk=max(1, plan.batch.logprob_chunk_tokens // rows),
    )


def batch_logprobs(
    parameters: nnx.State,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    kept_tokens: UInt32[Array, "P G T W"] | None,
    plan: StepPlan,
) -> tuple[Float[Array, "P G T"], Float[Array, "P G T"]]:
    """`completion_logprobs` of many rows by micro-batches, without a gradient."""

    def some(prompts, rows):
        return completion_logprobs(parameters, prompts, *rows, plan)

    return by_micro_batches(some, prompts, (completion_tokens, kept_tokens), plan)


def rollout_logprobs(
    parameters: nnx.State, rollouts: Rollouts, plan: StepPlan
) -> Float[Array, "P G T"]:
    """Log-probs of a whole batch of rollouts under fixed parameters."""
    return batch_logprobs(
        parameters,
        Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths),
        rollouts.completion_tokens,
        rollouts.kept_tokens,
        plan,
    )[0]


def by_micro_batches(function, prompts: Prompts, rows: Any, plan: StepPlan) -> Any:
    """function(prompts, rows) -> [B, ...] per micro-batch; together [P, G, ...]."""

    def body(_, micro):
        return None, function(*constrain_rows(*micro, plan.mesh))

    micros = split_micro_batches(prompts, rows, plan.batch.micro_batch_size)
    _, outputs = jax.lax.scan(body, None, micros)
    shape = jax.tree.leaves(rows)[0].shape[:2]

    def joined(array):
        return jax.lax.stop_gradient(array.reshape(*shape, *array.shape[2:]))

    return jax.tree.map(joined, outputs)


def split_micro_batches(prompts: Any, rows: Any, micro_batch_size: int) -> Any:
    """Cuts a batch into micro-batches of whole groups, or of parts of one group.

    Args:
      prompts: arrays [P, ...].
      rows: arrays [P, G, ...].
      micro_batch_size: completions; divides G or is a multiple of it. 0 for all.

    Returns:
      (prompts, rows) as [micro-batches, p, ...] and [micro-batches, p, g, ...] with
      p * g = micro_batch_size; the prompt of a split group comes with each part.
    """
    count, groups = jax.tree.leaves(rows)[0].shape[:2]
    per_micro, generations = micro_batch_shape(count, groups, micro_batch_size)

    def split_rows(array):
        return array.reshape(-1, per_micro, generations, *array.shape[2:])

    def split_prompts(array):
        repeated = jnp.repeat(array, groups // generations, axis=0)
        return repeated.reshape(-1, per_micro, *array.shape[1:])

    return jax.tree.map(split_prompts, prompts), jax.tree.map(split_rows, rows)


def micro_batch_shape(
    prompts: int, generations: int, micro_batch_size: int
) -> tuple[int, int]:
    """(prompts, completions of each) of one micro-batch of a minibatch."""
    size = micro_batch_size or prompts * generations
    return max(1, size // generations), min(size, generations)
