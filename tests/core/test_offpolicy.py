"""Weights and masks for samples of another policy: formulas, unbiasedness, bounds."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import offpolicy
from tests.core.batches import assert_transforms_agree, ragged

pytestmark = pytest.mark.usefixtures("x64")


def sample():
    batch = ragged(seed=5, spread=0.4)
    return batch.policy - batch.rollout, batch.mask


def raw_weights(log_ratio, mask, level):
    """Loop over rows and tokens, as the docstring says."""
    rows, tokens = mask.shape
    weights = np.zeros((rows, tokens if level == "token" else 1))
    for i in range(rows):
        logs = [log_ratio[i, t] for t in range(tokens) if mask[i, t]]
        if level == "token":
            weights[i] = [np.exp(log_ratio[i, t]) * mask[i, t] for t in range(tokens)]
        elif level == "sequence":
            weights[i] = np.exp(sum(logs))
        else:
            weights[i] = np.exp(sum(logs) / max(len(logs), 1))
    return weights


@pytest.mark.parametrize("outside", ["clamp", "zero"])
@pytest.mark.parametrize("level", offpolicy.WEIGHT_LEVELS)
def test_weights_are_their_formula(level, outside):
    """CLIP-31: token and sequence TIS ("clamp"), masked IS and IcePop ("zero")."""
    log_ratio, mask = sample()
    found = assert_transforms_agree(
        lambda d, m: offpolicy.importance_weights(
            d, m, level=level, lower=0.7, upper=1.3, outside=outside
        ),
        log_ratio,
        mask,
    )
    raw = raw_weights(log_ratio, mask, level)
    if outside == "clamp":
        expected = np.clip(raw, 0.7, 1.3)
    else:
        expected = np.where((raw >= 0.7) & (raw <= 1.3), raw, 0.0)
    if level == "token":
        expected = expected * mask
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (raw[mask] > 1.3).any() if level == "token" else (raw > 1.3).any()


def test_truncation_trades_bias_for_bounds():
    """CLIP-31: C = inf is unbiased, E_mu[w f] = E_pi[f]; w <= C, bias grows as C falls.

    Enumeration over a policy of five actions; samples of mu weigh mu(a).
    """
    pi = jax.nn.log_softmax(jnp.array([2.0, 0.0, -1.0, 0.5, 0.1]))
    mu = jax.nn.log_softmax(jnp.array([0.0, 0.5, 0.0, -1.0, 1.0]))
    f = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    exact = (np.exp(pi) * f).sum()

    def estimate(upper):
        weights = offpolicy.importance_weights(
            (pi - mu)[:, None], jnp.ones((5, 1)), upper=upper
        )[:, 0]
        return (np.exp(mu) * weights * f).sum(), np.asarray(weights)

    np.testing.assert_allclose(estimate(math.inf)[0], exact, rtol=1e-12)
    errors = [abs(estimate(c)[0] - exact) for c in (4.0, 2.0, 1.0)]
    assert 0 < errors[0] < errors[1] < errors[2]
    assert estimate(1.0)[1].max() == 1.0


def test_sequence_weights_are_unbiased_over_whole_completions():
    """CLIP-31: the product of ratios, over all 9 completions of two tokens."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 2, 3))
    (pi1, pi2), (mu1, mu2) = jax.nn.log_softmax(jnp.array(logits), axis=-1)
    pairs = [(a, b) for a in range(3) for b in range(3)]
    pi = jnp.array([[pi1[a], pi2[b]] for a, b in pairs])
    mu = jnp.array([[mu1[a], mu2[b]] for a, b in pairs])
    weights = offpolicy.importance_weights(pi - mu, jnp.ones((9, 2)), level="sequence")
    f = rng.normal(size=9)
    found = (np.exp(mu.sum(-1)) * weights[:, 0] * f).sum()
    np.testing.assert_allclose(found, (np.exp(pi.sum(-1)) * f).sum(), rtol=1e-12)


@pytest.mark.parametrize("level", offpolicy.REJECTION_LEVELS)
@pytest.mark.parametrize("statistic", offpolicy.REJECTION_STATISTICS)
def test_rejection_is_its_statistic(statistic, level):
    log_ratio, mask = sample()
    value = {
        "ratio": lambda d: d,
        "k2": lambda d: d**2 / 2,
        "k3": lambda d: math.exp(d) - 1 - d,
    }[statistic]
    combine = {
        "sequence_sum": sum,
        "sequence_mean": lambda x: sum(x) / len(x),
        "sequence_max": max,
    }
    statistics = np.full(mask.shape, np.nan)
    for i, kept in enumerate(mask):
        values = [value(log_ratio[i, t]) for t in range(7) if kept[t]]
        if level == "token":
            statistics[i, kept] = values
        elif values:
            statistics[i, kept] = combine[level](values)
    if statistic == "ratio":
        statistics = np.exp(statistics)
    low, high = np.nanquantile(statistics, [0.3, 0.8])
    found = assert_transforms_agree(
        lambda d, m: offpolicy.rejection_mask(
            d, m, statistic=statistic, level=level, lower=low, upper=high
        ),
        log_ratio,
        mask,
    )
    inside = (statistics >= low) & (statistics <= high)
    edge = np.isclose(statistics, low) | np.isclose(statistics, high)
    np.testing.assert_array_equal(np.asarray(found)[mask & ~edge], inside[mask & ~edge])
    assert not np.asarray(found)[~mask].any()
    assert 0 < np.asarray(found)[mask].mean() < 1


def test_mispo_rejects_a_drifted_row_and_keeps_a_noisy_one():
    """CLIP-22: log x = .002 on 1000 tokens: rho = 1.002 rejected; +-.5 around 0 kept.

    A token outside [.5, 2] goes alone; what stays has weight exactly 1.
    """
    tokens = 1000
    drifted = np.full(tokens, 0.002)
    noisy = np.where(np.arange(tokens) % 2, 0.5, -0.5)
    spiked = np.zeros(tokens)
    spiked[[10, 20]] = [0.8, -0.8]
    mask = jnp.ones((3, tokens))
    kept = offpolicy.mispo_mask(jnp.array([drifted, noisy, spiked]), mask)
    kept = np.asarray(kept)
    assert not kept[0].any()
    assert kept[1].all()
    np.testing.assert_array_equal(np.flatnonzero(~kept[2]), [10, 20])
    assert set(np.unique(kept.astype(float))) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("advantage", "gap", "kept"),
    [(-1.0, 0.49, True), (-1.0, 0.51, False), (1.0, 5.0, True), (0.0, 5.0, True)],
)
def test_negative_sequences_go_when_stale(advantage, gap, kept):
    """CLIP-33: A >= 0 always stays; A < 0 with mean log(mu/pi) above delta goes."""
    policy = jnp.array([[-2.0, -1.0, -9.0]])
    rollout = policy + jnp.array([[gap + 0.3, gap - 0.3, 100.0]])
    found = offpolicy.negative_sequence_mask(
        policy,
        rollout,
        jnp.array([advantage]),
        jnp.array([[1, 1, 0]]),
        threshold=0.5,
    )
    assert found.shape == (1, 1)
    assert bool(found[0, 0]) == kept


def test_a_token_the_sampler_could_not_score_is_no_evidence():
    """CLIP-33: NaN from the sampler counts as no drift, not as a reason to drop."""
    policy, rollout = jnp.full((1, 2), -2.0), jnp.array([[jnp.nan, -1.5]])
    keep = lambda threshold: offpolicy.negative_sequence_mask(
        policy, rollout, jnp.array([-1.0]), jnp.ones((1, 2)), threshold=threshold
    )
    assert bool(keep(0.3)[0, 0])
    assert not bool(keep(0.2)[0, 0])


@pytest.mark.parametrize("level", offpolicy.WEIGHT_LEVELS)
def test_normalised_weights_have_mean_one(level):
    log_ratio, mask = sample()
    weights = offpolicy.importance_weights(
        jnp.array(log_ratio), jnp.array(mask), level=level, upper=1.5
    )
    normal = np.asarray(offpolicy.normalize_weights(weights, jnp.array(mask)))
    kept = normal[mask] if level == "token" else normal[mask.any(-1)]
    np.testing.assert_allclose(kept.mean(), 1.0, rtol=1e-12)
    nothing = offpolicy.normalize_weights(jnp.zeros((6, 7)), jnp.array(mask))
    np.testing.assert_array_equal(nothing, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_padding_and_gradients(bad):
    """Weights are constants and do not see padding; extreme ratios stay finite."""
    log_ratio, mask = sample()
    dirty = np.where(mask, log_ratio, bad)
    for level in offpolicy.WEIGHT_LEVELS:
        weights = lambda d, level=level: offpolicy.importance_weights(
            d, jnp.array(mask), level=level
        )
        np.testing.assert_array_equal(
            weights(jnp.array(dirty)), weights(jnp.array(log_ratio))
        )
        gradient = jax.grad(lambda d, w=weights: w(d).sum())(jnp.array(log_ratio))
        np.testing.assert_array_equal(gradient, 0.0)
        huge = weights(jnp.full(mask.shape, 1e4))
        assert np.isfinite(huge).all()
    for level in offpolicy.REJECTION_LEVELS:
        keep = lambda d, level=level: offpolicy.rejection_mask(
            d, jnp.array(mask), level=level, upper=1.2
        )
        np.testing.assert_array_equal(
            keep(jnp.array(dirty)), keep(jnp.array(log_ratio))
        )


def test_unknown_choices_are_named():
    ones = jnp.ones((1, 1))
    with pytest.raises(ValueError, match="level"):
        offpolicy.importance_weights(ones, ones, level="row")
    with pytest.raises(ValueError, match="outside"):
        offpolicy.importance_weights(ones, ones, outside="drop")
    with pytest.raises(ValueError, match="statistic"):
        offpolicy.rejection_mask(ones, ones, statistic="k1")
    with pytest.raises(ValueError, match="level"):
        offpolicy.rejection_mask(ones, ones, level="row")
