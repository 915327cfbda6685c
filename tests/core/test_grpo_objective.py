"""The GRPO loss put together: advantages, ratio, clip, KL, aggregation."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.aggregation import aggregate, token_weights
from rlvr_jax.core.diagnostics import clip_fractions
from rlvr_jax.core.kl import kl_estimate
from rlvr_jax.core.losses import clipped_loss
from rlvr_jax.core.ratios import sequence_log_ratio, token_log_ratio
from rlvr_jax.core.shaping import overlong_filter, soft_overlong_penalty

VECTORS = pathlib.Path(__file__).parents[1] / "data" / "grpo_loss" / "vectors.npz"
MODES = {"seq": "sequence_mean", "token": "token_mean", "constant": "constant"}

pytestmark = pytest.mark.usefixtures("x64")


def grpo_loss(
    policy,
    old,
    reference,
    advantages,
    mask,
    group_id,
    *,
    mode="sequence_mean",
    beta=0.0,
    epsilon_high=0.2,
    constant_length=12,
    level=lambda log_ratio, mask: log_ratio,
):
    """What the trainer adds up, as one call."""
    log_ratio = level(token_log_ratio(policy, old, mask), mask)
    per_token = clipped_loss(
        log_ratio, advantages, epsilon_low=0.2, epsilon_high=epsilon_high
    )
    if beta:
        kl = kl_estimate(policy, reference, estimator="k3", token_mask=mask)
        per_token = per_token + beta * kl
    weights, denominator = token_weights(
        mask, group_id, loss_aggregation=mode, constant_length=constant_length
    )
    return aggregate(per_token, weights, denominator).value()


@pytest.fixture(scope="module")
def vectors():
    with np.load(VECTORS) as file:
        return dict(file)


CALLS = [
    f"{agg}|{beta}|{std}|{high}"
    for agg in MODES
    for beta in (0.0, 0.04)
    for std in (True, False)
    for high in (0.2, 0.28)
]


@pytest.mark.parametrize("call", CALLS)
def test_equals_the_textbook_function(vectors, call):
    """PG-36: three aggregations, with and without KL and std, loss and gradient."""
    agg, beta, std, high = call.split("|")
    group_id = jnp.arange(8) // 4
    advantages = group_advantages(
        jnp.array(vectors["rewards"]),
        group_id,
        scale="group" if std == "True" else "none",
    )
    loss, gradient = jax.value_and_grad(grpo_loss)(
        jnp.array(vectors["policy_logprobs"]),
        jnp.array(vectors["old_logprobs"]),
        jnp.array(vectors["reference_logprobs"]),
        advantages,
        jnp.array(vectors["token_mask"]),
        group_id,
        mode=MODES[agg],
        beta=float(beta),
        epsilon_high=float(high),
    )
    np.testing.assert_allclose(loss, vectors[f"loss|{call}"], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(gradient, vectors[f"gradient|{call}"], atol=1e-14)


LENGTHS = np.array([2, 6, 3, 5])
MASK = np.arange(6) < LENGTHS[:, None]
GROUP = np.zeros(4, int)


def on_policy(mode, mask=MASK):
    """Loss and gradient at pi = pi_old, one group, rewards 1, 0, 0, 1."""
    logprobs = jnp.array(-np.random.default_rng(0).exponential(1.0, mask.shape))
    advantages = group_advantages(jnp.array([1.0, 0, 0, 1]), jnp.array(GROUP))
    value, gradient = jax.value_and_grad(grpo_loss)(
        logprobs,
        logprobs,
        logprobs,
        advantages,
        jnp.array(mask),
        jnp.array(GROUP),
        mode=mode,
        beta=0.04,
    )
    return value, gradient, np.asarray(advantages)


def test_on_policy_value_is_zero_and_gradient_closed():
    """PG-06: value 0 for any lengths; gradient (1/G) sum_i A_i mean_t grad log pi.

    The KL term adds nothing at pi = pi_ref = pi_old. Of a loss, hence the minus.
    """
    value, gradient, advantages = on_policy("sequence_mean")
    np.testing.assert_allclose(value, 0, atol=1e-15)
    expected = -advantages[:, None] * MASK / LENGTHS[:, None] / 4
    np.testing.assert_allclose(gradient, expected, atol=1e-15)


def test_token_mean_is_zero_on_policy_for_equal_lengths_alone():
    """PG-06: -sum_i A_i len_i / sum_i len_i, here A = +-1 and lengths 2, 6, 3, 5."""
    value, _, _ = on_policy("token_mean")
    np.testing.assert_allclose(value, (6 + 3 - 2 - 5) / 16, atol=1e-5)
    value, _, _ = on_policy("token_mean", np.ones((4, 6), bool))
    np.testing.assert_allclose(value, 0, atol=1e-15)


@pytest.mark.parametrize(
    ("level", "ratio_of"),
    [
        (lambda d, m: d, lambda d: np.exp(d)),
        (
            sequence_log_ratio,
            lambda d: np.exp((d * MASK).sum(1, keepdims=True) / LENGTHS[:, None]),
        ),
    ],
    ids=["GRPO", "GSPO"],
)
def test_weight_of_a_token_off_policy(level, ratio_of):
    """AGG-18: GRPO r_it A_i / len_i, GSPO s_i A_i / len_i; times 1/G, unclipped."""
    rng = np.random.default_rng(1)
    old = -rng.exponential(1.0, MASK.shape)
    shift = rng.uniform(-0.1, 0.1, MASK.shape)
    advantages = np.array([1.0, -1.0, 0.5, -0.5])
    gradient = jax.grad(grpo_loss)(
        jnp.array(old + shift),
        jnp.array(old),
        jnp.array(old),
        jnp.array(advantages),
        jnp.array(MASK),
        jnp.array(GROUP),
        level=level,
    )
    expected = -ratio_of(shift) * advantages[:, None] / LENGTHS[:, None] / 4 * MASK
    np.testing.assert_allclose(gradient, expected, atol=1e-14)


def test_clip_fraction_is_zero_at_the_first_update_and_grows():
    """CLIP-08: sixteen updates on one batch of a softmax over eight answers."""
    logits = jnp.array(np.random.default_rng(0).normal(size=8))
    answers = jnp.arange(8)
    mask, group_id = jnp.ones((8, 1)), jnp.zeros(8, int)
    advantages = group_advantages(jnp.array([1.0, 0, 0, 1, 0, 0, 0, 0]), group_id)
    logprobs = lambda logits: jax.nn.log_softmax(logits)[answers][:, None]
    old = logprobs(logits)

    @jax.jit
    def update(logits):
        clipped = clip_fractions(
            token_log_ratio(logprobs(logits), old, mask),
            advantages,
            mask,
            epsilon_low=0.2,
            epsilon_high=0.2,
        )
        gradient = jax.grad(
            lambda x: grpo_loss(logprobs(x), old, old, advantages, mask, group_id)
        )(logits)
        return logits - 0.2 * gradient, sum(part.value() for part in clipped)

    shares = []
    for _ in range(16):
        logits, share = update(logits)
        shares.append(float(share))
    assert shares[0] == 0.0
    assert (np.diff(shares) >= 0).all()
    # The two right answers of eight have passed the upper bound.
    assert shares[-1] == 0.25


def test_truncation_is_a_reward():
    """AGG-17: a right prefix, cut at the limit, scores 0 beside two right answers.

    Rewards 1, 1, 0: A = +.7071 for those that ended, -1.4142 for the one that was cut.
    Filtered, its tokens have no gradient. With the soft penalty instead (limit 8,
    buffer 4), lengths 2, 6, 8 give 0, -.5, -1: the penalty is graded.
    """
    lengths, ended = jnp.array([2, 6, 8]), jnp.array([True, True, False])
    mask, group_id = jnp.arange(8) < lengths[:, None], jnp.zeros(3, int)
    rewards = jnp.array([1.0, 1.0, 0.0])
    advantages = group_advantages(rewards, group_id)
    np.testing.assert_allclose(advantages, [0.7071, 0.7071, -1.4142], atol=1e-4)
    logprobs = jnp.full((3, 8), -0.5)

    def gradient(mask):
        return jax.grad(grpo_loss)(
            logprobs, logprobs, logprobs, advantages, mask, group_id
        )

    # A loss: a positive gradient lowers the log-probs of the cut, right tokens.
    assert (gradient(mask)[2] > 0).all()
    filtered = gradient(overlong_filter(mask, ended))
    np.testing.assert_array_equal(filtered[2], 0)
    assert (filtered[0, :2] < 0).all()
    graded = rewards + soft_overlong_penalty(
        lengths, max_completion_tokens=8, buffer_tokens=4
    )
    np.testing.assert_allclose(graded, [1.0, 0.5, -1.0])
    expected = (np.array([1, 0.5, -1]) - 1 / 6) / np.std([1, 0.5, -1])
    np.testing.assert_allclose(group_advantages(graded, group_id), expected, atol=1e-5)
