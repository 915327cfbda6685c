"""Verifying from inside a program equals verifying beside it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.rollout.callback import verify_in_program
from rlvr_jax.types import Rollouts

P, G, T = 3, 2, 5


@pytest.fixture(scope="module")
def rollouts():
    """Numbers that tell every row apart; no model needed."""
    lengths = jnp.arange(1, P * G + 1).reshape(P, G) % T + 1
    return Rollouts(
        prompt_tokens=jnp.ones((P, 4), jnp.int32),
        prompt_lengths=jnp.full(P, 4, jnp.int32),
        completion_tokens=jnp.arange(P * G * T).reshape(P, G, T),
        completion_lengths=lengths,
        ended=lengths < T,
        rollout_logprobs=jnp.zeros((P, G, T)),
        group_id=jnp.broadcast_to(jnp.arange(P)[:, None], (P, G)),
    )


class Score:
    """Rewards that depend on all four arrays; float64, as NumPy makes them."""

    def __init__(self):
        self.calls = []

    def __call__(self, indices, tokens, lengths, ended):
        self.calls.append((indices, tokens, lengths, ended))
        used = np.arange(tokens.shape[-1]) < lengths[..., None]
        rewards = (tokens * used).sum(axis=-1) / 7 + 100.0 * indices[:, None]
        return rewards, ended.astype(np.float64)


INDICES = jnp.array([4, 0, 9])


def test_inside_a_program_equals_the_direct_call(rollouts):
    score = Score()
    program = jax.jit(lambda i, r: verify_in_program(score, i, r))
    rewards, correct = program(INDICES, rollouts)
    direct = Score()(
        np.asarray(INDICES),
        np.asarray(rollouts.completion_tokens),
        np.asarray(rollouts.completion_lengths),
        np.asarray(rollouts.ended),
    )
    assert rewards.dtype == correct.dtype == jnp.float32
    np.testing.assert_array_equal(rewards, direct[0].astype(np.float32))
    np.testing.assert_array_equal(correct, direct[1].astype(np.float32))
    assert all(isinstance(array, np.ndarray) for array in score.calls[0])


def test_it_is_called_once_each_time_the_program_runs(rollouts):
    """Also with equal inputs, and also when nothing uses the result."""
    score = Score()

    @jax.jit
    def program(indices, rollouts):
        verify_in_program(score, indices, rollouts)
        return rollouts.completion_lengths + 1

    for runs in (1, 2, 3):
        jax.block_until_ready(program(INDICES, rollouts))
        jax.effects_barrier()
        assert len(score.calls) == runs


def test_the_text_of_an_exception_arrives(rollouts):
    def broken(*_):
        raise RuntimeError("verifiers: 40% of 6 checks crashed")

    program = jax.jit(lambda i, r: verify_in_program(broken, i, r))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"40% of 6 checks crashed"):
        jax.block_until_ready(program(INDICES, rollouts))


def test_rewards_enter_the_computation_behind_them(rollouts):
    """As in a step that samples, verifies and learns in one program."""

    @jax.jit
    def program(indices, rollouts):
        rewards, _ = verify_in_program(Score(), indices, rollouts)
        return rewards - rewards.mean(axis=1, keepdims=True)

    centred = program(INDICES, rollouts)
    np.testing.assert_allclose(centred.sum(axis=1), 0, atol=1e-4)
    assert float(jnp.abs(centred).max()) > 0.1
