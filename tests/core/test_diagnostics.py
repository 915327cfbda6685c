"""Diagnostics on planted batches: every figure is known before it is measured."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import diagnostics, kl
from rlvr_jax.core.ratios import sequence_log_ratio
from tests.core.batches import assert_transforms_agree, ragged

pytestmark = pytest.mark.usefixtures("x64")

BOUNDS = {"epsilon_low": 0.2, "epsilon_high": 0.28}


def clipped_batch():
    """Six tokens of known ratio, sign and probability; the last one is padding."""
    ratio = jnp.array([[0.5, 1.5, 1.5, 1.0, 0.5, 1.5]])
    advantages = jnp.array([[-1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    old = jnp.array([[0.9, 0.05, 0.15, 0.95, 0.4, 0.05]])
    mask = jnp.array([[1, 1, 1, 1, 1, 0]])
    return jnp.log(ratio), advantages, jnp.log(old), mask


def test_clip_fractions_up_and_down():
    """DIAG-03: one of five clipped below, two above."""
    log_ratio, advantages, _, mask = clipped_batch()
    low, high = diagnostics.clip_fractions(log_ratio, advantages, mask, **BOUNDS)
    np.testing.assert_allclose([low.value(), high.value()], [1 / 5, 2 / 5])


def test_clips_by_probability():
    """CLIP-36, DIAG-03: bins of .1; both up-clips are below .2, the down-clip at .9."""
    log_ratio, advantages, old, mask = clipped_batch()
    rates = diagnostics.clips_by_probability(log_ratio, advantages, old, mask, **BOUNDS)
    np.testing.assert_array_equal(rates.tokens, [1, 1, 0, 0, 1, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(rates.high, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(rates.low, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1])


def test_clip_counts_add_up_over_rows():
    """CLIP-36: what micro-batches count separately is what the batch counts."""
    batch = ragged(seed=2, spread=0.6)
    log_ratio = jnp.array(batch.policy - batch.old)
    count = lambda rows: diagnostics.clips_by_probability(
        log_ratio[rows],
        jnp.array(batch.advantages)[rows],
        jnp.array(batch.old)[rows],
        jnp.array(batch.mask)[rows],
        **BOUNDS,
    )
    whole, halves = count(slice(None)), (count(slice(0, 3)), count(slice(3, 6)))
    for name in whole._fields:
        parts = sum(getattr(half, name) for half in halves)
        np.testing.assert_array_equal(parts, getattr(whole, name))
    assert int(whole.tokens.sum()) == batch.mask.sum()
    assert int(whole.low.sum()) > 0
    assert int(whole.high.sum()) > 0


def test_mean_probability_of_up_clipped_tokens():
    """CLIP-04: pi = 1.5 * (.05, .15) = (.075, .225) at the up-clips: mean .15 < .2."""
    log_ratio, advantages, old, mask = clipped_batch()
    mean = diagnostics.up_clipped_probability(
        old + log_ratio, log_ratio, advantages, mask, epsilon_high=0.28
    )
    np.testing.assert_allclose(mean.value(), 0.15, rtol=1e-12)
    none = diagnostics.up_clipped_probability(
        old, jnp.zeros_like(old), advantages, mask, epsilon_high=0.28
    )
    assert float(none.value()) == 0.0


def test_zero_advantage_groups():
    """DIAG-01: groups 0 and 3 teach nothing, 4 and 5 do; 1 and 2 are absent."""
    advantages = jnp.array([0.0, 0.0, 1.0, -1.0, 0.0, 0.0, 2.0])
    group_id = jnp.array([0, 0, 4, 4, 3, 3, 5])
    share = diagnostics.zero_advantage_share(advantages, group_id)
    np.testing.assert_allclose(share.value(), 2 / 4)
    np.testing.assert_allclose([share.numerator, share.denominator], [2, 4])


def test_entropy_by_outcome_and_position():
    """DIAG-05: planted entropies: 2 on correct rows, 3 + t on wrong ones."""
    mask = jnp.array([[1, 1, 1], [1, 1, 0]])
    entropy = jnp.array([[2.0, 2.0, 2.0], [3.0, 4.0, jnp.nan]])
    right, wrong = diagnostics.mean_by_outcome(entropy, mask, jnp.array([True, False]))
    np.testing.assert_allclose([right.value(), wrong.value()], [2.0, 3.5])
    sums, counts = diagnostics.mean_by_position(entropy, mask)
    np.testing.assert_allclose(sums / counts, [2.5, 3.0, 2.0])


def test_kl_to_the_reference_is_the_mean_of_k3():
    """DIAG-09: against a loop over the tokens of the loss."""
    batch = ragged()
    estimate = kl.kl_estimate(jnp.array(batch.policy), jnp.array(batch.reference))
    found = diagnostics.masked_mean(estimate, jnp.array(batch.mask)).value()
    gaps = (batch.reference - batch.policy)[batch.mask]
    expected = np.mean([np.exp(d) - d - 1 for d in gaps])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_masked_mean_reads_no_padding(bad):
    batch = ragged()
    dirty = np.where(batch.mask, batch.policy, bad)
    mean = assert_transforms_agree(
        lambda x, m: diagnostics.masked_mean(x, m).value(), dirty, batch.mask
    )
    np.testing.assert_allclose(mean, batch.policy[batch.mask].mean(), rtol=1e-12)
    per_row = diagnostics.masked_mean(
        jnp.array([[1.0], [4.0]]), jnp.array([[1, 1, 1], [1, 0, 0]])
    )
    np.testing.assert_allclose(per_row.value(), (3 * 1 + 4) / 4)


def test_an_empty_batch_has_finite_diagnostics():
    zeros = jnp.zeros((2, 3))
    low, high = diagnostics.clip_fractions(zeros, jnp.ones(2), zeros, **BOUNDS)
    right, wrong = diagnostics.mean_by_outcome(zeros, zeros, jnp.zeros(2, bool))
    for ratio in (low, high, right, wrong, diagnostics.masked_mean(zeros, zeros)):
        assert float(ratio.value()) == 0.0


def test_rare_reflective_tokens_are_clipped_at_the_first_off_policy_update():
    """CLIP-19: one gradient step of size .5 at each position, then a report by token.

    Every position has the softmax .6, .37, .01, .02, and its logits move by .5 A
    (onehot - p). "so" (id 0, .6) after a right answer: e^.2 / 1.070 = 1.14, inside.
    "Wait" (id 2, .01): e^.495 / .788 = 2.08, "Recheck" (id 3, .02) likewise: stopped at
    1.28 and dropped. "but" (id 1) of the wrong answer: e^-.315 / 1.11 = .66, below .8.
    """
    probabilities = jnp.array([0.6, 0.37, 0.01, 0.02])
    advantages = jnp.array([1.0, -1.0, 1.0])
    tokens = jnp.array([[0, 2, 0, 3], [1, 1, 0, 1], [0, 0, 2, 2]])
    mask = jnp.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]])
    push = jax.nn.one_hot(tokens, 4) - probabilities
    logits = jnp.log(probabilities) + 0.5 * advantages[:, None, None] * push
    moved = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], axis=-1)
    log_ratio = moved[..., 0] - jnp.log(probabilities)[tokens]
    watched = jnp.array([2, 3, 0, 1])
    rates = diagnostics.clips_of_tokens(
        log_ratio, advantages, tokens, mask, watched, **BOUNDS
    )
    np.testing.assert_array_equal(rates.tokens, [2, 1, 5, 3])
    np.testing.assert_array_equal(rates.high, [2, 1, 0, 0])
    np.testing.assert_array_equal(rates.low, [0, 0, 0, 3])
    on_policy = diagnostics.clips_of_tokens(
        jnp.zeros((3, 4)), advantages, tokens, mask, watched, **BOUNDS
    )
    np.testing.assert_array_equal(on_policy.high + on_policy.low, 0)


def test_gspo_clips_two_orders_of_magnitude_more_tokens():
    """CLIP-10: ~15% of tokens against ~.13%, from the same simulated log-ratios.

    Independent noise of std s on every token; half the rows have A > 0. GRPO (.2/.27):
    share (Q(log 1.27 / s) + Q(-log .8 / s)) / 2, which is .13% at s = .0763. GSPO
    (3e-4/4e-4): the mean of T tokens has std s / sqrt(T): 15% at T = 52,000. 240 rows:
    the standard error of the second share is 2.3%.
    """
    rng, s, tokens = np.random.default_rng(0), 0.0763, 52_000
    tail = lambda x: 0.5 * math.erfc(x / math.sqrt(2))
    expected = (tail(math.log(1.27) / s) + tail(-math.log(0.8) / s)) / 2
    np.testing.assert_allclose(expected, 0.0013, rtol=0.02)
    spread = s / math.sqrt(tokens)
    wanted = (tail(4e-4 / spread) + tail(3e-4 / spread)) / 2
    np.testing.assert_allclose(wanted, 0.15, atol=0.005)
    mask = jnp.ones((24, tokens), bool)

    @jax.jit
    def clipped(log_ratio, advantages):
        """Share of tokens under GRPO's clip, and under GSPO's."""
        rows = sequence_log_ratio(log_ratio, mask)
        sides = [
            diagnostics.clip_fractions(
                d, advantages, mask, epsilon_low=low, epsilon_high=high
            )
            for d, low, high in ((log_ratio, 0.2, 0.27), (rows, 3e-4, 4e-4))
        ]
        return jnp.array([sum(side.value() for side in both) for both in sides])

    shares = [
        clipped(rng.normal(0, s, mask.shape), rng.choice([-1.0, 1.0], 24))
        for _ in range(10)
    ]
    token_share, row_share = np.mean(shares, axis=0)
    np.testing.assert_allclose(token_share, expected, rtol=0.03)
    np.testing.assert_allclose(row_share, wanted, atol=3 * 0.023)
    assert 50 < row_share / token_share < 200
