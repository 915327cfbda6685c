"""The RLVR objective by enumeration: its gradient, its optimum, what beta buys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.preferences import bradley_terry_loss
from rlvr_jax.core.regularised import regularised_optimum, regularised_value
from rlvr_jax.core.shaping import verdict_rewards

pytestmark = pytest.mark.usefixtures("x64")

REFERENCE = np.log([0.1, 0.4, 0.3, 0.2])
VERDICTS = np.array([True, False, False, True])


def rewards_of(verdicts, right=10.0):
    return verdict_rewards(jnp.asarray(verdicts), right=right).astype(float)


def objective(logits, beta, rewards=None):
    rewards = rewards_of(VERDICTS) if rewards is None else rewards
    return regularised_value(
        jax.nn.log_softmax(logits), jnp.asarray(REFERENCE), rewards, beta=beta
    )


@pytest.mark.parametrize("beta", [0.0, 0.05, 2.0])
def test_gradient_of_the_objective(beta):
    """OBJ-01: sum_y grad pi(y) v(y) - beta grad KL, everywhere, not at pi* alone.

    On softmax logits grad pi(y) = pi(y) (onehot(y) - pi), and the gradient of
    KL(pi || ref) is pi (log(pi / ref) - KL).
    """
    logits = np.array([0.3, -0.2, 0.9, -1.1])
    pi = np.exp(logits) / np.exp(logits).sum()
    log_ratio = np.log(pi) - REFERENCE
    of_value = (pi * 10.0 * VERDICTS) @ (np.eye(4) - pi)
    of_kl = pi * (log_ratio - pi @ log_ratio)
    found = jax.grad(objective)(jnp.asarray(logits), beta)
    np.testing.assert_allclose(found, of_value - beta * of_kl, atol=1e-13)


@pytest.mark.parametrize("beta", [0.5, 5.0])
def test_optimum_is_the_tilted_reference(beta):
    """OBJ-01: Newton's method on the objective ends at ref exp(v/beta)/Z, to 1e-6."""
    optimum = regularised_optimum(
        jnp.asarray(REFERENCE), rewards_of(VERDICTS), beta=beta
    )
    chances = np.exp(REFERENCE + 10.0 * VERDICTS / beta)
    np.testing.assert_allclose(jnp.exp(optimum), chances / chances.sum(), rtol=1e-12)
    np.testing.assert_allclose(jax.grad(objective)(optimum, beta), 0, atol=1e-12)
    # Natural gradient steps: z += (v - beta log(pi / ref)) / beta, one is enough.
    step = jax.jit(
        lambda z: (
            z
            + rewards_of(VERDICTS) / beta
            - (jax.nn.log_softmax(z) - jnp.asarray(REFERENCE))
        )
    )
    found = jax.nn.log_softmax(step(jnp.array([1.0, 2.0, -1.0, 0.0])))
    np.testing.assert_allclose(jnp.exp(found), jnp.exp(optimum), atol=1e-6)
    # No policy near it is better.
    rng = np.random.default_rng(0)
    best = objective(optimum, beta)
    for _ in range(20):
        assert objective(optimum + 0.1 * rng.normal(size=4), beta) < best


def test_impossible_answers_stay_impossible():
    reference = jnp.array([-jnp.inf, np.log(0.5), np.log(0.5)])
    rewards = jnp.array([1.0, 0.0, 0.0])
    optimum = regularised_optimum(reference, rewards, beta=1e-3)
    np.testing.assert_array_equal(jnp.exp(optimum), [0.0, 0.5, 0.5])
    value, slope = jax.value_and_grad(regularised_value)(
        optimum, reference, rewards, beta=0.1
    )
    assert value == 0
    assert np.isfinite(slope).all()


def test_over_optimisation_as_beta_falls():
    """OBJ-06: a checker that sees one attribute of two, in closed form.

    Answers (checked, unchecked) = 00, 01, 10, 11 with reference .2, .5, .2, .1: among
    those that pass, the unseen quality is rarer (1/3) than overall (.6). As beta falls
    the verified reward and KL rise, KL = E v / beta - log Z, and the unseen falls.
    """
    reference = jnp.log(jnp.array([0.2, 0.5, 0.2, 0.1]))
    checked, unchecked = jnp.array([0.0, 0, 1, 1]), jnp.array([0.0, 1, 0, 1])
    betas = [np.inf, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1]
    figures = []
    for beta in betas:
        log_pi = regularised_optimum(reference, checked, beta=beta)
        pi = jnp.exp(log_pi)
        distance = pi @ (log_pi - reference)
        partition = jnp.exp(reference) @ jnp.exp(checked / beta)
        expected = pi @ checked / beta - jnp.log(partition)
        np.testing.assert_allclose(distance, expected, atol=1e-12)
        figures.append([distance, pi @ checked, pi @ unchecked])
    distance, verified, unseen = np.transpose(figures)
    assert (np.diff(distance) > 0).all()
    assert (np.diff(verified) > 0).all()
    assert (np.diff(unseen) < 0).all()
    np.testing.assert_allclose([unseen[0], unseen[-1]], [0.6, 1 / 3], atol=1e-3)


def test_bradley_terry_gradient_and_planted_scores():
    """OBJ-16: slope -sigmoid(-d); all pairs of five items, as often as they win.

    The expected loss over every ordered pair is least at the planted scores, up to
    their mean, which comparisons cannot tell.
    """
    d = np.array([-2.0, 0.0, 0.5, 3.0])
    slope = jax.grad(lambda x: bradley_terry_loss(x, jnp.zeros(4)).sum())(jnp.array(d))
    np.testing.assert_allclose(slope, -1 / (1 + np.exp(d)), rtol=1e-12)

    planted = np.array([1.0, -0.5, 0.2, 2.0, -1.2])
    first, second = np.nonzero(~np.eye(5, dtype=bool))
    wins = 1 / (1 + np.exp(planted[second] - planted[first]))

    def expected_loss(scores):
        return (wins * bradley_terry_loss(scores[first], scores[second])).sum()

    def step(scores, _):
        return scores - 0.3 * jax.grad(expected_loss)(scores), None

    found, _ = jax.lax.scan(step, jnp.zeros(5), length=500)
    np.testing.assert_allclose(
        found - found.mean(), planted - planted.mean(), atol=1e-8
    )


# Three answers: wrong and plain, wrong but long and sure of itself, right and plain.
RIGHT = np.array([0.0, 0, 1])
SURE = np.array([0.0, 1, 0])
POLICY = np.log([0.35, 0.45, 0.2])


def learned_scores():
    """A reward model fitted to raters who like .3 x right + 2 x sure."""
    features = jnp.asarray(np.stack([RIGHT, SURE], axis=1))
    first, second = np.nonzero(~np.eye(3, dtype=bool))
    taste = np.asarray(features @ jnp.array([0.3, 2.0]))
    wins = 1 / (1 + np.exp(taste[second] - taste[first]))

    def expected_loss(weights):
        scores = features @ weights
        return (wins * bradley_terry_loss(scores[first], scores[second])).sum()

    def step(weights, _):
        return weights - 0.5 * jax.grad(expected_loss)(weights), None

    weights, _ = jax.lax.scan(step, jnp.zeros(2), length=300)
    return features @ weights


def accuracy_after(multiplier, updates=25):
    """Exact gradient ascent on E[v + multiplier RM] - .05 KL from the reference."""
    rewards = rewards_of(RIGHT == 1, right=1.0)
    if multiplier:
        rewards = rewards + multiplier * learned_scores()

    def value(logits):
        return regularised_value(
            jax.nn.log_softmax(logits), jnp.asarray(POLICY), rewards, beta=0.05
        )

    def step(logits, _):
        return logits + jax.grad(value)(logits), None

    logits, _ = jax.lax.scan(step, jnp.asarray(POLICY), length=updates)
    return float(jax.nn.softmax(logits) @ RIGHT), logits


def test_a_reward_model_added_to_the_verdict_costs_accuracy():
    """OBJ-05: r = v + c RM, with an RM that learned a spurious feature.

    At equal steps accuracy falls with c; c = 0 is the verifiable reward itself, to the
    last bit.
    """
    found = [accuracy_after(c)[0] for c in (0.0, 0.5, 1.0)]
    assert found[0] > 0.9
    assert (np.diff(found) < -0.03).all()
    plain = accuracy_after(0)[1]
    np.testing.assert_array_equal(accuracy_after(0.0)[1], plain)
