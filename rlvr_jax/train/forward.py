"""From token ids to log-probs of completions, whole batches or micro-batches."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, UInt, UInt32

from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.core.routing import routing_flips
from rlvr_jax.mesh.mesh import constrain_rows
from rlvr_jax.train.kernels import head_kernel_of
from rlvr_jax.train.state import StepPlan
from rlvr_jax.types import Ratio, Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prompts:
    """The prompts of a (micro-)batch, left-padded."""

    tokens: Int[Array, "... P S"]
    lengths: Int[Array, "... P"]
    routes: UInt[Array, "... P S L E"] | None = None
    """Experts that their tokens go through; None lets the routers pick."""


def prompts_of(rollouts: Rollouts, plan: StepPlan) -> Prompts:
    """The prompts of rollouts, with their experts where these are replayed."""
    routes = rollouts.prompt_routes if plan.replay_routing else None
    return Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths, routes)


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
    if completion_tokens.shape[-1] == 1:
        return _before_each(hidden, completion_tokens, None)
    later = decoder.extend(completion_tokens[:, :, :-1], cache)
    return _before_each(hidden, completion_tokens, later)


def routed_states(
    decoder: Any,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    routes: UInt[Array, "P G T L E"] | None,
) -> tuple[Float[Array, "P G T D"], UInt[Array, "P G U L E"] | None]:
    """`completion_states` of a decoder with experts.

    Args:
      decoder: with experts.
      prompts: their routes are followed, if they have any.
      completion_tokens: all but the last of which are read.
      routes: of completion tokens, to be followed; None lets the routers pick.

    Returns:
      the states, and what the routers would pick for the U = T - 1 tokens that are
      read; None where none is.
    """
    first = lambda array: None if array is None else jnp.moveaxis(array, -2, 0)
    hidden, cache = decoder.prefill(
        prompts.tokens, prompts.lengths, first(prompts.routes)
    )
    if completion_tokens.shape[-1] == 1:
        return _before_each(hidden, completion_tokens, None), None
    read = None if routes is None else routes[:, :, :-1]
    later, picked = decoder.extend_routed(
        completion_tokens[:, :, :-1], cache, first(read)
    )
    states = _before_each(hidden, completion_tokens, later)
    return states, jnp.moveaxis(picked, 0, -2)


def _before_each(prompt_states, completion_tokens, later):
    """The prompt's last state predicts the first token; the last predicts nothing."""
    count, groups, _ = completion_tokens.shape
    first = prompt_states[:, -1][:, None, None]
    first = jnp.broadcast_to(first, (count, groups, 1, first.shape[-1]))
    return first if later is None else jnp.concatenate([first, later], axis=2)


def policy_outputs(
    parameters: nnx.State, prompts: Prompts, rows: Any, plan: StepPlan
) -> tuple[Float[Array, "B T"], Float[Array, "B T"], Ratio | None]:
    """Log-probs, entropies, and the share of experts that the routers would not pick.

    Args:
      parameters: of the policy.
      prompts: with routes if these are replayed.
      rows: `objective.Rows`. Where they have routes, these are followed if the plan
        says so, and compared with the routers' picks in either case.
      plan: static.
    """
    decoder = decoder_of(parameters, plan)
    if rows.routes is None:
        states, picked = (
            completion_states(decoder, prompts, rows.completion_tokens),
            None,
        )
    else:
        states, picked = routed_states(
            decoder,
            prompts,
            rows.completion_tokens,
            rows.routes if plan.replay_routing else None,
        )
    logprobs, entropies = _head_logprobs(
        decoder, states, rows.completion_tokens, rows.kept_tokens, plan
    )
    if picked is None:
        return logprobs, entropies, None
    return logprobs, entropies, _flips(picked, rows.routes, rows.token_mask)


def _flips(picked, routes, token_mask) -> Ratio:
    """Of the tokens that were read before one that counts, over all layers."""
    batch, layers, experts = flat(token_mask).shape[0], *picked.shape[-2:]

    def joined(array):
        return array.astype(jnp.int32).reshape(batch, -1, experts)

    mask = jnp.repeat(flat(token_mask)[:, 1:], layers, axis=1)
    return routing_flips(joined(picked), joined(routes[:, :, :-1]), mask)


def completion_logprobs(
    parameters: nnx.State,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    kept_tokens: UInt32[Array, "P G T W"] | None,
    plan: StepPlan,
    routes: UInt[Array, "P G T L E"] | None = None,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Log-probs of completion tokens, and entropies; rows B = P * G.

    `routes` are followed if the plan replays them.
    """
    decoder = decoder_of(parameters, plan)
    if routes is None or not plan.replay_routing:
        states = completion_states(decoder, prompts, completion_tokens)
    else:
        states, _ = routed_states(decoder, prompts, completion_tokens, routes)
    return _head_logprobs(decoder, states, completion_tokens, kept_tokens, plan)


def _head_logprobs(decoder, states, completion_tokens, kept_tokens, plan: StepPlan):
    rows, head = states.shape[0] * states.shape[1], decoder.head_weight
    kernel = head_kernel_of(
        plan.logprob_kernel,
        plan.mesh,
        rows,
        len(head),
        kept_sets=kept_tokens is not None,
        rounded=jnp.finfo(decoder.head_dtype).bits < 32,
    )
    return token_logprobs(
        flat(states),
        head,
        flat(completion_tokens),
        head_dtype=decoder.head_dtype,
        temperature=plan.temperature,
        kept_words=None if kept_tokens is None else flat(kept_tokens),
        chunk=max(1, plan.batch.logprob_chunk_tokens // rows),
        kernel=kernel,
    )


def batch_logprobs(
    parameters: nnx.State,
    prompts: Prompts,
    completion_tokens: Int[Array, "P G T"],
    kept_tokens: UInt32[Array, "P G T W"] | None,
    plan: StepPlan,
    routes: UInt[Array, "P G T L E"] | None = None,
) -> tuple[Float[Array, "P G T"], Float[Array, "P G T"]]:
    """`completion_logprobs` of many rows by micro-batches, without a gradient."""

    def some(prompts, rows):
        tokens, kept, routes = rows
        return completion_logprobs(parameters, prompts, tokens, kept, plan, routes)

    rows = (completion_tokens, kept_tokens, routes)
    return by_micro_batches(some, prompts, rows, plan)


def rollout_logprobs(
    parameters: nnx.State, rollouts: Rollouts, plan: StepPlan
) -> Float[Array, "P G T"]:
    """Log-probs of a whole batch of rollouts under fixed parameters."""
    return batch_logprobs(
        parameters,
        prompts_of(rollouts, plan),
        rollouts.completion_tokens,
        rollouts.kept_tokens,
        plan,
        rollouts.routes,
    )[0]


def reference_logprobs(
    parameters: nnx.State, rollouts: Rollouts, plan: StepPlan
) -> Float[Array, "P G T"]:
    """The same of a policy of its own, whose tokens go through its own experts."""
    own = dataclasses.replace(rollouts, routes=None, prompt_routes=None)
    return rollout_logprobs(parameters, own, plan)


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


def mean_gradients(
    loss: Callable,
    parameters: Any,
    micros: Any,
    denominator: Float[Array, ""],
    plan: StepPlan,
) -> tuple[Any, Any]:
    """Gradients of a minibatch, and what its micro-batches returned, stacked.

    Args:
      loss: (parameters, prompts, rows) -> (numerator, more).
      parameters: to differentiate by.
      micros: of `split_micro_batches`.
      denominator: of the minibatch; 0 leaves the sum as it is.
      plan: says which mesh.

    Returns:
      sum of the numerators' gradients / denominator, and (numerators, more).
    """

    def accumulate(gradients, micro):
        micro = constrain_rows(*micro, plan.mesh)
        outputs, new = jax.value_and_grad(loss, has_aux=True)(parameters, *micro)
        return jax.tree.map(jnp.add, gradients, new), outputs

    zeros = jax.tree.map(jnp.zeros_like, parameters)
    gradients, outputs = jax.lax.scan(accumulate, zeros, micros)
    # THE division: after every micro-batch and device has been summed.
    scale = 1.0 / jnp.where(denominator == 0, 1.0, denominator)
    return jax.tree.map(lambda gradient: gradient * scale, gradients), outputs


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
