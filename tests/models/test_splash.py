"""JAX's splash kernel, interpreted on CPU, against the dense form."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.attention import KeyValues, attention
from rlvr_jax.models.splash import Splash, splash_attention
from tests import tiny

PROMPTS, GROUPS, QUERIES, KV_HEADS, REPEATS, WIDTH, SLOTS = 2, 2, 140, 2, 2, 8, 24
KERNEL = Splash(block=128, interpret=True)
KEPT = jnp.arange(SLOTS) >= jnp.array([[3], [SLOTS - 1]])
"""Prompts of 21 tokens and of one."""


def draw(shape, seed, dtype):
    return jax.random.normal(jax.random.key(seed), shape).astype(dtype)


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def arrays(request):
    own = (PROMPTS, GROUPS, KV_HEADS, QUERIES, WIDTH)
    shared = (PROMPTS, KV_HEADS, SLOTS, WIDTH)
    queries = (PROMPTS, GROUPS, QUERIES, KV_HEADS, REPEATS, WIDTH)
    shapes = (queries, own, own, shared, shared)
    return [draw(shape, n, request.param) for n, shape in enumerate(shapes)]


def dense(queries, keys, values, prompt_keys, prompt_values):
    time, kept = jnp.arange(queries.shape[2]), KEPT[: len(queries)]
    own = KeyValues(keys, values, (time[:, None] >= time)[None, None])
    return attention(queries, own, KeyValues(prompt_keys, prompt_values, kept[:, None]))


def splash(queries, keys, values, *prompt, kernel=KERNEL):
    prompt = (*prompt, KEPT[: len(queries)])
    return splash_attention(queries, keys, values, prompt=prompt, kernel=kernel)


def outcome(function, arrays):
    """The attended values, and gradients by every array."""

    @jax.jit
    def both(arrays):
        attended, pull = jax.vjp(function, *arrays)
        return attended, *pull(draw(attended.shape, 9, attended.dtype))

    return [np.asarray(array, np.float32) for array in both(arrays)]


def assert_near(found, expected, atol):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=atol, rtol=atol)


def test_rows_after_a_shared_prompt(arrays):
    """140 queries are one tile and 12 more, 164 slots one tile and 36 more; two query
    heads share a key head. In bfloat16 the dense form rounds its softmax and the kernel
    its scaled queries, each by up to 2^-9 of what goes into sums of about 150."""
    if arrays[0].dtype == jnp.float32:
        assert_near(outcome(splash, arrays), outcome(dense, arrays), 5e-6)
        return
    exact = outcome(dense, [array.astype(jnp.float32) for array in arrays])
    assert_near(outcome(splash, arrays), exact, 0.04)


def test_on_a_mesh():
    """A group's rows over two devices and heads over two: the gradients that rows give
    their prompt are summed."""
    queries, own = (1, 2, 20, KV_HEADS, REPEATS, WIDTH), (1, 2, KV_HEADS, 20, WIDTH)
    shared = (1, KV_HEADS, SLOTS, WIDTH)
    shapes = (queries, own, own, shared, shared)
    arrays = [draw(shape, n, "float32") for n, shape in enumerate(shapes)]
    mesh = make_mesh((1, 2, 2), jax.devices()[:4])
    kernel = dataclasses.replace(KERNEL, mesh=mesh)
    found = outcome(functools.partial(splash, kernel=kernel), arrays)
    assert_near(found, outcome(dense, arrays), 5e-6)


def test_heads_that_do_not_divide_are_not_taken():
    mesh = make_mesh((1, 1, 4), jax.devices()[:4])
    assert not Splash(mesh).takes(512, kv_heads=2)
    assert Splash(mesh).takes(512, kv_heads=8)
    assert not Splash(mesh).takes(127, kv_heads=8)


def test_a_decoder_with_the_kernel_is_the_same_decoder():
    """Hidden states of completions, through a padded prompt that is computed once."""
    graphdef, parameters = tiny.policy(num_layers=1)
    plain = nnx.merge(graphdef, parameters)
    plain.splash = Splash(block=128, least_queries=2, interpret=True)
    by_kernel = nnx.split(plain)[0]
    assert by_kernel != graphdef
    tokens, lengths = tiny.prompts(2)
    completions = jax.random.randint(jax.random.key(2), (2, 2, 7), 5, tiny.VOCAB)

    @functools.partial(jax.jit, static_argnums=0)
    def states(graphdef, parameters):
        decoder = nnx.merge(graphdef, parameters)
        return decoder.forward(tokens, lengths, completions)[:2]

    assert_near(states(by_kernel, parameters), states(graphdef, parameters), 2e-5)
