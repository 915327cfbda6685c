"""The two programs of the slot engine, traced without arrays."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.planning.work import Work
from rlvr_jax.rollout import slots
from rlvr_jax.rollout.sampler import Sampling


def lower_prefill(
    graphdef: nnx.GraphDef, weights: nnx.State, work: Work, mesh: Mesh
) -> jax.stages.Lowered:
    """Of reading some prompts."""
    return slots.prefill.lower(graphdef, weights, *_prompts(work, mesh))


def lower_decode(
    graphdef: nnx.GraphDef,
    weights: nnx.State,
    work: Work,
    mesh: Mesh,
    sampling: Sampling,
) -> jax.stages.Lowered:
    """Of decoding in all slots, once they have been through the program before."""

    trees = []

    def empty(weights, tokens, lengths):
        prefilled = slots.prefill(graphdef, weights, tokens, lengths)
        vocab = work.architecture.vocab_size
        made = slots.empty_slots(prefilled, work.decoding, sampling, vocab)
        leaves, tree = jax.tree.flatten(made)
        trees.append(tree)  # our types hold arrays: shapes go without them
        return leaves

    def placed(leaf: Any) -> Any:
        # Heads of the caches are split as keys are computed; slots are on every device.
        heads = leaf.ndim - 3
        split = leaf.ndim >= 5 and leaf.shape[heads] % mesh.shape["tensor"] == 0
        spec = PartitionSpec(*[None] * heads, "tensor") if split else PartitionSpec()
        return jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec)
        )

    def decode(leaves, weights, max_steps, free_enough):
        held = jax.tree.unflatten(trees[0], leaves)
        return slots.advance(
            graphdef, weights, held, max_steps, free_enough, sampling=sampling
        )

    leaves = jax.eval_shape(empty, weights, *_prompts(work, mesh))
    number = jax.ShapeDtypeStruct((), jnp.int32)
    return jax.jit(decode, donate_argnums=0).lower(
        [placed(leaf) for leaf in leaves], weights, number, number
    )


def _prompts(work: Work, mesh: Mesh) -> tuple[Any, Any]:
    """Tokens [P, S] and lengths [P], on every device."""
    everywhere = NamedSharding(mesh, PartitionSpec())
    shapes = (work.at_once, work.slots), (work.at_once,)
    tokens, lengths = (
        jax.ShapeDtypeStruct(shape, jnp.int32, sharding=everywhere) for shape in shapes
    )
    return tokens, lengths
