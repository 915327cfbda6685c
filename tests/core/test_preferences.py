"""DPO against its formula and against the optimum that it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.preferences import dpo_loss


def test_dpo_starts_at_log_two():
    """SFT-18: at pi = pi_ref every pair costs log 2, whatever beta, and the gradient
    moves the chosen up by beta / 2."""
    zeros = jnp.zeros(3)
    np.testing.assert_allclose(dpo_loss(zeros, zeros), np.log(2), rtol=1e-6)
    np.testing.assert_allclose(dpo_loss(zeros, zeros, beta=3.0), np.log(2), rtol=1e-6)
    total = lambda chosen, rejected: dpo_loss(chosen, rejected, beta=0.5).sum()
    up, down = jax.grad(total, (0, 1))(zeros, zeros)
    np.testing.assert_allclose(up, -0.25, rtol=1e-6)
    np.testing.assert_allclose(down, 0.25, rtol=1e-6)


@pytest.mark.parametrize("beta", [0.1, 1.0])
def test_dpo_is_the_formula(beta):
    chosen, rejected = np.array([0.5, -2.0]), np.array([-1.0, 3.0])
    expected = np.log1p(np.exp(-beta * (chosen - rejected)))
    found = dpo_loss(jnp.asarray(chosen), jnp.asarray(rejected), beta=beta)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_dpo_finds_the_tilted_policy():
    """Three answers compared by Bradley and Terry at rewards 1, 0, -1: the minimiser of
    the expected loss is pi_ref exp(r / beta) / Z, DPO's eq. 4."""
    beta, rewards = 0.5, np.array([1.0, 0.0, -1.0])
    reference = np.array([0.2, 0.5, 0.3])
    wins = 1 / (1 + np.exp(-(rewards[:, None] - rewards)))

    def loss(logits):
        log_ratio = jax.nn.log_softmax(logits) - jnp.log(jnp.asarray(reference))
        chosen = jnp.repeat(log_ratio, 3)
        return (
            jnp.asarray(wins).ravel()
            * dpo_loss(chosen, jnp.tile(log_ratio, 3), beta=beta)
        ).sum()

    @jax.jit
    def descend(logits):
        step = lambda _, z: z - 2.0 * jax.grad(loss)(z)
        return jax.lax.fori_loop(0, 500, step, logits)

    found = jax.nn.softmax(descend(jnp.zeros(3)))
    expected = reference * np.exp(rewards / beta)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-4)
