"""A batch cut into micro-batches: what bounds memory and never changes the result."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt

from rlvr_jax.mesh.mesh import constrain_rows, fetch
from rlvr_jax.train.packing import Packing, pack
from rlvr_jax.train.state import StepPlan
from rlvr_jax.types import Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prompts:
    """The prompts of a (micro-)batch, left-padded."""

    tokens: Int[Array, "... P S"]
    lengths: Int[Array, "... P"]
    routes: UInt[Array, "... P S L E"] | None = None
    """Experts that their tokens go through; None lets the routers pick."""
    packing: Packing | None = None
    """How their completions share rows; None: each has its own."""


def prompts_of(
    rollouts: Rollouts, plan: StepPlan, packing: Packing | None = None
) -> Prompts:
    """The prompts of rollouts, with their experts where these are replayed."""
    routes = rollouts.prompt_routes if plan.replay_routing else None
    return Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths, routes, packing)


def packing_for(
    plan: StepPlan, rollouts: Rollouts
) -> tuple[Packing | None, dict[str, float]]:
    """How the plan's updates lay out the rollouts, and metrics about it."""
    lengths = fetch(rollouts.completion_lengths)
    (count, generations), batch = lengths.shape, plan.batch
    tokens = rollouts.completion_tokens.shape[-1]
    plain = 1.0 - float(lengths.sum()) / (lengths.size * tokens)
    if not batch.packing:
        return None, {"update/padding_share": plain}
    prompts, _ = micro_batch_shape(
        count // batch.minibatches_per_step, generations, batch.micro_batch_size
    )
    packing = pack(lengths, tokens, micro_batch_prompts=prompts, mesh=plan.mesh)
    share = plain
    if packing is not None:
        share = 1.0 - float(lengths.sum()) / packing.source.size
    return packing, {
        "update/padding_share": share,
        "update/padding_share_unpacked": plain,
    }


def by_micro_batches(function, prompts: Prompts, rows: Any, plan: StepPlan) -> Any:
    """function(prompts, rows) -> [B, ...] per micro-batch; together [P, G, ...]."""

    def body(_, micro):
        return None, function(*_on_row_devices(micro, plan))

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

    def gradients_of(micro):
        micro = _on_row_devices(micro, plan)
        return jax.value_and_grad(loss, has_aux=True)(parameters, *micro)

    def accumulate(gradients, micro):
        outputs, new = gradients_of(micro)
        return jax.tree.map(jnp.add, gradients, new), outputs

    if len(jax.tree.leaves(micros)[0]) == 1:
        # Alone it needs no second tree of gradients to be added to.
        outputs, gradients = gradients_of(jax.tree.map(lambda a: a[0], micros))
        outputs = jax.tree.map(lambda a: a[None], outputs)
    else:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        gradients, outputs = jax.lax.scan(accumulate, zeros, micros)
    # THE division: after every micro-batch and device has been summed.
    scale = 1.0 / jnp.where(denominator == 0, 1.0, denominator)
    return jax.tree.map(lambda gradient: gradient * scale, gradients), outputs


def _on_row_devices(micro: Any, plan: StepPlan) -> tuple[Prompts, Any]:
    """A micro-batch, (prompts, rows), split over the row devices."""
    prompts, rows = micro
    prompts, rows = constrain_rows(prompts, rows, plan.mesh)
    if prompts.packing is not None:
        packing = prompts.packing.on_row_devices(plan.mesh)
        prompts = dataclasses.replace(prompts, packing=packing)
    return prompts, rows


def split_micro_batches(prompts: Prompts, rows: Any, micro_batch_size: int) -> Any:
    """Cuts a batch into micro-batches of whole groups, or of parts of one group.

    Args:
      prompts: arrays [P, ...]; a packing is of micro-batches already.
      rows: arrays [P, G, ...].
      micro_batch_size: completions; divides G or is a multiple of it. 0 for all.

    Returns:
      (prompts, rows) as [micro-batches, p, ...] and [micro-batches, p, g, ...] with
      p * g = micro_batch_size; the prompt of a split group comes with each part.
    """
    count, groups = jax.tree.leaves(rows)[0].shape[:2]
    if prompts.packing is not None:
        # It may cut a whole batch where a size of 0 would not.
        micro_batch_size = prompts.packing.slots[0, ..., 0].size
    per_micro, generations = micro_batch_shape(count, groups, micro_batch_size)

    def split_rows(array):
        return array.reshape(-1, per_micro, generations, *array.shape[2:])

    def split_prompts(array):
        repeated = jnp.repeat(array, groups // generations, axis=0)
        return repeated.reshape(-1, per_micro, *array.shape[1:])

    plain = jax.tree.map(split_prompts, dataclasses.replace(prompts, packing=None))
    prompts = dataclasses.replace(plain, packing=prompts.packing)
    return prompts, jax.tree.map(split_rows, rows)


def micro_batch_shape(
    prompts: int, generations: int, micro_batch_size: int
) -> tuple[int, int]:
    """(prompts, completions of each) of one micro-batch of a minibatch."""
    size = micro_batch_size or prompts * generations
    return max(1, size // generations), min(size, generations)
