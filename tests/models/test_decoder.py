"""The decoder's three ways of running agree, and padding never shows."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models.weights import parameters_of

ARCH = Architecture(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=48,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
)
P, G, S, T = 3, 2, 6, 4
LENGTHS = (6, 2, 4)
# Float32 sums in another order; states are of order 1.
TOLERANCE = 5e-6


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(ARCH, rngs=nnx.Rngs(0))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    prompts = jnp.asarray(rng.integers(0, 50, (P, S)))
    completions = jnp.asarray(rng.integers(0, 50, (P, G, T)))
    return prompts, jnp.array(LENGTHS), completions


def jitted(method):
    """`method` of a decoder under jit; nnx.jit would rebuild caches out of Nones, which
    the run-time shape checks refuse."""

    @functools.partial(jax.jit, static_argnums=0)
    def run(graphdef, state, *arguments):
        return method(nnx.merge(graphdef, state), *arguments)

    return lambda decoder, *arguments: run(*nnx.split(decoder), *arguments)


prefill = jitted(Decoder.prefill)
read = jitted(Decoder.read)
forward = jitted(Decoder.forward)
decode = jitted(Decoder.decode)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tie_embeddings": False},
        {"qkv_bias": True},
        {"output_bias": True, "mlp_bias": True},
        {"qk_norm": True, "head_dim": 20},
    ],
    ids=lambda options: ",".join(options) or "plain",
)
def test_number_of_parameters(options):
    arch = dataclasses.replace(ARCH, **options)
    drawn = parameters_of(Decoder(arch, rngs=nnx.Rngs(0)))
    assert {n: v.shape for n, v in drawn.items()} == parameter_shapes(arch)
    assert arch.num_parameters == sum(math.prod(v.shape) for v in drawn.values())


def test_smollm2_has_its_published_size():
    """135M; 134,515,008 counted from the published files."""
    arch = Architecture(49152, 576, 1536, 30, 9, 3, 64)
    assert arch.num_parameters == 134_515_008


def test_drawn_parameters():
    arch = dataclasses.replace(ARCH, qkv_bias=True, hidden_size=256, head_dim=64)
    drawn = parameters_of(Decoder(arch, rngs=nnx.Rngs(1)))
    assert (drawn["layers.attention_norm"] == 1).all()
    assert (drawn["layers.query_bias"] == 0).all()
    # 131,072 draws of std 1/sqrt(256): their std is within 1 % (5 standard errors).
    assert float(drawn["layers.query"].std()) * 16 == pytest.approx(1, rel=0.01)
    assert float(drawn["layers.down"].std()) * 48**0.5 == pytest.approx(1, rel=0.02)
    first, second = drawn["layers.query"]
    assert not jnp.array_equal(first, second)


def test_ways_to_read_equal_the_joined_row(decoder, rows):
    """Shared prompts: the same as prompt and completion in one row without padding."""
    prompts, lengths, completions = rows
    hidden, cache = prefill(decoder, prompts, lengths)
    states, _ = read(decoder, completions, cache)
    last, together, _ = forward(decoder, prompts, lengths, completions)
    near = functools.partial(np.testing.assert_allclose, rtol=0, atol=TOLERANCE)
    for p, length in enumerate(LENGTHS):
        for g in range(G):
            row = jnp.concatenate([prompts[p, S - length :], completions[p, g]])[None]
            joined = prefill(decoder, row, jnp.array([length + T]))[0][0]
            near(hidden[p, S - length :], joined[:length])
            near(last[p], joined[length - 1])
            near(states[p, g], joined[length:])
            near(together[p, g], joined[length:])


def test_completions_of_one_token_are_not_read(decoder, rows):
    prompts, lengths, completions = rows
    last, states, _ = forward(decoder, prompts, lengths, completions[:, :, :0])
    assert states.shape == (*completions.shape[:2], 0, last.shape[-1])
    hidden, _ = prefill(decoder, prompts, lengths)
    np.testing.assert_allclose(last, hidden[:, -1], rtol=0, atol=TOLERANCE)


def test_decode_equals_read(decoder, rows):
    prompts, lengths, completions = rows
    _, cached = prefill(decoder, prompts, lengths)
    extended = read(decoder, completions, cached)[0]
    cache = decoder.empty_cache(cached, G, T + 3)  # slots to come do not count
    cache = jax.tree.map(lambda empty: empty + 7.0, cache)
    for t in range(T):
        hidden, cache = decode(
            decoder, completions[:, :, t], jnp.asarray(t), cached, cache
        )
        np.testing.assert_allclose(hidden, extended[:, :, t], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("extra", [0, 3])
def test_padding_does_not_show(decoder, rows, extra):
    """Neither what pad tokens are, nor how many there are."""
    prompts, lengths, completions = rows
    hidden, cache = prefill(decoder, prompts, lengths)
    expected = read(decoder, completions, cache)[0]
    wide = jnp.pad(prompts, ((0, 0), (extra, 0)))
    is_padding = jnp.arange(S + extra) < S + extra - lengths[:, None]
    wide = jnp.where(is_padding, 49, wide)
    other, cache = prefill(decoder, wide, lengths)
    found = read(decoder, completions, cache)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    kept = ~is_padding[:, extra:]
    np.testing.assert_allclose(
        other[:, extra:][kept], hidden[kept], rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("remat", ["layer", "dots", "groups"])
def test_gradients_are_the_same_with_recomputation_and_zero_for_padding(rows, remat):
    prompts, lengths, completions = rows
    prompts = jnp.where(jnp.arange(S) < S - lengths[:, None], 49, prompts % 49)
    completions = completions % 49

    def gradients(remat):
        # Four layers, so that there are two groups of two.
        deep = dataclasses.replace(ARCH, num_layers=4)
        decoder = Decoder(deep, rngs=nnx.Rngs(0))
        decoder.remat = remat

        def loss(decoder):
            last, after, _ = decoder.forward(prompts, lengths, completions)
            return (after**2).sum() + (last**3).sum()

        graphdef, state = nnx.split(decoder)
        grads = jax.jit(jax.grad(lambda s: loss(nnx.merge(graphdef, s))))(state)
        return parameters_of(nnx.merge(graphdef, grads))

    with_remat, without = gradients(remat), gradients("none")
    for name, values in with_remat.items():
        scale = float(jnp.abs(values).max())
        assert scale > 0, name
        np.testing.assert_allclose(
            values, without[name], rtol=0, atol=1e-5 * scale, err_msg=name
        )
    # Token 49 is met as padding only.
    assert (with_remat["embedding"][49] == 0).all()
    assert (with_remat["embedding"][prompts[0, -1]] != 0).any()


def test_empty_prompt_is_finite(decoder, rows):
    prompts, _, completions = rows
    hidden, cache = prefill(decoder, prompts, jnp.array([0, 2, 6]))
    assert jnp.isfinite(hidden).all()
    assert jnp.isfinite(read(decoder, completions, cache)[0]).all()


def test_rows_do_not_see_each_other(decoder, rows):
    prompts, lengths, completions = rows
    _, cache = prefill(decoder, prompts, lengths)
    before = read(decoder, completions, cache)[0]
    changed = completions.at[1, 0].set(completions[1, 0] + 1)
    _, cache = prefill(decoder, prompts.at[2].set(3), lengths)
    after = read(decoder, changed, cache)[0]
    differs = jnp.abs(after - before).max(axis=(-1, -2)) > 0
    expected = np.zeros((P, G), bool)
    expected[1, 0] = expected[2] = True
    np.testing.assert_array_equal(differs, expected)


def test_norms_are_computed_in_float32():
    """1024 equal squares summed in the 8 bits of bfloat16 would stop growing."""
    arch = dataclasses.replace(ARCH, hidden_size=1024, num_layers=1)
    decoder = Decoder(arch, rngs=nnx.Rngs(0), dtype=jnp.bfloat16)
    normed = decoder._norm(
        jnp.full((1, 1024), 3.0, jnp.bfloat16), decoder.final_norm[...]
    )
    assert normed.dtype == jnp.bfloat16
    np.testing.assert_array_equal(normed, jnp.ones((1, 1024)))
