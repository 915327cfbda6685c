"""Rotary frequencies and two-part attention against float64 loops of their formulas."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from rlvr_jax.models import attention as attention_module
from rlvr_jax.models.architecture import RopeScaling
from rlvr_jax.models.attention import (
    KeyValues,
    attention,
    rotary_frequencies,
    rotate,
)

LLAMA3 = RopeScaling(
    "llama3",
    8.0,
    original_max_positions=8192,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
)
YARN = RopeScaling(
    "yarn",
    4.0,
    original_max_positions=32768,
    beta_fast=32.0,
    beta_slow=1.0,
    attention_factor=0.1 * math.log(4.0) + 1.0,
)


@pytest.mark.parametrize("head_dim", [64, 96, 128])
def test_plain_frequencies(head_dim):
    frequencies, factor = rotary_frequencies(head_dim, 10_000.0, None)
    expected = [10_000.0 ** (-2 * i / head_dim) for i in range(head_dim // 2)]
    # Rounded to float32 once: half a unit in the last place.
    np.testing.assert_allclose(frequencies, expected, rtol=6.0e-8)
    assert factor == 1.0


@pytest.mark.parametrize(
    ("scaling", "theta", "head_dim", "settings"),
    [
        (RopeScaling("linear", 4.0), 10_000.0, 64, {"factor": 4.0}),
        (
            LLAMA3,
            500_000.0,
            128,
            {
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
        (
            YARN,
            1_000_000.0,
            128,
            {"factor": 4.0, "original_max_position_embeddings": 32768},
        ),
    ],
    ids=["linear", "llama3", "yarn"],
)
def test_scaled_frequencies_equal_those_of_transformers(
    scaling, theta, head_dim, settings
):
    config = transformers.LlamaConfig(
        head_dim=head_dim,
        max_position_embeddings=131_072,
        rope_parameters={
            "rope_type": scaling.kind,
            "rope_theta": theta,
            **settings,
        },
    )
    expected, expected_factor = ROPE_INIT_FUNCTIONS[scaling.kind](config, "cpu")
    frequencies, factor = rotary_frequencies(head_dim, theta, scaling)
    # Theirs come from float32 powers.
    np.testing.assert_allclose(frequencies, expected.numpy(), rtol=5e-7)
    assert factor == pytest.approx(expected_factor)
    plain, _ = rotary_frequencies(head_dim, theta, None)
    assert not np.allclose(frequencies, plain, rtol=0.1)


def test_llama3_ends_by_hand():
    """Wavelengths under 8192/4 stay, those over 8192 are divided by 8."""
    plain = np.asarray(rotary_frequencies(128, 500_000.0, None)[0])
    scaled = np.asarray(rotary_frequencies(128, 500_000.0, LLAMA3)[0])
    wavelength = 2 * np.pi / plain
    short, long = wavelength < 2048, wavelength > 8192
    np.testing.assert_array_equal(scaled[short], plain[short])
    np.testing.assert_array_equal(scaled[long], plain[long] / 8)
    between = ~short & ~long
    assert between.any()
    assert (scaled[between] < plain[between]).all()
    assert (scaled[between] > plain[between] / 8).all()


def test_rotate_by_hand():
    """A quarter turn of pair (0, 2), half a turn of (1, 3); then twice as large."""
    heads = jnp.array([[[1.0, 2.0, 3.0, 4.0]]])
    frequencies = jnp.array([math.pi / 2, math.pi])
    turned = rotate(heads, jnp.array([1]), frequencies, 1.0)
    np.testing.assert_allclose(turned, [[[-3.0, -2.0, 1.0, -4.0]]], atol=1e-6)
    doubled = rotate(heads, jnp.array([1]), frequencies, 2.0)
    np.testing.assert_allclose(doubled, 2 * turned, atol=1e-6)
    still = rotate(heads, jnp.array([0]), frequencies, 1.0)
    np.testing.assert_array_equal(still, heads)


def test_scores_depend_on_distance_alone():
    key = jax.random.key(0)
    query, other = jax.random.normal(key, (2, 1, 1, 8))
    frequencies, _ = rotary_frequencies(8, 100.0, None)

    def score(at: int, from_: int) -> float:
        turned = rotate(query, jnp.array([at]), frequencies, 1.0)
        met = rotate(other, jnp.array([from_]), frequencies, 1.0)
        return float((turned * met).sum())

    assert score(9, 4) == pytest.approx(score(25, 20), abs=1e-5)
    assert abs(score(9, 4) - score(9, 5)) > 1e-3


P, G, Q, HKV, R, S, T, K = 2, 3, 4, 2, 2, 5, 4, 8


@pytest.fixture
def parts():
    """Queries, own and prompt slots, and masks with gaps, all random."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    own = KeyValues(
        jnp.asarray(normal(P, G, HKV, T, K)),
        jnp.asarray(normal(P, G, HKV, T, K)),
        jnp.asarray(rng.random((P, G, Q, T)) < 0.6),
    )
    prompt = KeyValues(
        jnp.asarray(normal(P, HKV, S, K)),
        jnp.asarray(normal(P, HKV, S, K)),
        jnp.asarray(rng.random((P, 1, S)) < 0.7).at[:, :, -1].set(True),
    )
    return jnp.asarray(normal(P, G, Q, HKV, R, K)), own, prompt


def loop(queries, own, prompt):
    """softmax(q k / sqrt(K)) v over the kept slots of both parts, in float64."""
    queries = np.asarray(queries, np.float64)
    own, prompt = (
        part and {name: np.asarray(value) for name, value in vars(part).items()}
        for part in (own, prompt)
    )
    out = np.zeros(queries.shape)
    for p, g, q, h, r in np.ndindex(*queries.shape[:-1]):
        keys = [own["keys"][p, g, h][own["mask"][p, g, q]]]
        values = [own["values"][p, g, h][own["mask"][p, g, q]]]
        if prompt is not None:
            keys.append(prompt["keys"][p, h][prompt["mask"][p, 0]])
            values.append(prompt["values"][p, h][prompt["mask"][p, 0]])
        scores = np.concatenate(keys) @ queries[p, g, q, h, r] / math.sqrt(K)
        weights = np.exp(scores - scores.max())
        out[p, g, q, h, r] = weights / weights.sum() @ np.concatenate(values)
    return out


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_attention_over_both_parts(parts, wrap):
    found = wrap(attention)(*parts)
    expected = loop(*parts)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_attention_over_own_part_alone(parts):
    queries, own, _ = parts
    own = KeyValues(own.keys, own.values, own.mask.at[..., 0].set(True))
    found = attention(queries, own)
    expected = loop(queries, own, None)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_large_scores_do_not_overflow(parts):
    """Scores of some 1e4: the exponential is taken below the peak of both parts."""
    queries, own, prompt = parts
    found = attention(queries * 1e4, own, prompt)
    expected = loop(queries * 1e4, own, prompt)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_nothing_to_attend_to_is_finite(parts):
    queries, own, _ = parts
    own = KeyValues(own.keys, own.values, jnp.zeros_like(own.mask))
    total = lambda q: attention(q, own).sum()
    value, gradient = jax.value_and_grad(total)(queries)
    assert jnp.isfinite(value)
    assert jnp.isfinite(gradient).all()


@pytest.mark.parametrize("block", [1, 3])
def test_blocks_of_queries_change_nothing(parts, monkeypatch, block):
    """Four queries at once, in blocks of one, and of three with two made up: values
    and gradients to float32 rounding."""
    queries, own, prompt = parts

    def total(queries, keys, values):
        some = dataclasses.replace(own, keys=keys, values=values)
        out = attention(queries, some, prompt)
        return (out * jnp.cos(out)).sum(), out

    run = jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True)
    (_, whole), gradients = run(queries, own.keys, own.values)
    monkeypatch.setattr(attention_module, "QUERY_BLOCK", block)
    (_, found), others = run(queries, own.keys, own.values)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-6)
    for ours, theirs in zip(others, gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)
    shared = dataclasses.replace(own, mask=jnp.ones_like(own.mask[:, :, :1]))
    blocks = attention(queries, shared, prompt)
    monkeypatch.setattr(attention_module, "QUERY_BLOCK", 512)
    np.testing.assert_allclose(
        blocks, attention(queries, shared, prompt), rtol=0, atol=1e-6
    )
