"""From token ids to log-probs of completions, whole batches or micro-batches."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, UInt, UInt32

from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.core.routing import routing_flips
from rlvr_jax.train.kernels import head_kernel_of
from rlvr_jax.train.micro_batches import Prompts, by_micro_batches, prompts_of
from rlvr_jax.train.packing import Packing
from rlvr_jax.train.state import StepPlan
from rlvr_jax.types import Ratio, Rollouts


def flat(array: Array) -> Array:
    """[P, G, ...] -> [P * G, ...], the rows of `core`."""
    return array.reshape(-1, *array.shape[2:])


def decoder_of(parameters: nnx.State, plan: StepPlan) -> Any:
    """The plan's `Decoder` with these parameters, in the type it computes with."""
    parameters = jax.tree.map(lambda p: p.astype(plan.dtype), parameters)
    return nnx.merge(plan.graphdef, parameters)


def laid_out(prompts: Prompts, array: Array) -> Array:
    """Of completions, [P, G, T, ...] -> the rows that are read: packed, or the same."""
    return array if prompts.packing is None else prompts.packing.packed(array)


def by_completion(prompts: Prompts, rows: Float[Array, "R U"]) -> Float[Array, "B T"]:
    """What was computed of the rows that were read; 0 at padding if these are packed.

    Args:
      prompts: says how the rows were laid out.
      rows: a number for each of their slots.
    """
    return rows if prompts.packing is None else prompts.packing.unpacked(rows)


def completion_states(
    decoder: Any,
    prompts: Prompts,
    read: Int[Array, "R H U"],
    routes: UInt[Array, "R H U L E"] | None = None,
) -> tuple[Float[Array, "R H U D"], UInt[Array, "R H W L E"] | None]:
    """The hidden state before each token of rows: the one that predicts it.

    A prompt is computed once for its G completions.

    Args:
      decoder: the policy.
      prompts: P of them.
      read: `laid_out` completions, [P, G, T] or [N, 1, L]. All but the last column is.
      routes: experts that these tokens follow, as the prompts then do theirs; None lets
        the routers pick.

    Returns:
      the states, and what the routers would pick for the W = U - 1 tokens that are
      read; None without experts.
    """
    packing, more = prompts.packing, {}
    if packing is not None:
        more |= {"starts": packing.starts[:, None, :-1], "of_rows": packing.of_rows}
    if routes is not None and prompts.routes is not None:
        more["prompt_routes"] = jnp.moveaxis(prompts.routes, -2, 0)
        more["routes"] = jnp.moveaxis(routes[:, :, :-1], -2, 0)
    last, later, picked = decoder.forward(
        prompts.tokens, prompts.lengths, read[:, :, :-1], **more
    )
    # The prompt's last state predicts the first token; the last predicts nothing.
    ahead = (last if packing is None else packing.of_rows(last))[:, None, None]
    shape = (*read.shape[:2], 1, ahead.shape[-1])
    states = jnp.concatenate([jnp.broadcast_to(ahead, shape), later], axis=2)
    if packing is not None:
        states = jnp.where(packing.times[:, None, :, None] == 0, ahead, states)
    return states, None if picked is None else jnp.moveaxis(picked, 0, -2)


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
    read = laid_out(prompts, rows.completion_tokens)
    replays = plan.replay_routing and rows.routes is not None
    routes = laid_out(prompts, rows.routes) if replays else None
    states, picked = completion_states(decoder, prompts, read, routes)
    found = _head_logprobs(decoder, prompts, states, read, rows.kept_tokens, plan)
    if picked is None or rows.routes is None:
        return *found, None
    return *found, _flips(prompts, picked, rows.routes, rows.token_mask)


def _flips(prompts: Prompts, picked, routes, token_mask) -> Ratio:
    """Of the tokens that were read before one that counts, over all layers."""
    layers, experts = picked.shape[-2:]

    def joined(array):
        array = flat(array).astype(jnp.int32)
        return array.reshape(array.shape[0], -1, experts)

    mask = flat(laid_out(prompts, token_mask))
    if prompts.packing is not None:
        # Before a first token the prompt was read, not the row's token before it.
        mask *= prompts.packing.times > 0
    read = laid_out(prompts, routes)[:, :, :-1]
    mask = jnp.repeat(mask[:, 1:], layers, axis=1)
    return routing_flips(joined(picked), joined(read), mask)


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
    read = laid_out(prompts, completion_tokens)
    replays = plan.replay_routing and routes is not None
    states, _ = completion_states(
        decoder, prompts, read, laid_out(prompts, routes) if replays else None
    )
    return _head_logprobs(decoder, prompts, states, read, kept_tokens, plan)


def _head_logprobs(decoder, prompts: Prompts, states, read, kept_tokens, plan):
    """Log-probs and entropies [B, T] from the states of the rows that were read."""
    rows, head = states.shape[0] * states.shape[1], decoder.head_weight
    kept = None if kept_tokens is None else flat(laid_out(prompts, kept_tokens))
    kernel = head_kernel_of(
        plan.logprob_kernel,
        plan.mesh,
        rows,
        len(head),
        kept_sets=kept is not None,
        rounded=jnp.finfo(decoder.head_dtype).bits < 32,
    )
    logprobs, entropies = token_logprobs(
        flat(states),
        head,
        flat(read),
        head_dtype=decoder.head_dtype,
        temperature=plan.temperature,
        kept_words=kept,
        chunk=max(1, plan.batch.logprob_chunk_tokens // rows),
        kernel=kernel,
    )
    return by_completion(prompts, logprobs), by_completion(prompts, entropies)


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
    parameters: nnx.State,
    rollouts: Rollouts,
    plan: StepPlan,
    packing: Packing | None = None,
) -> Float[Array, "P G T"]:
    """Log-probs of a whole batch of rollouts under fixed parameters."""
    return batch_logprobs(
        parameters,
        prompts_of(rollouts, plan, packing),
        rollouts.completion_tokens,
        rollouts.kept_tokens,
        plan,
        rollouts.routes,
    )[0]


def reference_logprobs(
    parameters: nnx.State,
    rollouts: Rollouts,
    plan: StepPlan,
    packing: Packing | None = None,
) -> Float[Array, "P G T"]:
    """The same of a policy of its own, whose tokens go through its own experts."""
    own = dataclasses.replace(rollouts, routes=None, prompt_routes=None)
    return rollout_logprobs(parameters, own, plan, packing)
