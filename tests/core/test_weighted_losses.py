"""Surrogates with constant weights: closed forms of weights and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import losses, ratios, selection
from rlvr_jax.core import weighted_losses as weighted
from tests.core.batches import assert_transforms_agree, ragged

CISPO = {"epsilon_low": 1.0, "epsilon_high": 0.28}


def weight_of(loss, ratio, advantage=1.0, **settings):
    """w of the gradient w A grad log pi, at a token whose ratio is `ratio`."""
    old = jnp.array([[-1.0]])

    def at(logp):
        log_ratio = jnp.log(jnp.array([[ratio]])) + logp - jax.lax.stop_gradient(logp)
        return loss(logp, log_ratio, jnp.array([advantage]), **settings).sum()

    return -float(jax.grad(at)(old)[0, 0]) / advantage


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_cispo_bounds_the_weight_and_never_drops(advantage):
    """CLIP-15: weight min(rho, 1 + eH), for both signs; no lower bound."""
    for ratio in (0.01, 0.5, 1.0, 1.28, 1.5, 100.0):
        weight = weight_of(weighted.cispo_loss, ratio, advantage, **CISPO)
        np.testing.assert_allclose(weight, min(ratio, 1.28), rtol=1e-12)
    bounded = weight_of(
        weighted.cispo_loss, 0.5, advantage, epsilon_low=0.2, epsilon_high=0.28
    )
    np.testing.assert_allclose(bounded, 0.8)


@pytest.mark.usefixtures("x64")
def test_cispo_parameterisations_are_named_apart():
    """CLIP-15: epsilon_high .28 is a distance; ratio_max 5 (TRL, ScaleRL) the bound."""
    for ratio in (0.3, 3.0, 7.0):
        by_distance = weight_of(weighted.cispo_loss, ratio, epsilon_high=4.0)
        by_bound = weight_of(weighted.cispo_capped_loss, ratio, ratio_max=5.0)
        np.testing.assert_allclose(by_distance, by_bound, rtol=1e-12)
        np.testing.assert_allclose(by_bound, min(ratio, 5.0), rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_wait_token_at_ratio_one_and_a_half():
    """CLIP-18: PPO at eps .2 gives 0; CISPO (1 + eH) A grad log pi."""
    ppo = jax.grad(
        lambda d: losses.clipped_loss(
            d, jnp.array([1.0]), epsilon_low=0.2, epsilon_high=0.2
        ).sum()
    )(jnp.log(jnp.array([[1.5]])))
    assert float(ppo[0, 0]) == 0.0
    cispo = weight_of(weighted.cispo_loss, 1.5, **CISPO)
    np.testing.assert_allclose(cispo, 1.28)


@pytest.mark.usefixtures("x64")
def test_unified_objective_with_the_trust_region_mask():
    """CLIP-16: CISPO times M (and no bound of its own) has the gradient of PPO."""
    batch = ragged(spread=0.5)
    mask, old = jnp.array(batch.mask), jnp.array(batch.old)
    advantages = jnp.array(batch.advantages)
    bounds = {"epsilon_low": 0.2, "epsilon_high": 0.28}

    def ppo(logp):
        log_ratio = ratios.token_log_ratio(logp, old, mask)
        return losses.clipped_loss(log_ratio, advantages, **bounds).sum()

    def masked_cispo(logp):
        log_ratio = ratios.token_log_ratio(logp, old, mask)
        low, high = selection.clip_masks(log_ratio, advantages, **bounds)
        loss = weighted.cispo_loss(logp, log_ratio, advantages, epsilon_high=1e9)
        return (loss * ~(low | high) * mask).sum()

    policy = jnp.array(batch.policy)
    expected = jax.grad(ppo)(policy)
    np.testing.assert_allclose(jax.grad(masked_cispo)(policy), expected, atol=1e-12)
    clipped = np.asarray(batch.mask & (np.asarray(expected) == 0))
    assert clipped.any()
    assert not clipped[batch.mask].all()


@pytest.mark.usefixtures("x64")
def test_staleness_silences_wait_first_then_caps_it():
    """CLIP-20: log ratios grow with staleness, those of rare tokens fastest.

    Fourteen tokens; " Wait" (index 5) has drifted most. As staleness grows PPO drops
    " Wait" before any other, CISPO holds it at its bound, GSPO keeps or drops the
    whole response at once.
    """
    drift = np.full((1, 14), 0.02)
    drift[0, 5] = 0.3
    mask, up = jnp.ones((1, 14)), jnp.array([1.0])
    logp = jnp.full((1, 14), -1.0)

    def kept(loss):
        gradient = jax.grad(lambda logp, d: loss(logp, d).sum())
        return lambda stale: np.asarray(
            -gradient(logp, jnp.array(stale * drift) - jax.lax.stop_gradient(logp))
        )

    at = lambda level, **bounds: (
        lambda logp, offset: losses.clipped_loss(level(logp + offset), up, **bounds)
    )
    ppo = kept(at(lambda d: d, epsilon_low=0.2, epsilon_high=0.28))
    gspo = kept(
        at(
            lambda d: ratios.sequence_log_ratio(d, mask),
            epsilon_low=3e-2,
            epsilon_high=4e-2,
        )
    )
    cispo = kept(
        lambda logp, offset: weighted.cispo_loss(
            logp, logp + offset, up, epsilon_high=0.28
        )
    )
    assert (ppo(0.5) > 0).all()
    dropped = ppo(1.0)[0] == 0
    assert dropped[5]
    assert dropped.sum() == 1
    np.testing.assert_allclose(cispo(1.0)[0, 5], 1.28)
    np.testing.assert_allclose(cispo(3.0)[0, 5], 1.28)
    for stale in (0.5, 1.0, 3.0):
        moving = gspo(stale)[0] > 0
        assert moving.all() or not moving.any()
    assert (gspo(0.5) > 0).all()
    assert not (gspo(3.0) > 0).any()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_dis_drops_outside_the_band_whatever_the_sign(advantage):
    """CLIP-21: (.7, 6): r = .69 or 6.01 gives 0, r = 2 gives 2 A; code band (.2, 4)."""
    reasoning = {"epsilon_low": 0.3, "epsilon_high": 5.0}
    weight = lambda ratio, **band: weight_of(
        weighted.dis_loss, ratio, advantage, **band
    )
    assert weight(0.69, **reasoning) == 0.0
    assert weight(6.01, **reasoning) == 0.0
    np.testing.assert_allclose(weight(2.0, **reasoning), 2.0)
    code = {"epsilon_low": 0.8, "epsilon_high": 3.0}
    np.testing.assert_allclose(weight(0.25, **code), 0.25)
    assert weight(4.01, **code) == 0.0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("new", "old", "advantage", "kept"),
    [
        (0.50, 0.35, 1.0, True),
        (0.60, 0.35, 1.0, False),
        (0.20, 0.35, 1.0, True),
        (0.25, 0.35, -1.0, True),
        (0.10, 0.35, -1.0, False),
        (0.60, 0.35, -1.0, True),
    ],
)
def test_dppo_region_is_in_probability_not_in_ratio(new, old, advantage, kept):
    """Up by more than .2 or down by more than .15 leaves the region; back is free."""
    logs = [jnp.log(jnp.array([[p]])) for p in (new, old)]
    inside = weighted.dppo_mask(
        *logs, jnp.array([advantage]), threshold_low=0.15, threshold_high=0.2
    )
    assert bool(inside[0, 0]) == kept


@pytest.mark.usefixtures("x64")
def test_dppo_kl_region_is_the_two_way_kl():
    p, q = np.array([[0.5, 0.6, 0.3]]), np.array([[0.3, 0.3, 0.5]])
    kl = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
    for threshold in (0.05, 0.1, 0.3):
        inside = weighted.dppo_mask(
            jnp.log(p),
            jnp.log(q),
            jnp.array([1.0]),
            divergence="kl",
            threshold_low=0.01,
            threshold_high=threshold,
        )
        np.testing.assert_array_equal(inside, (kl <= threshold) | (p <= q))
    with pytest.raises(ValueError, match=r"objective\.divergence"):
        weighted.dppo_mask(
            jnp.log(p),
            jnp.log(q),
            jnp.array([1.0]),
            divergence="js",
            threshold_low=0.1,
            threshold_high=0.1,
        )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("divergence", ["tv", "kl"])
def test_dppo_gradient_is_the_capped_ratio_inside_the_region(divergence):
    batch = ragged(spread=0.8)
    settings = {
        "divergence": divergence,
        "threshold_low": 0.05,
        "threshold_high": 0.1,
        "ratio_max": 1.5,
    }
    arrays = (batch.policy, batch.old, batch.advantages, batch.mask)
    assert_transforms_agree(lambda *a: weighted.dppo_loss(*a, **settings), *arrays)
    policy, old, advantages, mask = (jnp.array(x) for x in arrays)
    gradient = jax.grad(
        lambda logp: weighted.dppo_loss(logp, old, advantages, mask, **settings).sum()
    )(policy)
    del settings["ratio_max"]
    inside = weighted.dppo_mask(policy, old, advantages, **settings)
    ratio = np.minimum(np.exp(batch.policy - batch.old), 1.5)
    expected = -batch.advantages[:, None] * ratio * inside * batch.mask
    np.testing.assert_allclose(gradient, expected, atol=1e-12)
    dropped = ~np.asarray(inside)[batch.mask]
    assert 0 < dropped.mean() < 1


@pytest.mark.usefixtures("x64")
def test_vespo_weight_is_the_gamma_kernel():
    """phi(w) = w^k e^(lambda (1 - w)): 1 on policy, largest at w = k / lambda."""
    batch = ragged(spread=0.2)
    log_ratio = np.where(batch.mask, batch.policy - batch.old, 0.0)
    found = assert_transforms_agree(
        weighted.vespo_weights, log_ratio, batch.advantages, batch.mask
    )
    w = np.exp(log_ratio.sum(-1))
    k = np.where(batch.advantages >= 0, 2.0, 3.0)
    decay = np.where(batch.advantages >= 0, 3.0, 2.0)
    np.testing.assert_allclose(found[:, 0], w**k * np.exp(decay * (1 - w)), rtol=1e-12)
    on_policy = weighted.vespo_weights(
        jnp.zeros((1, 3)), jnp.array([1.0]), jnp.ones((1, 3))
    )
    np.testing.assert_allclose(on_policy, 1.0)
    # The sampler's own ratio enters the row's: twice the log is the ratio squared.
    row = jnp.array(log_ratio.sum(-1, keepdims=True))
    twice = weighted.vespo_weights(
        jnp.array(log_ratio),
        jnp.array(batch.advantages),
        jnp.array(batch.mask),
        log_importance=row,
    )
    squared = w**2
    expected = squared**k * np.exp(decay * (1 - squared))
    np.testing.assert_allclose(twice[:, 0], expected, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_weights_carry_no_gradient():
    """d(-w A log pi)/d log pi is exactly -w A, though w is a function of log pi."""
    batch = ragged(spread=0.3)
    old, mask = jnp.array(batch.old), jnp.array(batch.mask)
    advantages = jnp.array(batch.advantages)

    def gradient(loss):
        def total(logp):
            log_ratio = ratios.token_log_ratio(logp, old, mask)
            return jnp.where(mask, loss(logp, log_ratio), 0.0).sum()

        return jax.grad(total)(jnp.array(batch.policy))

    ratio = np.exp(batch.policy - batch.old)
    for loss, weights in (
        (
            lambda logp, d: weighted.cispo_loss(logp, d, advantages, epsilon_high=0.1),
            np.minimum(ratio, 1.1),
        ),
        (
            lambda logp, d: weighted.dis_loss(
                logp, d, advantages, epsilon_low=0.2, epsilon_high=0.3
            ),
            np.where((ratio > 0.8) & (ratio < 1.3), ratio, 0.0),
        ),
        (
            lambda logp, d: losses.reinforce_loss(logp, advantages, jnp.exp(d)),
            ratio,
        ),
    ):
        expected = -batch.advantages[:, None] * weights * batch.mask
        np.testing.assert_allclose(gradient(loss), expected, atol=1e-12)
