"""Token weights: by hand, at padding, over micro-batches, and what they do to length.

The quizzes are about one wrong answer, A = -1, whose loss per token is -A r = 1: its
weight per token is the pull on each token, the sum of its weights the total pull.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import aggregation

MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]])
GROUP = np.array([0, 0, 1, 1])
# Row lengths 2, 4, 0, 2; group token counts 6 and 2.
WEIGHT_OF_ROW = {
    "sequence_mean": ([1 / 2, 1 / 4, 0, 1 / 2], 3),
    "token_mean": ([1, 1, 0, 1], 8),
    "constant": ([1, 1, 0, 1], 4 * 10),
    "prompt_mean": ([1 / 6, 1 / 6, 0, 1 / 2], 2),
    "sequence_sum": ([1, 1, 0, 1], 3),
    "token_sum": ([1, 1, 0, 1], 1),
}


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_weights_by_hand(mode):
    """AGG-01, AGG-02, AGG-03, AGG-04: each weight and denominator as published."""
    weights, denominator = aggregation.token_weights(
        jnp.array(MASK), jnp.array(GROUP), loss_aggregation=mode, constant_length=10
    )
    rows, count = WEIGHT_OF_ROW[mode]
    np.testing.assert_allclose(weights, MASK * np.array(rows)[:, None], rtol=1e-6)
    assert float(denominator) == count


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_nan_at_padding_touches_neither_value_nor_gradient(mode):
    weights, denominator = aggregation.token_weights(
        jnp.array(MASK), jnp.array(GROUP), loss_aggregation=mode, constant_length=10
    )
    clean = np.where(MASK, np.arange(16.0).reshape(4, 4), 0.0)
    dirty = np.where(MASK, clean, np.nan)

    def loss(x):
        return aggregation.aggregate(x, weights, denominator).value()

    np.testing.assert_allclose(loss(jnp.array(dirty)), loss(jnp.array(clean)))
    gradient = jax.jit(jax.grad(loss))(jnp.array(dirty))
    np.testing.assert_allclose(gradient, weights / denominator, rtol=1e-6)


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_fully_masked_batch_is_zero(mode):
    weights, denominator = aggregation.token_weights(
        jnp.zeros((2, 3)), jnp.array([0, 1]), loss_aggregation=mode, constant_length=10
    )
    value, gradient = jax.value_and_grad(
        lambda x: aggregation.aggregate(x, weights, denominator).value()
    )(jnp.full((2, 3), jnp.nan))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


@pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
def test_micro_batches_add_up(mode):
    per_token = jnp.array(np.random.default_rng(0).normal(size=(4, 4)))
    weights, denominator = aggregation.token_weights(
        jnp.array(MASK), jnp.array(GROUP), loss_aggregation=mode, constant_length=10
    )
    whole = aggregation.aggregate(per_token, weights, denominator).value()
    parts = [
        aggregation.aggregate(per_token[i : i + 1], weights[i : i + 1], denominator)
        for i in range(4)
    ]
    np.testing.assert_allclose(
        sum(part.numerator for part in parts) / denominator, whole, rtol=1e-6
    )


def test_errors_name_the_setting():
    mask, group = jnp.ones((1, 2)), jnp.array([0])
    with pytest.raises(ValueError, match=r"objective\.loss_aggregation"):
        aggregation.token_weights(mask, group, loss_aggregation="mean")
    with pytest.raises(ValueError, match="max_completion_tokens"):
        aggregation.token_weights(mask, group, loss_aggregation="constant")


def pull(lengths, mode, *, group_id=None, constant_length=4000):
    """Weight per token and total weight of each row, over the batch's denominator."""
    lengths = np.asarray(lengths)
    mask = np.arange(max(lengths)) < lengths[:, None]
    group_id = np.zeros(len(lengths), int) if group_id is None else group_id
    weights, denominator = aggregation.token_weights(
        jnp.array(mask),
        jnp.array(group_id),
        loss_aggregation=mode,
        constant_length=constant_length,
    )
    weights = np.asarray(weights, np.float64) / float(denominator)
    return weights.max(axis=1), weights.sum(axis=1)


def test_sequence_mean_pushes_each_token_of_a_long_answer_less():
    """AGG-05: w_it = A_i / (G len_i): per token 1/len, in total the same."""
    per_token, total = pull([100, 200, 400, 800], "sequence_mean")
    expected = 1 / (4 * np.array([100, 200, 400, 800]))
    np.testing.assert_allclose(per_token, expected, rtol=1e-6)
    np.testing.assert_allclose(total, 0.25, rtol=1e-5)
    # Other modes push every token of the batch alike.
    for mode in ("token_mean", "constant", "prompt_mean"):
        per_token, _ = pull([100, 200, 400, 800], mode)
        np.testing.assert_allclose(per_token, per_token[0])


def test_quiz_wrong_answer_from_500_to_2000_tokens():
    """AGG-06: sequence mean: each token 4x less, total unchanged; token mean: 4x."""
    short, long = (pull([n, 100], "sequence_mean") for n in (500, 2000))
    np.testing.assert_allclose(short[0][0] / long[0][0], 4.0, rtol=1e-6)
    np.testing.assert_allclose(short[1][0], long[1][0], rtol=1e-5)
    # The denominator held: the total before the division.
    weights = lambda n: aggregation.token_weights(
        jnp.ones((1, n)), jnp.array([0]), loss_aggregation="token_mean"
    )[0].sum()
    assert float(weights(2000) / weights(500)) == 4.0
    # A constant holds it by itself.
    short, long = (pull([n, 100], "constant") for n in (500, 2000))
    np.testing.assert_allclose(long[1][0] / short[1][0], 4.0, rtol=1e-6)


def test_200_against_1400_tokens_is_seven_times_harder_per_token():
    """AGG-07: exact 7.0 under the sequence mean."""
    per_token, _ = pull([200, 1400], "sequence_mean")
    np.testing.assert_allclose(per_token[0] / per_token[1], 7.0, rtol=1e-6)


def test_four_responses_with_one_dragged_in_length():
    """AGG-08: two right, two wrong; the area of one wrong answer as it grows.

    Constant 1/4 under the sequence mean, n / (300 + n) saturating under the token
    mean, n / (4 C) linear under the constant.
    """
    for n in (100, 400, 1600):
        lengths = [100, 100, 100, n]
        for mode, area in (
            ("sequence_mean", 1 / 4),
            ("token_mean", n / (300 + n)),
            ("constant", n / (4 * 4000)),
        ):
            _, total = pull(lengths, mode)
            np.testing.assert_allclose(total[3], area, rtol=1e-5)


MEANS = ("token_mean", "prompt_mean")


def test_prompt_mean_equals_token_mean_where_prompts_have_equal_tokens():
    """AGG-04, and each prompt weighs the same where they have not."""
    group_id = np.array([0, 0, 1, 1])
    even = [pull([30, 50, 60, 20], m, group_id=group_id)[0] for m in MEANS]
    np.testing.assert_allclose(even[0], even[1], rtol=1e-6)
    _, uneven = pull([30, 50, 600, 200], "prompt_mean", group_id=group_id)
    np.testing.assert_allclose(uneven[:2].sum(), 0.5, rtol=1e-5)
    np.testing.assert_allclose(uneven[2:].sum(), 0.5, rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_only_the_constant_normaliser_is_unbiased():
    """AGG-09, AGG-10: two answers of lengths 1 and 3, of which the long one is right.

    Exact expectation over groups of two: the gradient of the loss (advantage = reward -
    group mean, no std) is parallel to -grad E[reward] only under the constant. With two
    parameters, theta = logits of (length, one more coin in the long answer), parallel
    means equal in both.
    """
    theta = jnp.array([0.3, -0.4])
    # Answers: short (wrong), long with coin 0 (right), long with coin 1 (wrong).
    lengths = np.array([1, 3, 3])
    rewards = np.array([0.0, 1.0, 0.0])
    mask = np.arange(3) < lengths[:, None]

    def logprobs(theta):
        long, coin = jax.nn.log_sigmoid(theta)
        short, other = jax.nn.log_sigmoid(-theta)
        zero = 0.0 * long
        rows = [[short, zero, zero], [long, coin, zero], [long, other, zero]]
        return jnp.array(rows)

    probabilities = np.exp(logprobs(theta).sum(-1))

    def bias(mode):
        def loss(theta):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    pair = np.array([i, j])
                    reward = rewards[pair]
                    weights, denominator = aggregation.token_weights(
                        jnp.array(mask[pair]),
                        jnp.array([0, 0]),
                        loss_aggregation=mode,
                        constant_length=3,
                    )
                    per_token = (
                        -jnp.array(reward - reward.mean())[:, None]
                        * logprobs(theta)[pair]
                    )
                    ratio = aggregation.aggregate(per_token, weights, denominator)
                    total += probabilities[i] * probabilities[j] * ratio.value()
            return total

        exact = jax.grad(
            lambda theta: -(jnp.exp(logprobs(theta).sum(-1)) * rewards).sum()
        )(theta)
        scale = jax.grad(loss)(theta) / exact
        return abs(float(scale[0] / scale[1]) - 1.0)

    assert bias("constant") < 1e-12
    assert bias("sequence_mean") > 0.1
    assert bias("token_mean") > 0.1
