"""Kept sets against NumPy definitions, draws against their probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import sampling

VOCAB = 700


def kept_by_sorting(logits, top_k, top_p, min_p):
    """The definition, one row at a time: sort, cut, cut, cut."""
    kept = np.zeros(logits.shape, bool)
    for row, keep in zip(np.asarray(logits, np.float64), kept, strict=True):
        order = np.argsort(-row, kind="stable")
        chosen = order[: top_k or len(order)]
        probabilities = np.exp(row[chosen] - row.max())
        if top_p < 1:
            share = np.cumsum(probabilities) / probabilities.sum()
            chosen = chosen[: np.searchsorted(share, top_p) + 1]
        if min_p > 0:
            chosen = chosen[np.exp(row[chosen] - row.max()) >= min_p]
        keep[chosen] = True
    return kept


@pytest.mark.parametrize("top_k", [0, 1, 17, VOCAB])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 1e-6])
@pytest.mark.parametrize("min_p", [0.0, 0.05])
@pytest.mark.parametrize("compiled", [False, True])
def test_kept_tokens(top_k, top_p, min_p, compiled):
    logits = 3 * jax.random.normal(jax.random.key(0), (20, VOCAB))
    keep = lambda x: sampling.kept_tokens(x, top_k=top_k, top_p=top_p, min_p=min_p)
    kept = (jax.jit(keep) if compiled else keep)(logits)
    np.testing.assert_array_equal(kept, kept_by_sorting(logits, top_k, top_p, min_p))
    assert kept.any(axis=-1).all()


def test_ties_at_the_border_are_kept():
    """Logits 2, 1, 1, 0: the second place is shared, so top-2 keeps three."""
    logits = jnp.array([2.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(
        sampling.kept_tokens(logits, top_k=2), [True, True, True, False]
    )
    # p = .53, .20, .20, .07: 0.6 needs one of the tied tokens, and takes both.
    np.testing.assert_array_equal(
        sampling.kept_tokens(logits, top_p=0.6), [True, True, True, False]
    )


def test_impossible_tokens_are_never_kept_by_top_p():
    logits = jnp.array([0.0, -jnp.inf, 0.0, -jnp.inf])
    np.testing.assert_array_equal(
        sampling.kept_tokens(logits, top_p=0.99), [True, False, True, False]
    )


def test_draw_follows_the_distribution():
    """200,000 draws over 700 tokens: each frequency within 5 standard errors."""
    logprobs = jax.nn.log_softmax(2 * jax.random.normal(jax.random.key(1), (VOCAB,)))
    logprobs = jnp.where(jnp.arange(VOCAB) % 7 == 0, -jnp.inf, logprobs)
    logprobs = jax.nn.log_softmax(logprobs)
    count = 200_000
    keys = jax.random.split(jax.random.key(2), count)
    tokens = jax.vmap(sampling.draw, (0, None))(keys[:, None], logprobs[None])
    found = np.bincount(np.asarray(tokens).ravel(), minlength=VOCAB) / count
    expected = np.exp(np.asarray(logprobs, np.float64))
    error = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(found - expected) <= 5 * error + 1e-12).all()
    assert (found[::7] == 0).all()


def test_draw_with_a_single_possible_token():
    logprobs = jnp.full((300, VOCAB), -jnp.inf).at[:, 699].set(0.0)
    keys = jax.random.split(jax.random.key(0), 300)
    assert (sampling.draw(keys, logprobs) == 699).all()


def test_rare_tokens_keep_their_chance():
    """512 tokens share 1e-6 of the mass within one block: each is reached by the second
    number alone, which a single float32 number could not resolve."""
    mass = jnp.full((256,), 1.0 / 256)
    uniform = jnp.arange(2**14) / 2**14
    tokens = sampling._first_above(jnp.broadcast_to(mass * 1e-6, (2**14, 256)), uniform)
    # 64 each; cumulated sums of float32 move a border by one grid point at most.
    np.testing.assert_allclose(np.bincount(tokens, minlength=256), 64, atol=1)


def test_packing_bits_is_undone_by_unpacking():
    kept = jax.random.bernoulli(jax.random.key(0), 0.3, (4, 5, 61))
    words = sampling.pack_bits(kept)
    assert words.shape == (4, 5, 2)
    np.testing.assert_array_equal(sampling.unpack_bits(words, 61), kept)
    # Bit v of word v // 32: token 33 is bit 1 of word 1.
    one = sampling.pack_bits(jnp.arange(61) == 33)
    np.testing.assert_array_equal(one, [0, 2])
