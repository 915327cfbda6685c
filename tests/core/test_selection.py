"""Tokens chosen by covariance or entropy: how many, which, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import losses, ranking, ratios, selection
from tests.core.batches import assert_transforms_agree, ragged

pytestmark = pytest.mark.usefixtures("x64")

BOUNDS = {"epsilon_low": 1.0, "epsilon_high": 1.0}


def planted():
    """A batch, its log-ratios and its covariance per token."""
    batch = ragged(seed=3, rows=10, tokens=12, spread=0.2)
    mask = jnp.array(batch.mask)
    log_ratio = ratios.token_log_ratio(
        jnp.array(batch.policy), jnp.array(batch.old), mask
    )
    covariance = selection.token_covariance(
        jnp.array(batch.policy), jnp.array(batch.advantages), mask
    )
    return batch, log_ratio, covariance


def test_mean_of_the_shares_is_the_covariance():
    """ENT-09: c_t averaged over the tokens of the loss = (biased) covariance."""
    batch, _, covariance = planted()
    assert_transforms_agree(
        selection.token_covariance, batch.policy, batch.advantages, batch.mask
    )
    spread = np.repeat(batch.advantages[:, None], 12, axis=1)
    logs, spread = batch.policy[batch.mask], spread[batch.mask]
    shares = (logs - logs.mean()) * (spread - spread.mean())
    np.testing.assert_allclose(np.asarray(covariance)[batch.mask], shares, atol=1e-14)
    expected = np.cov(logs, spread, ddof=0)[0, 1]
    np.testing.assert_allclose(shares.mean(), expected, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(covariance)[~batch.mask], 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_padding_does_not_reach_the_selection(bad):
    batch, _, covariance = planted()
    mask = jnp.array(batch.mask)
    dirty = selection.token_covariance(
        jnp.array(np.where(batch.mask, batch.policy, bad)),
        jnp.array(batch.advantages),
        mask,
    )
    np.testing.assert_array_equal(dirty, covariance)
    entropy = np.where(batch.mask, -batch.policy, bad)
    kept = selection.top_entropy_mask(jnp.array(entropy), mask, keep_fraction=0.2)
    assert not np.asarray(kept)[~batch.mask].any()
    clean = selection.top_entropy_mask(
        jnp.array(-batch.policy), mask, keep_fraction=0.2
    )
    np.testing.assert_array_equal(kept, clean)


@pytest.mark.parametrize(
    ("fraction", "tokens", "count"), [(2e-4, 100, 1), (0.05, 100, 5), (0.05, 59, 2)]
)
def test_count_is_the_floor_but_at_least_one(fraction, tokens, count):
    """ENT-09: max(1, int(r N))."""
    found = selection.token_count(jnp.ones((1, tokens)), fraction)
    assert int(found) == max(1, int(fraction * tokens)) == count


def clip_cov_keep(covariance, log_ratio, batch, fraction, key):
    mask = jnp.array(batch.mask)
    low, high = selection.clip_masks(log_ratio, jnp.array(batch.advantages), **BOUNDS)
    return selection.clip_cov_mask(
        covariance,
        mask & ~low & ~high,
        selection.token_count(mask, fraction),
        covariance_min=0.1,
        covariance_max=5.0,
        key=key,
    )


def test_clip_cov_drops_the_count_and_nothing_else():
    """ENT-09: max(1, int(r N)) tokens of the band lose their gradient, no other."""
    batch, log_ratio, covariance = planted()
    advantages = jnp.array(batch.advantages)
    plain = jax.grad(lambda d: losses.clipped_loss(d, advantages, **BOUNDS).sum())(
        log_ratio
    )
    for fraction, key in ((2e-4, None), (0.1, None), (0.1, jax.random.key(0))):
        keep = clip_cov_keep(covariance, log_ratio, batch, fraction, key)
        dropped = ~np.asarray(keep)
        assert dropped.sum() == max(1, int(fraction * batch.mask.sum()))
        in_band = (np.asarray(covariance) > 0.1) & (np.asarray(covariance) < 5.0)
        assert in_band[dropped].all()
        gradient = jax.grad(
            lambda d, keep=keep: (
                losses.clipped_loss(d, advantages, **BOUNDS) * keep
            ).sum()
        )(log_ratio)
        np.testing.assert_array_equal(np.asarray(gradient)[dropped], 0.0)
        np.testing.assert_array_equal(
            np.asarray(gradient)[~dropped], np.asarray(plain)[~dropped]
        )


def test_clip_cov_draws_uniformly_from_the_band():
    """ENT-09: over 400 keys every candidate is dropped about equally often."""
    batch, log_ratio, covariance = planted()
    keys = jax.random.split(jax.random.key(1), 400)
    draw = lambda key: ~clip_cov_keep(covariance, log_ratio, batch, 0.1, key)
    counts = np.asarray(jax.vmap(draw)(keys).sum(0))
    band = (np.asarray(covariance) > 0.1) & (np.asarray(covariance) < 5.0)
    candidates = counts[band & batch.mask]
    number = max(1, int(0.1 * batch.mask.sum()))
    share = number / candidates.size
    # Five standard deviations of a binomial of 400 draws.
    slack = 5 * np.sqrt(share * (1 - share) / 400)
    np.testing.assert_allclose(candidates / 400, share, atol=slack)


def test_clip_cov_leaves_what_the_ratio_clip_already_removed():
    """ENT-09: of four tokens in the band, only those not clipped can be dropped."""
    covariance, candidates = jnp.full((1, 4), 2.0), jnp.array([[0, 1, 0, 1]])
    keep = selection.clip_cov_mask(covariance, candidates, jnp.array(3))
    np.testing.assert_array_equal(keep, [[True, False, True, False]])


def test_clip_cov_without_candidates_drops_nothing():
    keep = selection.clip_cov_mask(jnp.zeros((2, 3)), jnp.ones((2, 3)), jnp.array(2))
    assert np.asarray(keep).all()


def test_kl_cov_gradient_adds_the_sign_of_the_log_ratio_on_selected_tokens():
    """ENT-10: -A r, and + beta sign(log r) on the top-k; no clip on the others."""
    batch, log_ratio, covariance = planted()
    mask, advantages = jnp.array(batch.mask), jnp.array(batch.advantages)
    selected = ranking.top_tokens(covariance, mask, selection.token_count(mask, 0.1))
    gradient = jax.grad(
        lambda d: selection.kl_cov_loss(
            d, advantages, selected, kl_coefficient=0.7
        ).sum()
    )(log_ratio)
    ratio = -batch.advantages[:, None] * np.exp(log_ratio)
    expected = ratio + 0.7 * np.sign(log_ratio) * np.asarray(selected)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    assert int(selected.sum()) == max(1, int(0.1 * batch.mask.sum()))
    # On policy every log-ratio is 0: no push in either direction.
    on_policy = jax.grad(
        lambda d: selection.kl_cov_loss(d, advantages, selected).sum()
    )(jnp.zeros_like(log_ratio))
    np.testing.assert_allclose(
        on_policy, np.broadcast_to(-batch.advantages[:, None], on_policy.shape)
    )


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.8, 1.0])
def test_top_entropy_is_the_quantile_of_numpy(keep):
    batch, _, _ = planted()
    nats = -batch.policy
    kept = assert_transforms_agree(
        lambda h, m: selection.top_entropy_mask(h, m, keep_fraction=keep),
        nats,
        batch.mask,
    )
    threshold = np.quantile(nats[batch.mask], 1 - keep)
    np.testing.assert_array_equal(kept, batch.mask & (nats >= threshold))


def test_top_entropy_keeps_a_token_that_sits_on_the_quantile():
    """(1 - .7) * 10 is 3 and a bit in binary; of eleven tokens the fourth stays."""
    assert (1 - 0.7) * 10 > 3
    nats = jnp.arange(11.0)[None]
    kept = selection.top_entropy_mask(nats, jnp.ones((1, 11)), keep_fraction=0.7)
    np.testing.assert_array_equal(kept[0], np.arange(11) >= 3)


def test_empty_batch_selects_nothing():
    zeros = jnp.zeros((2, 3))
    assert not np.asarray(
        selection.top_entropy_mask(zeros, zeros, keep_fraction=0.5)
    ).any()
    count = selection.token_count(zeros, 0.5)
    assert not np.asarray(ranking.top_tokens(zeros, zeros, count)).any()


def test_clip_masks_are_where_the_gradient_vanishes():
    batch, log_ratio, _ = planted()
    advantages = jnp.array(batch.advantages)
    bounds = {"epsilon_low": 0.1, "epsilon_high": 0.15}
    low, high = selection.clip_masks(log_ratio, advantages, **bounds)
    gradient = jax.grad(lambda d: losses.clipped_loss(d, advantages, **bounds).sum())(
        log_ratio
    )
    np.testing.assert_array_equal(low | high, np.asarray(gradient) == 0)
    assert low.any()
    assert high.any()
    assert not (low & high).any()
