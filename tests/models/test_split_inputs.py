"""What layers keep for the backward pass, split over the devices of a tensor axis."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.mesh.sharding import parameter_shardings
from tests import tiny

LAYERS, ROWS, LENGTH = 24, 1, 96


def test_each_device_keeps_its_part():
    """24 layer inputs of 96 x 32 float32 numbers: split over four devices each keeps a
    quarter of them, and the gradient is the same but for the order of sums."""
    graphdef, parameters = tiny.policy(num_layers=LAYERS)
    mesh = make_mesh((1, 1, 4), jax.devices()[:4])
    parameters = jax.device_put(parameters, parameter_shardings(parameters, mesh))
    decoder = nnx.merge(graphdef, parameters)
    decoder.mesh = mesh
    split = nnx.split(decoder)[0]
    tokens = jax.random.randint(jax.random.key(0), (ROWS, LENGTH), 5, tiny.VOCAB)
    lengths = jnp.full(ROWS, LENGTH)

    @functools.partial(jax.jit, static_argnums=0)
    def gradients(graphdef, parameters):
        def total(parameters):
            decoder = nnx.merge(graphdef, parameters)
            return decoder.prefill(tokens, lengths)[0].sum()

        return jax.grad(total)(parameters)

    programs = [gradients.lower(g, parameters).compile() for g in (graphdef, split)]
    whole, parts = (p.memory_analysis().temp_size_in_bytes for p in programs)
    kept = LAYERS * ROWS * LENGTH * 32 * 4
    assert whole - parts > 0.6 * kept
    found = [jax.tree.leaves(program(parameters)) for program in programs]
    for ours, theirs in zip(*found, strict=True):
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * largest)
