"""Length and ending terms of the reward, at the figures of their papers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.shaping import overlong_filter, soft_overlong_penalty


def test_soft_overlong_ramp_of_dapo():
    """OBJ-11: limit 20480, buffer 4096; (16384 - 17408) / 4096 = -.25 and so on."""
    lengths = jnp.array([0, 1, 16383, 16384, 17408, 18432, 20480, 20481, 10**6])
    found = soft_overlong_penalty(
        lengths, max_completion_tokens=20480, buffer_tokens=4096
    )
    np.testing.assert_array_equal(found, [0, 0, 0, 0, -0.25, -0.5, -1, -1, -1])


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap])
def test_soft_overlong_equals_the_loop(transform):
    """OBJ-11, with Magistral's size 0.1, token by token over the whole ramp."""

    def loop(length):
        if length <= 90:
            return 0.0
        return max(0.1 * (90 - length) / 10, -0.1)

    def ours(lengths):
        lengths = jnp.atleast_1d(lengths)
        found = soft_overlong_penalty(
            lengths, max_completion_tokens=100, buffer_tokens=10, penalty=0.1
        )
        return found.reshape(lengths.shape)

    lengths = jnp.arange(85, 105)
    found = transform(ours)(lengths).reshape(-1)
    np.testing.assert_allclose(found, [loop(n) for n in range(85, 105)], atol=1e-8)


@pytest.mark.parametrize("buffer", [0, -1, 101])
def test_soft_overlong_needs_a_buffer_within_the_limit(buffer):
    with pytest.raises(ValueError, match=r"objective\.overlong_buffer_tokens"):
        soft_overlong_penalty(
            jnp.array([1]), max_completion_tokens=100, buffer_tokens=buffer
        )


def test_overlong_filter_removes_cut_rows_only():
    """OBJ-12: a row that filled its window but ended keeps its tokens."""
    mask = jnp.array([[1, 1, 1], [1, 1, 1], [1, 0, 0]], bool)
    found = overlong_filter(mask, jnp.array([True, False, True]))
    np.testing.assert_array_equal(found, [[1, 1, 1], [0, 0, 0], [1, 0, 0]])


def test_filtered_tokens_carry_no_gradient():
    """OBJ-12: the gradient does not change when the cut row's tokens are replaced."""

    def loss(logprobs, advantages, ended):
        kept = overlong_filter(jnp.ones(logprobs.shape, bool), ended)
        return -jnp.sum(jnp.where(kept, logprobs * advantages[:, None], 0))

    rng = np.random.default_rng(0)
    logprobs = jnp.asarray(rng.normal(size=(3, 4)))
    other = logprobs.at[1].set(jnp.asarray(rng.normal(size=4)) * 100)
    advantages, ended = jnp.array([1.0, -2.0, 0.5]), jnp.array([True, False, True])
    first = jax.grad(loss)(logprobs, advantages, ended)
    np.testing.assert_array_equal(first, jax.grad(loss)(other, advantages, ended))
    np.testing.assert_array_equal(first[1], 0)
    np.testing.assert_array_equal(first[0], -1)
