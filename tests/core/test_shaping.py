"""Length and ending terms of the reward, at the figures of their papers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.shaping import (
    kimi_length_rewards,
    magistral_rewards,
    overlong_filter,
    soft_overlong_penalty,
    unfinished_rewards,
    verdict_rewards,
)
from tests.core.variants import VARIANTS, run


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


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32])
def test_overlong_filter_keeps_the_type_of_the_mask(dtype):
    found = overlong_filter(jnp.ones((1, 2), dtype), jnp.array([True]))
    assert found.dtype == dtype


def test_cut_completions_stay_in_the_group_or_leave_it():
    """OBJ-12: 1 of 4 right, the last wrong one cut: mean 1/4 with it, 1/3 without."""
    rewards, prompt = jnp.array([1.0, 0, 0, 0]), jnp.zeros(4, int)
    ended = jnp.array([True, True, True, False])
    kept = group_advantages(rewards, prompt, scale="none")
    np.testing.assert_allclose(kept, [0.75, -0.25, -0.25, -0.25])
    dropped = group_advantages(rewards, prompt, scale="none", row_mask=ended)
    np.testing.assert_allclose(dropped, [2 / 3, -1 / 3, -1 / 3, 0], rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 10.0])
def test_scale_of_the_reward_leaves_z_scores(alpha):
    """OBJ-02: GRPO's advantages do not depend on alpha; centred ones scale with it."""
    correct, prompt = jnp.array([True, False, False, True, False]), jnp.zeros(5, int)
    paid = verdict_rewards(correct, right=alpha)
    plain = verdict_rewards(correct)
    options = dict(epsilon=0.0)
    np.testing.assert_allclose(
        group_advantages(paid, prompt, **options),
        group_advantages(plain, prompt, **options),
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        group_advantages(paid, prompt, scale="none"),
        alpha * group_advantages(plain, prompt, scale="none"),
        rtol=1e-5,
    )


@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_scaling_reward_and_kl_together_keeps_the_optimum(factor):
    """OBJ-02: pi* = pi_ref exp(v / beta) / Z reads alpha and beta by their quotient.

    Checked on the objective itself: the gradient of E[v] - beta KL is 0 at that pi* for
    (10, .05 * 50) and for both times `factor`.
    """
    reference = jax.nn.log_softmax(jnp.array([0.1, -0.4, 0.7]))
    correct = jnp.array([True, False, False])
    optimum = jax.nn.log_softmax(reference + verdict_rewards(correct, right=10.0) / 2.5)

    def objective(logits):
        logprobs = jax.nn.log_softmax(logits)
        reward = verdict_rewards(correct, right=10.0 * factor)
        penalty = 2.5 * factor * (logprobs - reference)
        return jnp.sum(jnp.exp(logprobs) * (reward - penalty))

    gradient = jax.grad(objective)(optimum)
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    assert np.abs(jax.grad(objective)(reference)).max() > 0.1 * factor


def test_no_end_token_costs_ten_whatever_the_answer():
    """OBJ-03: Tulu 3: right and ended 10, wrong and ended 0, not ended -10."""
    correct = jnp.array([True, False, True, False])
    ended = jnp.array([True, True, False, False])
    found = unfinished_rewards(verdict_rewards(correct, right=10.0), ended)
    np.testing.assert_array_equal(found, [10, 0, -10, -10])


def test_plus_minus_one():
    """OBJ-07: z-scores as for 0/1; centred advantages double."""
    correct, prompt = jnp.array([True, False, False, False]), jnp.zeros(4, int)
    signed, plain = verdict_rewards(correct, wrong=-1.0), verdict_rewards(correct)
    np.testing.assert_array_equal(signed, [1, -1, -1, -1])
    np.testing.assert_allclose(
        group_advantages(signed, prompt), group_advantages(plain, prompt), rtol=1e-5
    )
    np.testing.assert_allclose(
        group_advantages(signed, prompt, scale="none"),
        2 * group_advantages(plain, prompt, scale="none"),
    )


@pytest.mark.parametrize(
    ("correct", "formatted", "language", "length", "expected"),
    [
        (True, True, True, 0.0, 1.1),  # the most there is
        (False, True, True, 0.0, 0.2),
        (True, False, True, -0.1, 0.0),  # the format gate closes everything
        (True, True, False, -0.1, 0.9),
        (True, True, True, -0.1, 1.0),
        (False, True, False, 0.0, 0.1),
    ],
)
def test_magistral_table(correct, formatted, language, length, expected):
    """OBJ-10, with the figures of the Magistral report."""
    found = magistral_rewards(
        jnp.array([correct]),
        jnp.array([formatted]),
        same_language=jnp.array([language]),
        length_penalty=jnp.array([length]),
    )
    np.testing.assert_allclose(found, [expected], rtol=1e-6, atol=0)


def test_magistral_without_language_and_length():
    found = magistral_rewards(jnp.array([True, False]), jnp.array([True, True]))
    np.testing.assert_allclose(found, [1.0, 0.1], rtol=1e-6)


def kimi_loop(lengths, correct, group_id, kept):
    found = np.zeros(len(lengths))
    for i in np.flatnonzero(kept):
        group = [lengths[j] for j in np.flatnonzero(kept) if group_id[j] == group_id[i]]
        if max(group) > min(group):
            term = 0.5 - (lengths[i] - min(group)) / (max(group) - min(group))
            found[i] = 0.2 * (term if correct[i] else min(0.0, term))
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_kimi_length_term_equals_the_loop(variant):
    """OBJ-13, in uneven scattered groups, one of equal lengths, one masked row."""
    rng = np.random.default_rng(0)
    group_id = np.array([1, 0, 1, 1, 4, 0, 2, 2, 0], np.int32)
    kept = np.arange(9) != 3
    lengths = rng.integers(1, 300, size=(3, 9)).astype(np.int32)
    lengths[:, 6:8] = 40
    correct = rng.uniform(size=(3, 9)) < 0.5

    def ours(lengths, correct):
        return kimi_length_rewards(
            lengths,
            correct,
            jnp.asarray(group_id),
            weight=0.2,
            row_mask=jnp.asarray(kept),
        )

    expected = [
        kimi_loop(*one, group_id, kept) for one in zip(lengths, correct, strict=True)
    ]
    found = run(variant, ours, lengths, correct)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_short_wrong_answer_is_not_paid():
    """OBJ-13: lengths 100, 200, 300, all wrong: 0, 0, -.5; all right: .5, 0, -.5."""
    lengths, group_id = jnp.array([100, 200, 300]), jnp.zeros(3, int)
    wrong = kimi_length_rewards(lengths, jnp.zeros(3, bool), group_id)
    np.testing.assert_array_equal(wrong, [0, 0, -0.5])
    right = kimi_length_rewards(lengths, jnp.ones(3, bool), group_id)
    np.testing.assert_array_equal(right, [0.5, 0, -0.5])
