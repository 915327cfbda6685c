"""Sampler against trainer: planted noise is recovered."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import mismatch
from rlvr_jax.core.logprobs import head_logits, logprobs_from_logits
from tests.core.batches import assert_transforms_agree, ragged

pytestmark = pytest.mark.usefixtures("x64")


def test_planted_noise_is_recovered():
    """DIAG-07: log-probs off by N(0, .1^2): KL ~ s^2/2, E|dp| = E p * s sqrt(2/pi).

    10,000 tokens: standard errors are near 1 % of both figures.
    """
    rng, s = np.random.default_rng(0), 0.1
    rollout = np.log(rng.uniform(0.1, 0.8, (100, 100)))
    train = rollout + rng.normal(0, s, rollout.shape)
    found = mismatch.sampler_mismatch(
        jnp.array(train), jnp.array(rollout), jnp.ones(rollout.shape)
    )
    np.testing.assert_allclose(found["kl_k3"], s**2 / 2, rtol=0.05)
    expected = np.exp(rollout).mean() * s * np.sqrt(2 / np.pi)
    np.testing.assert_allclose(found["probability_gap"], expected, rtol=0.05)
    assert 0.9 < found["correlation"] < 1.0


def test_figures_are_their_formulas():
    batch = ragged(seed=1)
    found = assert_transforms_agree(
        mismatch.sampler_mismatch, batch.policy, batch.rollout, batch.mask
    )
    train, rollout = batch.policy[batch.mask], batch.rollout[batch.mask]
    d, p, q = train - rollout, np.exp(train), np.exp(rollout)
    expected = {
        "kl": -d.mean(),
        "kl_k3": (np.exp(d) - 1 - d).mean(),
        "chi2": np.exp(2 * d).mean() - 1,
        "probability_gap": np.abs(p - q).mean(),
        "max_probability_gap": np.abs(p - q).max(),
        "correlation": np.corrcoef(p, q)[0, 1],
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-11)


def test_equal_engines_do_not_differ():
    """DIAG-07: the same log-probs: all zero, correlation 1."""
    batch = ragged()
    policy, mask = jnp.array(batch.policy), jnp.array(batch.mask)
    found = mismatch.sampler_mismatch(policy, policy, mask)
    np.testing.assert_allclose(found.pop("correlation"), 1.0)
    assert {float(value) for value in found.values()} == {0.0}


def test_padding_and_empty_batches_are_finite():
    batch = ragged()
    bad = np.where(batch.mask, batch.policy, np.nan)
    clean, dirty = (
        mismatch.sampler_mismatch(
            jnp.array(policy), jnp.array(batch.rollout), jnp.array(batch.mask)
        )
        for policy in (batch.policy, bad)
    )
    assert {k: float(v) for k, v in clean.items()} == {
        k: float(v) for k, v in dirty.items()
    }
    zeros = jnp.zeros((2, 3))
    empty = mismatch.sampler_mismatch(zeros, zeros, zeros)
    assert all(np.isfinite(float(value)) for value in empty.values())
    assert float(mismatch.effective_sample_size(zeros, zeros)) == 0.0
    assert float(mismatch.changed_share(zeros, zeros, zeros)) == 0.0
    ratios = mismatch.ratio_statistics(zeros, zeros)
    assert [float(ratios[k]) for k in ("mean", "std", "min", "max")] == [0, 0, 1, 1]


def test_effective_sample_size():
    """Kish: n equal weights: 1; one of n: 1/n; w = (3, 1): 16 / (2 * 10)."""
    ones = jnp.ones((2, 4))
    ess = lambda w, m: float(mismatch.effective_sample_size(jnp.array(w), m))
    assert ess(np.full((2, 4), 7.0), ones) == 1.0
    single = np.zeros((2, 4))
    single[0, 0] = 2.0
    np.testing.assert_allclose(ess(single, ones), 1 / 8)
    np.testing.assert_allclose(ess([[3.0, 1.0]], jnp.ones((1, 2))), 0.8)
    # Rows without tokens are no samples; squares that would overflow do not.
    np.testing.assert_allclose(
        ess([[3.0], [1.0], [99.0]], jnp.array([[1, 1], [1, 0], [0, 0]])), 0.8
    )
    np.testing.assert_allclose(ess([[3e200, 1e200]], jnp.ones((1, 2))), 0.8)


def test_changed_share():
    weights, raw = jnp.array([[1.0, 2.0, 0.0, 5.0]]), jnp.array([[1.0, 3.0, 4.0, 9.0]])
    share = mismatch.changed_share(weights, raw, jnp.array([[1, 1, 1, 0]]))
    np.testing.assert_allclose(share, 2 / 3)


def test_ratio_statistics_before_the_clip():
    batch = ragged(spread=0.5)
    log_ratio = batch.policy - batch.old
    found = assert_transforms_agree(mismatch.ratio_statistics, log_ratio, batch.mask)
    ratio = np.exp(log_ratio[batch.mask])
    expected = {
        "mean": ratio.mean(),
        "std": ratio.std(),
        "min": ratio.min(),
        "max": ratio.max(),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)


def test_log_ratio_histogram_is_that_of_numpy():
    """DIAG-07, against np.histogram with open ends."""
    batch = ragged(seed=4, spread=0.5)
    log_ratio = batch.policy - batch.rollout
    edges = np.array([-0.5, -0.1, 0.0, 0.1, 0.5])
    found = assert_transforms_agree(
        lambda d, m: mismatch.log_ratio_histogram(d, m, jnp.array(edges)),
        log_ratio,
        batch.mask,
    )
    open_ends = np.concatenate([[-np.inf], edges, [np.inf]])
    expected = np.histogram(log_ratio[batch.mask], open_ends)[0]
    np.testing.assert_array_equal(found, expected)


def test_planted_lag_is_recovered():
    """CLIP-29: noise of std s sqrt(k) on tokens k versions old: mean s sqrt(2 k / pi).

    20,000 tokens, a quarter per lag: standard errors are near 1 % of each figure.
    """
    rng, s = np.random.default_rng(0), 0.05
    lag = rng.integers(0, 4, (100, 200))
    mask = rng.random(lag.shape) < 0.9
    noise = rng.normal(size=lag.shape) * s * np.sqrt(lag)
    found = mismatch.log_ratio_by_lag(
        jnp.array(np.where(mask, noise, np.nan)),
        jnp.array(np.where(mask, lag, 99)),
        jnp.array(mask),
        max_lag=5,
    )
    counts = np.bincount(lag[mask], minlength=6)
    np.testing.assert_array_equal(found.denominator, counts)
    expected = s * np.sqrt(2 * np.arange(4) / np.pi)
    np.testing.assert_allclose(found.value()[:4], expected, rtol=0.04)
    np.testing.assert_array_equal(found.value()[4:], 0)


def test_lags_beyond_the_last_count_there():
    found = mismatch.log_ratio_by_lag(
        jnp.array([[1.0, 3.0]]), jnp.array([[2, 9]]), jnp.ones((1, 2)), max_lag=2
    )
    np.testing.assert_array_equal(found.value(), [0, 0, 2.0])


def test_float32_head_mends_the_mismatch():
    """CLIP-30: logits kept in bfloat16 by the sampler, against logits in float32.

    Hidden states and head are the same bfloat16 numbers; the trainer computes in
    float64. Correlation of probabilities and the largest gap both improve.
    """
    rng = np.random.default_rng(0)
    hidden = jnp.array(rng.normal(size=(64, 4, 128)), jnp.bfloat16)
    head = jnp.array(rng.normal(size=(500, 128)) * 0.3, jnp.bfloat16)
    wide = head_logits(hidden.astype(float), head.astype(float))
    # Sampled where it matters: the most likely token of every position.
    tokens = wide.argmax(-1)
    train = logprobs_from_logits(wide, tokens)
    mask = jnp.ones(tokens.shape)

    def against(logits):
        rollout = logprobs_from_logits(logits.astype(float), tokens)
        return mismatch.sampler_mismatch(train, rollout, mask)

    exact = head_logits(hidden, head)
    assert exact.dtype == jnp.float32
    short, full = against(exact.astype(jnp.bfloat16)), against(exact)
    assert short["correlation"] < 0.9999
    assert full["correlation"] > 1 - 1e-9
    assert short["max_probability_gap"] > 1e-2
    assert full["max_probability_gap"] < 1e-5
