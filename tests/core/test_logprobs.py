"""Log-probs and entropies against float64 NumPy, in chunks and whole."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from rlvr_jax.core import logprobs, sampling

ROWS, LENGTH, WIDTH, VOCAB = 3, 7, 5, 40


@pytest.fixture(scope="module")
def inputs():
    keys = jax.random.split(jax.random.key(0), 3)
    hidden = jax.random.normal(keys[0], (ROWS, LENGTH, WIDTH))
    head = jax.random.normal(keys[1], (VOCAB, WIDTH))
    tokens = jax.random.randint(keys[2], (ROWS, LENGTH), 0, VOCAB)
    return hidden, head, tokens


def by_numpy(hidden, head, tokens, temperature, kept=None):
    logits = np.asarray(hidden, np.float64) @ np.asarray(head, np.float64).T
    logits = logits / temperature
    if kept is not None:
        logits = np.where(kept, logits, -np.inf)
    peak = logits.max(-1, keepdims=True)
    normaliser = peak + np.log(np.exp(logits - peak).sum(-1, keepdims=True))
    logs = logits - normaliser
    chosen = np.take_along_axis(logs, np.asarray(tokens)[..., None], -1)[..., 0]
    probabilities = np.exp(logs)
    entropy = -np.where(probabilities > 0, probabilities * np.maximum(logs, -1e9), 0)
    return chosen, entropy.sum(-1)


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_chunks_give_the_log_softmax(inputs, chunk, temperature):
    found = jax.jit(
        functools.partial(logprobs.token_logprobs, chunk=chunk, temperature=temperature)
    )(*inputs)
    for ours, expected in zip(found, by_numpy(*inputs, temperature), strict=True):
        np.testing.assert_allclose(ours, expected, atol=2e-6)


def test_kept_sets_renormalise(inputs):
    """CLIP-32 at the level of one function."""
    hidden, head, tokens = inputs
    logits = logprobs.head_logits(hidden, head)
    kept = sampling.kept_tokens(logits, top_p=0.7)
    tokens = jnp.argmax(logits, -1)
    found = logprobs.token_logprobs(
        hidden, head, tokens, kept_words=sampling.pack_bits(kept), chunk=2
    )
    expected = by_numpy(hidden, head, tokens, 1.0, np.asarray(kept))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_gradients_do_not_depend_on_the_chunk(inputs):
    hidden, head, tokens = inputs
    kept = sampling.kept_tokens(logprobs.head_logits(hidden, head), top_k=30)
    kept = sampling.pack_bits(kept.at[..., tokens].set(True))

    def loss(hidden, head, chunk):
        chosen, entropy = logprobs.token_logprobs(
            hidden, head, tokens, kept_words=kept, chunk=chunk
        )
        weights = jnp.arange(LENGTH) + 1.0
        return (weights * chosen).sum() + 0.3 * (weights * entropy).sum()

    whole = jax.grad(loss, (0, 1))(hidden, head, 7)
    for chunk in (1, 2, 5):
        for ours, theirs in zip(
            jax.grad(loss, (0, 1))(hidden, head, chunk), whole, strict=True
        ):
            np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_gradients_equal_finite_differences():
    """ENT-11 through the head: in float64."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), 2)
        hidden = jax.random.normal(keys[0], (1, 3, WIDTH), jnp.float64)
        head = jax.random.normal(keys[1], (VOCAB, WIDTH), jnp.float64)
        tokens = jnp.array([[1, 5, 39]])

        def loss(hidden, head):
            states, table = jnp.asarray(hidden), jnp.asarray(head)
            chosen, entropy = logprobs.token_logprobs(states, table, tokens, chunk=2)
            return chosen.sum() + entropy.sum()

        check_grads(loss, (hidden, head), order=1, modes=["rev"])


def test_padding_without_a_kept_set_has_finite_gradients(inputs):
    """Rows of zeros are what the sampler leaves after the end of a completion."""
    hidden, head, tokens = inputs
    words = jnp.zeros((ROWS, LENGTH, 2), jnp.uint32)

    def loss(hidden):
        chosen, _ = logprobs.token_logprobs(hidden, head, tokens, kept_words=words)
        return (chosen * 0).sum()

    np.testing.assert_array_equal(jax.grad(loss)(hidden), 0.0)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_from_logits(inputs, temperature):
    hidden, head, tokens = inputs
    logits = logprobs.head_logits(hidden, head)
    expected = by_numpy(hidden, head, tokens, temperature)
    found = logprobs.logprobs_from_logits(logits, tokens, temperature=temperature)
    np.testing.assert_allclose(found, expected[0], atol=2e-6)
    found = logprobs.entropy_from_logits(logits, temperature=temperature)
    np.testing.assert_allclose(found, expected[1], atol=2e-6)


def test_entropy_with_impossible_tokens_is_finite():
    """Two of four tokens possible, equally likely: log 2, with a finite gradient."""
    logits = jnp.array([0.0, -jnp.inf, 0.0, -jnp.inf])
    value, gradient = jax.value_and_grad(logprobs.entropy_from_logits)(logits)
    np.testing.assert_allclose(value, np.log(2), rtol=1e-6)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-7)


def test_logits_of_short_floats_are_float32():
    hidden, head = jnp.ones((2, 3), jnp.bfloat16), jnp.ones((4, 3), jnp.bfloat16)
    assert logprobs.head_logits(hidden, head).dtype == jnp.float32


def test_chunks_of_a_short_float_head_are_summed_in_float32():
    """Against the gradient in float64 of the same rounded numbers: 512 chunks are off
    by what one is (0.2 %, from rounding the result to 8 bits), where sums in bfloat16
    were off by 2 % and drifted with the chunk."""
    keys = jax.random.split(jax.random.key(3), 3)
    hidden = jax.random.normal(keys[0], (1, 512, WIDTH), jnp.bfloat16)
    head = jax.random.normal(keys[1], (VOCAB, WIDTH), jnp.bfloat16)
    tokens = jax.random.randint(keys[2], (1, 512), 0, VOCAB)

    def gradient(head, hidden, chunk):
        def loss(head):
            chosen, entropy = logprobs.token_logprobs(hidden, head, tokens, chunk=chunk)
            return chosen.sum() + 0.3 * entropy.sum()

        return np.asarray(jax.grad(loss)(head), np.float64)

    with jax.enable_x64(True):
        wide = (jnp.asarray(x, jnp.float64) for x in (head, hidden))
        exact = gradient(*wide, 512)
    for chunk in (512, 4, 1):
        error = gradient(head, hidden, chunk) - exact
        assert np.linalg.norm(error) < 0.003 * np.linalg.norm(exact)
