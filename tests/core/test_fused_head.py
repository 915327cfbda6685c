"""The TPU kernels of the LM head, interpreted on CPU, against the chunked form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from rlvr_jax.core import logprobs, sampling
from rlvr_jax.core.fused_head import HeadKernel
from rlvr_jax.core.head_kernel import tile_size

ROWS, LENGTH, WIDTH = 4, 5, 24
TILES = (8, 16)


def inputs(vocabulary, dtype=jnp.float32, seed=0):
    keys = jax.random.split(jax.random.key(seed), 5)
    hidden = jax.random.normal(keys[0], (ROWS, LENGTH, WIDTH))
    head = jax.random.normal(keys[1], (vocabulary, WIDTH))
    tokens = jax.random.randint(keys[2], (ROWS, LENGTH), 0, vocabulary)
    weights = [jax.random.normal(key, (ROWS, LENGTH)) for key in keys[3:]]
    # The last row is all padding: nothing in the loss is weighted by it.
    weights = [array.at[-1].set(0.0) for array in weights]
    return hidden.astype(dtype), head.astype(dtype), tokens, *weights


@functools.partial(jax.jit, static_argnames=("temperature", "kernel"))
def outcome(hidden, head, tokens, by_logprob, by_entropy, *, temperature, kernel):
    """Values, and gradients under cotangents of both."""

    def both(hidden, head):
        return logprobs.token_logprobs(
            hidden, head, tokens, temperature=temperature, chunk=2, kernel=kernel
        )

    values, pull = jax.vjp(both, hidden, head)
    return values, pull((by_logprob, by_entropy))


def as_float64(hidden, head, tokens, by_logprob, by_entropy, temperature):
    """Values and gradients from the formulas, one position at a time."""
    hidden, head = (np.asarray(array, np.float64) for array in (hidden, head))
    found = {"logprobs": [], "entropies": [], "hidden": [], "head": 0.0}
    flat = (np.asarray(a, np.float64).ravel() for a in (by_logprob, by_entropy))
    for state, token, one, two in zip(
        hidden.reshape(-1, WIDTH), np.ravel(tokens), *flat, strict=True
    ):
        logits = head @ state / temperature
        logs = logits - logits.max()
        logs -= np.log(np.exp(logs).sum())
        p = np.exp(logs)
        entropy = -(p * logs).sum()
        hit = np.arange(len(head)) == token
        by_logit = one * (hit - p) - two * p * (logs + entropy)
        found["logprobs"].append(logs[token])
        found["entropies"].append(entropy)
        found["hidden"].append(by_logit @ head / temperature)
        found["head"] += np.outer(by_logit, state) / temperature
    shaped = {
        name: np.reshape(found[name], (ROWS, LENGTH)) for name in found if "s" in name
    }
    return shaped, np.reshape(found["hidden"], hidden.shape), found["head"]


@pytest.mark.parametrize("vocabulary", [48, 50, 7])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_values_and_gradients_by_the_formulas(vocabulary, temperature):
    """V that is a multiple of the tile, none, and less than one; 20 positions in tiles
    of 8."""
    given = inputs(vocabulary)
    kernel = HeadKernel(tiles=TILES, interpret=True)
    values, gradients = outcome(*given, temperature=temperature, kernel=kernel)
    expected, by_hidden, by_head = as_float64(*given, temperature)
    np.testing.assert_allclose(values[0], expected["logprobs"], atol=1e-5)
    np.testing.assert_allclose(values[1], expected["entropies"], atol=1e-5)
    np.testing.assert_allclose(gradients[0], by_hidden, atol=2e-5)
    np.testing.assert_allclose(gradients[1], by_head, atol=2e-5)
    np.testing.assert_array_equal(gradients[0][-1], 0.0)


def test_short_floats():
    """Against float64 from the same rounded numbers. The values' products are exact in
    float32; each gradient of a logit is rounded to 8 bits before it is summed."""
    given = inputs(50, jnp.bfloat16)
    kernel = HeadKernel(tiles=TILES, interpret=True)
    values, gradients = outcome(*given, temperature=1.0, kernel=kernel)
    expected, by_hidden, by_head = as_float64(*given, 1.0)
    assert values[0].dtype == values[1].dtype == jnp.float32
    assert gradients[0].dtype == gradients[1].dtype == jnp.bfloat16
    np.testing.assert_allclose(values[0], expected["logprobs"], atol=1e-5)
    np.testing.assert_allclose(values[1], expected["entropies"], atol=1e-5)
    for found, exact in zip(gradients, (by_hidden, by_head), strict=True):
        error = np.abs(np.asarray(found, np.float64) - exact)
        assert error.max() < 2**-8 * np.abs(exact).max() * 2


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 1, 4), (1, 4, 1)])
def test_parts_of_the_vocabulary(shape):
    """Rows and vocabulary over a mesh: the result of one device."""
    given = inputs(48)
    devices = np.array(jax.devices()[: np.prod(shape)]).reshape(shape)
    kernel = HeadKernel(
        mesh=Mesh(devices, ("data", "fsdp", "tensor")),
        row_axes=("data", "fsdp"),
        vocabulary_axis="tensor" if shape[-1] > 1 else None,
        tiles=TILES,
        interpret=True,
    )
    found = outcome(*given, temperature=0.7, kernel=kernel)
    expected = outcome(*given, temperature=0.7, kernel=None)
    for ours, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_far_logits_stay_finite():
    """Logits of +-3,000: certain, so log-prob and entropy are 0, and no gradient."""
    hidden, head = (
        jnp.full((1, 2, 4), 30.0),
        jnp.ones((40, 4)) * jnp.arange(40)[:, None],
    )
    hidden = hidden.at[0, 1].multiply(-1)
    tokens = jnp.array([[39, 0]])
    ones = jnp.ones((1, 2))
    kernel = HeadKernel(tiles=TILES, interpret=True)
    values, gradients = outcome(
        hidden, head, tokens, ones, ones, temperature=1.0, kernel=kernel
    )
    np.testing.assert_array_equal(values, 0.0)
    for gradient in gradients:
        np.testing.assert_array_equal(gradient, 0.0)


def test_what_the_kernel_leaves_to_chunks():
    """Kept sets and rounded logits give what they give without a kernel."""
    hidden, head, tokens, *_ = inputs(50)
    kernel = HeadKernel(tiles=TILES, interpret=True)
    kept = sampling.kept_tokens(logprobs.head_logits(hidden, head), top_k=5)
    for changes in (
        {"kept_words": sampling.pack_bits(kept)},
        {"head_dtype": jnp.bfloat16},
    ):
        with_kernel, without = (
            logprobs.token_logprobs(hidden, head, tokens, kernel=choice, **changes)
            for choice in (kernel, None)
        )
        np.testing.assert_array_equal(with_kernel, without)


def test_tiles_fit_into_fast_memory():
    """Of 36 MiB. 32B in bfloat16: 384 x 5,120 x 16 bytes + 16 x 384^2 = 32.25 MiB,
    512 would take 44; in float32 256 take 36.0 and 384 take 54.8."""
    assert tile_size(5120, 2) == 384
    assert tile_size(5120, 4) == 256
    assert tile_size(1536, 2) == 512
    assert tile_size(16_384, 4) == 128
