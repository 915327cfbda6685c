"""The kernels compiled ahead of time for TPUs that are not there."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax.core.fused_head import HeadKernel
from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.models.splash import Splash, splash_attention
from rlvr_jax.planning.pod_plan import has_libtpu
from rlvr_jax.planning.programs import topology_meshes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_libtpu(), reason="needs libtpu"),
]
TOPOLOGIES = ("v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1")


def mesh_of(topology):
    """Two row devices, and the rest over tensor."""
    count = 8 if topology.startswith("tpu7x") else 4
    return topology_meshes(topology, (1, 2, count // 2))[0]


def compiled(function, mesh, *arrays):
    """`arrays`: (shape, type, spec) of each."""
    given = [
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
        for shape, dtype, spec in arrays
    ]
    return jax.jit(function).lower(*given).compile()


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("vocabulary", [8192, 8 * 1231])
def test_the_head_compiles(topology, vocabulary):
    """Forward and backward over rows and words that are no multiple of a tile; of all
    the logits of a device, 2 x 700 x V / tensor, nothing is ever there."""
    mesh = mesh_of(topology)
    kernel = HeadKernel(mesh, ("data", "fsdp"), "tensor")
    rows, length, width = 4, 700, 256

    def loss(hidden, head, tokens):
        logprobs, entropies = token_logprobs(hidden, head, tokens, kernel=kernel)
        return logprobs.sum() + 0.1 * entropies.sum()

    by_row = PartitionSpec(("data", "fsdp"))
    program = compiled(
        jax.grad(loss, (0, 1)),
        mesh,
        ((rows, length, width), jnp.bfloat16, by_row),
        ((vocabulary, width), jnp.bfloat16, PartitionSpec("tensor", "fsdp")),
        ((rows, length), jnp.int32, by_row),
    )
    logits = 2 * length * vocabulary / mesh.shape["tensor"] * 4
    assert program.memory_analysis().temp_size_in_bytes < 0.6 * logits


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_attention_compiles(topology):
    """Forward and backward behind a shared prompt; no array of scores."""
    mesh = mesh_of(topology)
    kernel, tensor = Splash(mesh), mesh.shape["tensor"]
    groups, length, slots, width = 2, 3000, 200, 128

    def loss(queries, keys, values, prompt_keys, prompt_values, kept):
        prompt = (prompt_keys, prompt_values, kept)
        return (
            splash_attention(queries, keys, values, prompt=prompt, kernel=kernel)
            .astype(jnp.float32)
            .sum()
        )

    by_row = PartitionSpec(None, ("data", "fsdp"))
    own = ((1, groups, tensor, length, width), jnp.bfloat16, by_row)
    shared = ((1, tensor, slots, width), jnp.bfloat16, PartitionSpec())
    program = compiled(
        jax.grad(loss, (0, 1, 2, 3, 4)),
        mesh,
        ((1, groups, length, tensor, 2, width), jnp.bfloat16, by_row),
        own,
        own,
        shared,
        shared,
        ((1, slots), jnp.bool_, PartitionSpec()),
    )
    scores = 2 * length * (length + slots) * 4
    assert program.memory_analysis().temp_size_in_bytes < 0.5 * scores
