"""Entropy of a softmax: how it moves, by finite differences and by enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import entropy
from rlvr_jax.core.logprobs import entropy_from_logits
from tests.core.batches import assert_transforms_agree, ragged

# The example of the specification.
Z = np.array([1.0, 0.2, -0.5, 0.1])
A = np.array([1.0, -0.5, 0.3, -0.2])

pytestmark = pytest.mark.usefixtures("x64")


def log_softmax(z):
    return jax.nn.log_softmax(jnp.asarray(z))


def actual_change(dz, step=1e-6):
    """dH along dz, by a central difference; error of order step^2."""
    entropy_at = lambda s: entropy_from_logits(jnp.asarray(Z + s * dz))
    return float(entropy_at(step) - entropy_at(-step)) / (2 * step)


def test_softmax_perturbation_identities():
    """ENT-03: d pi_a = pi_a (dz_a - E dz), which sums to 0."""
    pi = np.exp(log_softmax(Z))
    moved = (np.exp(log_softmax(Z + 1e-6 * A)) - np.exp(log_softmax(Z - 1e-6 * A))) / (
        2e-6
    )
    identity = pi * (A - (pi * A).sum())
    np.testing.assert_allclose(moved, identity, atol=1e-9)
    np.testing.assert_allclose(identity.sum(), 0.0, atol=1e-15)


def test_entropy_falls_by_the_covariance_of_logprob_and_logit_change():
    """ENT-04, ENT-05: dH = -Cov(log pi, dz) = -.25998; natural gradient dz = eta A."""
    predicted = entropy.predicted_entropy_change(log_softmax(Z), jnp.array(A))
    np.testing.assert_allclose(predicted, -0.25998, atol=5e-6)
    np.testing.assert_allclose(predicted, actual_change(A), atol=1e-8)
    logs, pi = np.asarray(log_softmax(Z)), np.exp(log_softmax(Z))
    covariance = (pi * logs * A).sum() - (pi * logs).sum() * (pi * A).sum()
    np.testing.assert_allclose(predicted, -covariance, rtol=1e-12)
    eta = 0.3
    scaled = entropy.predicted_entropy_change(log_softmax(Z), jnp.array(eta * A))
    np.testing.assert_allclose(scaled, -eta * covariance, rtol=1e-12)


def test_vanilla_gradient_has_the_covariance_with_pi_times_advantage():
    """ENT-06: dz = eta pi A: -.09572, both sides.

    The gradient of E[A] on softmax logits is pi (A - E A): advantages have mean 0.
    """
    pi = np.exp(log_softmax(Z))
    dz = pi * (A - (pi * A).sum())
    exact = jax.grad(lambda z: (jax.nn.softmax(z) * A).sum())(jnp.array(Z))
    np.testing.assert_allclose(dz, exact, atol=1e-15)
    predicted = entropy.predicted_entropy_change(log_softmax(Z), jnp.array(dz))
    np.testing.assert_allclose(predicted, -0.09572, atol=5e-6)
    np.testing.assert_allclose(predicted, actual_change(dz), atol=1e-8)


@pytest.mark.parametrize(
    ("likely", "advantage", "sign"),
    [(True, 1.0, -1), (True, -1.0, 1), (False, 1.0, 1), (False, -1.0, -1)],
)
def test_sign_rule(likely, advantage, sign):
    """ENT-07: confident and right lowers entropy, unlikely and right raises it."""
    logs = log_softmax(np.array([3.0, 0.0, 0.0]))
    dz = np.zeros(3)
    dz[0 if likely else 1] = advantage
    change = entropy.predicted_entropy_change(logs, jnp.array(dz))
    assert np.sign(change) == sign


def test_prediction_tracks_the_change_of_a_tabular_policy():
    """ENT-08: at a small step, predicted and actual dH correlate above .95."""
    rng = np.random.default_rng(0)
    logits, reward = rng.normal(size=16), rng.integers(0, 2, 16).astype(float)
    predicted, actual = [], []
    for _ in range(200):
        pi = np.exp(log_softmax(logits))
        samples = rng.choice(16, size=16, p=pi)
        advantage = np.zeros(16)
        np.add.at(advantage, samples, (reward[samples] - reward[samples].mean()) / 16)
        dz = 0.05 * (advantage - pi * advantage.sum())
        change = entropy.predicted_entropy_change(log_softmax(logits), jnp.array(dz))
        predicted.append(float(change))
        before = float(entropy_from_logits(jnp.asarray(logits)))
        logits = logits + dz
        actual.append(float(entropy_from_logits(jnp.asarray(logits))) - before)
    assert np.corrcoef(predicted, actual)[0, 1] > 0.95


def test_sampled_covariance_is_that_of_numpy():
    """ENT-08, DIAG-05: Cov(log pi, A) over the tokens of the loss."""
    batch = ragged()
    found = assert_transforms_agree(
        entropy.covariance, batch.policy, batch.advantages, batch.mask
    )
    logs = batch.policy[batch.mask]
    spread = np.repeat(batch.advantages[:, None], batch.mask.shape[1], axis=1)
    expected = np.cov(logs, spread[batch.mask], ddof=0)[0, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    empty = entropy.covariance(
        jnp.array(batch.policy), jnp.array(batch.advantages), jnp.zeros((6, 7))
    )
    assert float(empty) == 0.0


def test_sampled_covariance_estimates_the_prediction():
    """ENT-05: over actions drawn from pi its mean is -dH of the natural step."""
    logs = log_softmax(Z)
    pi = np.exp(logs)
    counts = np.round(pi * 100_000).astype(int)
    tokens = np.repeat(np.arange(4), counts)[None]
    found = entropy.covariance(
        jnp.asarray(logs)[tokens], jnp.asarray(A)[tokens], jnp.ones(tokens.shape)
    )
    np.testing.assert_allclose(found, 0.25998, atol=2e-5)


def test_gradient_of_the_bonus():
    """ENT-11: grad H = -pi (log pi + H) on softmax logits; loss -c H."""

    def loss(z):
        nats = entropy_from_logits(z)[None, None]
        return entropy.entropy_bonus_loss(nats, coefficient=0.02).sum()

    logs = np.asarray(log_softmax(Z))
    entropy_now = -(np.exp(logs) * logs).sum()
    expected = 0.02 * np.exp(logs) * (logs + entropy_now)
    np.testing.assert_allclose(jax.grad(loss)(jnp.array(Z)), expected, rtol=1e-12)


def test_adaptive_coefficient_climbs_below_the_target_and_rests_above():
    """ENT-11: +step at or below the target, -step above; applied only below."""
    settings = {"target": 0.2, "step": 0.01, "minimum": 0.0, "maximum": 0.03}
    adapt = lambda c, h: entropy.adapt_entropy_coefficient(
        jnp.array(c), jnp.array(h), **settings
    )
    for c, h, expected in (
        (0.01, 0.1, (0.02, 0.02)),
        (0.01, 0.2, (0.02, 0.02)),
        (0.01, 0.3, (0.0, 0.0)),
        (0.02, 0.3, (0.01, 0.0)),
        (0.03, 0.1, (0.03, 0.03)),
        (0.005, 0.3, (0.0, 0.0)),
    ):
        np.testing.assert_allclose(adapt(c, h), expected, atol=1e-15)


def test_band_shift_by_hand():
    """F-44: up at or below the target, down above, never beyond the bound."""
    shift, seen = jnp.array(0.0), []
    for nats in (0.1, 0.2, 0.1, 0.5, 0.5):
        shift = entropy.adapt_band_shift(
            shift, jnp.array(nats), target=0.2, step=0.4, bound=1.0
        )
        seen.append(float(shift))
    np.testing.assert_allclose(seen, [0.4, 0.8, 1.0, 0.6, 0.2], rtol=1e-6)


@pytest.mark.parametrize("shift", [-0.7, 0.0, 0.7])
def test_shifted_bands_are_scaled_in_the_log(shift):
    """F-44: widths of log-symmetric bands are multiplied by e^s and e^-s: four
    bounds that move together, as wide as narrow."""
    up, down = entropy.shifted_bands((0.5, 2.0), (0.8, 1.25), jnp.array(shift))
    np.testing.assert_allclose(
        np.log(up), np.exp(shift) * np.log([0.5, 2.0]), rtol=1e-5
    )
    np.testing.assert_allclose(
        np.log(down), np.exp(-shift) * np.log([0.8, 1.25]), rtol=1e-5
    )
    np.testing.assert_allclose(up[0] * up[1], 1, rtol=1e-5)
