"""What an aggregation does to the length of answers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.aggregation import (
    AGGREGATIONS,
    aggregate,
    length_bias,
    token_weights,
)
from rlvr_jax.core.losses import reinforce_loss

pytestmark = pytest.mark.usefixtures("x64")

BIASED = {"sequence_mean": 4.0}


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_only_the_sequence_mean_is_biased_by_length(mode):
    """AGG-15: of our six, tokens of 2 against tokens of 8."""

    def loss(per_token, mask):
        weights, denominator = token_weights(
            mask, jnp.zeros(2, int), loss_aggregation=mode, constant_length=8
        )
        return aggregate(per_token, weights, denominator).value()

    np.testing.assert_allclose(length_bias(loss), BIASED.get(mode, 1.0), rtol=1e-12)


def test_a_masked_mean_per_row_is_found_out():
    """AGG-15: as in several open PPO code bases: a mean over tokens, then over rows."""

    def per_response(per_token, mask):
        return ((per_token * mask).sum(-1) / mask.sum(-1)).mean()

    def over_all(per_token, mask):
        return (per_token * mask).sum() / mask.sum()

    np.testing.assert_allclose(length_bias(per_response, short=200, long=1400), 7.0)
    np.testing.assert_allclose(length_bias(over_all, short=200, long=1400), 1.0)


def weights_of(lengths, mode, constant_length=64):
    mask = jnp.arange(64) < jnp.asarray(lengths)[:, None]
    weights, denominator = token_weights(
        mask,
        jnp.zeros(len(lengths), int),
        loss_aggregation=mode,
        constant_length=constant_length,
    )
    return np.asarray(weights / denominator)


def test_price_of_the_fixes():
    """AGG-20: token mean: the scale of a token depends on the batch; constant: not.

    In exchange the constant's whole step grows with the length of the answers.
    """
    rng = np.random.default_rng(0)
    batches = rng.integers(8, 65, size=(50, 16))

    def scale(mode):
        return np.array([weights_of(lengths, mode).max() for lengths in batches])

    assert np.var(scale("constant")) == 0
    token_mean = scale("token_mean")
    np.testing.assert_allclose(token_mean, 1 / batches.sum(1), rtol=1e-12)
    assert token_mean.std() / token_mean.mean() > 0.05
    # Twice as long: the batch's whole weight.
    for mode, factor in (("constant", 2.0), ("token_mean", 1.0)):
        short, long = (weights_of([n] * 4, mode).sum() for n in (16, 32))
        np.testing.assert_allclose(long / short, factor, rtol=1e-12)


def test_step_of_the_constant_doubles_with_the_lengths():
    """AGG-10: answers repeat one token theta; twice the length, twice the gradient."""

    def norm(length):
        mask = jnp.ones((2, length))
        weights, denominator = token_weights(
            mask, jnp.zeros(2, int), loss_aggregation="constant", constant_length=64
        )

        def loss(theta):
            logprobs = jax.nn.log_sigmoid(jnp.array([[theta[0]], [theta[1]]])) * mask
            per_token = reinforce_loss(logprobs, jnp.array([1.0, -1.0]))
            return aggregate(per_token, weights, denominator).value()

        return jnp.linalg.norm(jax.grad(loss)(jnp.array([0.3, -0.2])))

    np.testing.assert_allclose(norm(32) / norm(16), 2.0, rtol=1e-12)


# A policy with a length knob: the first token is right or wrong, then it may stop after
# each token, up to four; whether it does is a logit of its own for right and for wrong
# answers. theta = (right, go on if right, go on if wrong). Length earns nothing.
LONGEST = 4
ANSWERS = list(itertools.product((True, False), range(1, LONGEST + 1)))
RIGHT = np.array([right for right, _ in ANSWERS], float)
LENGTHS = np.array([length for _, length in ANSWERS])
MASK = np.arange(LONGEST) < LENGTHS[:, None]


def logprobs(theta):
    """log pi of each token of the eight answers, [8, 4]."""
    first = jnp.where(
        RIGHT == 1, jax.nn.log_sigmoid(theta[0]), jax.nn.log_sigmoid(-theta[0])
    )
    knob = jnp.where(RIGHT == 1, theta[1], theta[2])[:, None]
    place = np.arange(1, LONGEST + 1)
    going = jnp.where(place < LENGTHS[:, None], jax.nn.log_sigmoid(knob), 0.0)
    stops = (place == LENGTHS[:, None]) & (place < LONGEST)
    stopping = jnp.where(stops, jax.nn.log_sigmoid(-knob), 0.0)
    return (going + stopping).at[:, 0].add(first)


def describe(theta):
    """Accuracy, and the mean length of right and of wrong answers."""
    chances = jnp.exp(logprobs(theta).sum(1))
    accuracy = chances @ RIGHT
    right = (chances * RIGHT) @ LENGTHS / accuracy
    wrong = (chances * (1 - RIGHT)) @ LENGTHS / (1 - accuracy)
    return jnp.stack([accuracy, right, wrong])


def train(mode, scale, step, updates=150):
    """Exact expected updates, over all 8^3 groups of three answers."""
    groups = np.array(list(itertools.product(range(len(ANSWERS)), repeat=3)))
    zeros = jnp.zeros(3, int)

    def group_loss(theta, group):
        weights, denominator = token_weights(
            jnp.asarray(MASK)[group],
            zeros,
            loss_aggregation=mode,
            constant_length=LONGEST,
        )
        advantages = group_advantages(jnp.asarray(RIGHT)[group], zeros, scale=scale)
        per_token = reinforce_loss(logprobs(theta)[group], advantages)
        return aggregate(per_token, weights, denominator).value()

    def update(theta, _):
        chances = jnp.exp(logprobs(theta).sum(1))[groups].prod(1)
        gradients = jax.vmap(jax.grad(group_loss), (None, 0))(theta, groups)
        return theta - step * chances @ gradients, describe(theta)

    theta = jnp.array([-0.5, 0.0, 0.0])
    return np.asarray(jax.lax.scan(jax.jit(update), theta, length=updates)[1])


def test_wrong_answers_grow_under_the_sequence_mean_alone():
    """AGG-11, BEH-04: at equal accuracy, wrong length drifts up; not so in Dr. GRPO.

    GRPO (sequence mean, std) against Dr. GRPO (constant, no std); the steps are chosen
    so that both pass 80% accuracy. A reward that ignores length has no gradient on the
    length knobs, and the unbiased loss follows it to rounding.
    """
    grpo = train("sequence_mean", "group", step=0.5)
    dr_grpo = train("constant", "none", step=2.0)
    at = [int(np.argmax(curve[:, 0] > 0.8)) for curve in (grpo, dr_grpo)]
    assert min(at) > 0
    (_, right, wrong), (_, right_dr, wrong_dr) = grpo[at[0]], dr_grpo[at[1]]
    start = grpo[0]
    assert wrong > start[2] + 0.3
    assert right < start[1] - 0.1
    np.testing.assert_allclose([right_dr, wrong_dr], start[1:], atol=1e-9)
