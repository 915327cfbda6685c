"""Each surrogate against a float64 NumPy loop, its gradient against its closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from rlvr_jax.core import losses
from tests.core.batches import assert_transforms_agree

BOUNDS = {"epsilon_low": 0.2, "epsilon_high": 0.28}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def clip(d, a, low, high, c=None):
    """The published min, and the dual clip's max for A < 0."""
    r = np.exp(d)
    value = min(r * a, min(max(r, 1 - low), 1 + high) * a)
    return -max(value, c * a) if c is not None and a < 0 else -value


def sapo(d, a, positive=1.0, negative=1.05):
    tau = positive if a > 0 else negative
    return -a * 4 / tau * sigmoid(tau * (np.exp(d) - 1))


SURROGATES = {
    "clip": (
        lambda d, a: losses.clipped_loss(d, a, **BOUNDS),
        lambda d, a: clip(d, a, 0.2, 0.28),
    ),
    "clip, sequence bounds": (
        lambda d, a: losses.clipped_loss(d, a, epsilon_low=3e-4, epsilon_high=4e-4),
        lambda d, a: clip(d, a, 3e-4, 4e-4),
    ),
    "dual clip": (
        lambda d, a: losses.clipped_loss(d, a, dual_clip=1.5, **BOUNDS),
        lambda d, a: clip(d, a, 0.2, 0.28, 1.5),
    ),
    "ratio": (losses.ratio_loss, lambda d, a: -a * np.exp(d)),
    "sapo": (losses.sapo_loss, sapo),
    "sapo, other tau": (
        lambda d, a: losses.sapo_loss(d, a, tau_positive=2.0, tau_negative=0.5),
        lambda d, a: sapo(d, a, 2.0, 0.5),
    ),
}


def points():
    """Log-ratios between and beyond the bounds, advantages of both signs and 0."""
    rng = np.random.default_rng(1)
    log_ratio, advantages = rng.normal(0, 0.4, (6, 9)), rng.normal(size=(6, 9))
    advantages[:, 0] = 0.0
    return log_ratio, advantages


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SURROGATES)
def test_surrogate_is_its_formula(name):
    ours, formula = SURROGATES[name]
    log_ratio, advantages = points()
    computed = assert_transforms_agree(ours, log_ratio, advantages)
    expected = np.vectorize(formula)(log_ratio, advantages)
    np.testing.assert_allclose(computed, expected, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SURROGATES)
def test_surrogate_differentiates(name):
    ours, _ = SURROGATES[name]
    log_ratio, advantages = points()
    # Kinks stay two steps of the difference quotient away.
    for kink in np.log([0.8, 1.28, 1.5, 1 - 3e-4, 1 + 4e-4]):
        near = np.abs(log_ratio - kink) < 1e-3
        log_ratio[near] += 4e-3
    check_grads(
        lambda d: ours(jnp.asarray(d), jnp.array(advantages)),
        (jnp.array(log_ratio),),
        order=1,
        modes=["rev"],
        eps=1e-6,
    )


def gradient_weight(loss, ratio, advantage, **settings):
    """What multiplies A grad log pi in the gradient of -loss."""
    gradient = jax.grad(lambda d: loss(d, jnp.array([advantage]), **settings).sum())(
        jnp.log(jnp.array([[ratio]]))
    )
    return -float(gradient[0, 0]) / advantage


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("ratio", "advantage", "high", "weight"),
    [
        (0.5, 1.0, 0.2, 0.5),
        (2.0, -1.0, 0.2, 2.0),
        (1.21, 1.0, 0.2, 0.0),
        (0.79, -1.0, 0.2, 0.0),
        (0.85, -1.0, 0.2, 0.85),
        (1.25, 1.0, 0.2, 0.0),
        (1.25, 1.0, 0.28, 1.25),
    ],
)
def test_gradient_weight_is_the_ratio_or_zero(ratio, advantage, high, weight):
    """CLIP-01, CLIP-02: 0 iff A > 0 and r > 1 + eps or A < 0 and r < 1 - eps."""
    bounds = {"epsilon_low": 0.2, "epsilon_high": high}
    found = gradient_weight(losses.clipped_loss, ratio, advantage, **bounds)
    np.testing.assert_allclose(found, weight, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_dual_clip_bounds_what_counts_against_a_negative_advantage():
    """c = 3 (dual-clip PPO), delta = 4 (INTELLECT-2): gradient 0 beyond, for A < 0."""
    weight = lambda ratio, advantage, c: gradient_weight(
        losses.clipped_loss, ratio, advantage, dual_clip=c, **BOUNDS
    )
    np.testing.assert_allclose(weight(2.9, -1.0, 3.0), 2.9)
    assert weight(3.1, -1.0, 3.0) == 0.0
    np.testing.assert_allclose(weight(3.1, -1.0, 4.0), 3.1)
    np.testing.assert_allclose(weight(1.2, 1.0, 3.0), 1.2)
    with pytest.raises(ValueError, match=r"objective\.dual_clip"):
        weight(1.0, 1.0, 1.0)


@pytest.mark.usefixtures("x64")
def test_ceiling_of_the_upper_bound():
    """CLIP-03: (1 + .2) .9 = 1.08 >= 1 never binds; (1 + .2) .01 = .012 does.

    The ratio of a token of probability .9 is at most 1/.9 = 1.111 < 1.2; the upper
    bound can only bind below 1/1.2 = .8333.
    """
    weight = lambda old, new: gradient_weight(
        losses.clipped_loss, new / old, 1.0, epsilon_low=0.2, epsilon_high=0.2
    )
    assert weight(0.9, 1.0) > 0
    np.testing.assert_allclose(weight(0.9, 1.0), 1 / 0.9)
    np.testing.assert_allclose(weight(0.01, 0.0119), 1.19)
    assert weight(0.01, 0.0121) == 0.0
    assert weight(0.8334, 1.0) > 0
    assert weight(0.8332, 1.0) == 0.0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("tau", "advantage", "weights"),
    [
        (1.0, 1.0, [0.9400, 1.0, 0.9400, 0.7864, 0.4200]),
        (1.05, -1.0, [0.9341, 1.0, 0.9341, 0.7681, 0.3888]),
    ],
)
def test_sapo_gate_has_slope_one_on_policy(tau, advantage, weights):
    """CLIP-24: df/dx at x = .5, 1, 1.5, 2, 3 as published; 1 at x = 1 for any tau."""
    for x, expected in zip([0.5, 1.0, 1.5, 2.0, 3.0], weights, strict=True):
        weight = gradient_weight(losses.sapo_loss, x, advantage)
        # The weight on grad log pi is x df/dx.
        np.testing.assert_allclose(weight / x, expected, atol=5e-5)
        np.testing.assert_allclose(
            weight, x / np.cosh(tau * (x - 1) / 2) ** 2, rtol=1e-12
        )


@pytest.mark.usefixtures("x64")
def test_gmpo_one_outlier_of_ten():
    """CLIP-25: ratio 10 among ten tokens: GMPO exp(.4/10) = 1.0408, arithmetic 1.9."""
    ratio = np.ones((1, 10))
    ratio[0, 3] = 10.0
    assert ratio.mean() == 1.9
    mask, up, down = jnp.ones((1, 10)), jnp.array([1.0]), jnp.array([-1.0])
    log_ratio = jnp.array(np.log(ratio))
    value = losses.gmpo_loss(log_ratio, up, mask)
    np.testing.assert_allclose(value, [[-np.exp(0.04)]], rtol=1e-12)
    np.testing.assert_allclose(np.exp(0.04), 1.0408, atol=5e-5)
    # Pushing down, the lower bound is the one that acts: 10 counts in full.
    value = losses.gmpo_loss(log_ratio, down, mask)
    np.testing.assert_allclose(value, [[10**0.1]], rtol=1e-12)
    # The clipped token has no gradient, the others ratio / T.
    gradient = jax.grad(lambda d: losses.gmpo_loss(d, up, mask).sum())(log_ratio)
    expected = np.full((1, 10), -np.exp(0.04) / 10)
    expected[0, 3] = 0.0
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_gmpo_is_its_formula(level):
    rng = np.random.default_rng(2)
    d = rng.normal(0, 0.6, (5, 6))
    mask = np.arange(6) < np.array([6, 4, 3, 1, 0])[:, None]
    # Advantages of the sign in which the row has moved, so that bounds act.
    a = rng.uniform(0.5, 2.0, 5) * np.sign((d * mask).sum(-1) + 1e-9)

    def ours(d, a, mask):
        return losses.gmpo_loss(
            d, a, mask, epsilon_low=0.3, epsilon_high=0.5, clip_level=level
        )

    found = assert_transforms_agree(ours, d, a, mask)
    bound = lambda x, sign: min(x, 0.5) if sign > 0 else max(x, -0.3)
    for i in range(5):
        logs = [d[i, t] for t in range(6) if mask[i, t]]
        if level == "token":
            total = sum(bound(x, a[i]) for x in logs)
        else:
            total = bound(sum(logs), a[i])
        expected = -a[i] * np.exp(total / max(len(logs), 1))
        np.testing.assert_allclose(found[i, 0], expected, rtol=1e-12)


def test_gmpo_names_an_unknown_level():
    with pytest.raises(ValueError, match="clip_level"):
        losses.gmpo_loss(
            jnp.zeros((1, 1)), jnp.ones(1), jnp.ones((1, 1)), clip_level="row"
        )


@pytest.mark.usefixtures("x64")
def test_reinforce_and_dro_are_their_formulas():
    """CLIP-23 (RGRA is REINFORCE): l = -w A log pi; DRO adds beta d^2 / 2."""
    rng = np.random.default_rng(3)
    logp, d = -rng.exponential(size=(3, 4)), rng.normal(size=(3, 4))
    a, w = rng.normal(size=3), rng.uniform(size=(3, 4))
    found = assert_transforms_agree(losses.reinforce_loss, logp, a, w)
    np.testing.assert_allclose(found, -w * a[:, None] * logp, rtol=1e-12)
    dro = lambda logp, d, a: losses.dro_loss(logp, d, a, beta=0.3)
    found = assert_transforms_agree(dro, logp, d, a)
    np.testing.assert_allclose(found, -a[:, None] * logp + 0.15 * d**2, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_rgra_gradient_is_that_of_grpo_on_policy_only():
    """CLIP-23: equal at rho = 1, apart once the policy has moved."""
    rng = np.random.default_rng(4)
    old = jnp.array(-rng.exponential(size=(3, 4)))
    a = jnp.array(rng.normal(size=3))
    grpo = jax.grad(lambda logp: losses.clipped_loss(logp - old, a, **BOUNDS).sum())
    rgra = jax.grad(lambda logp: losses.reinforce_loss(logp, a).sum())
    np.testing.assert_allclose(grpo(old), rgra(old), rtol=1e-12)
    moved = old + 0.1
    assert np.abs(grpo(moved) - rgra(moved)).max() > 0.05


@pytest.mark.parametrize("name", SURROGATES)
def test_overflowing_ratio_keeps_value_and_gradient_finite(name):
    """float32: exp(200) is inf; for A = 0 the formula would be 0 * inf."""
    log_ratio = jnp.array([[1e4, -1e4, 200.0]], jnp.float32)
    for advantage in (1.0, -1.0, 0.0):
        value, gradient = jax.value_and_grad(
            lambda d, a=advantage: SURROGATES[name][0](
                d, jnp.full((1, 3), a, jnp.float32)
            ).sum()
        )(log_ratio)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_no_gradient_flows_into_advantages():
    for ours, _ in SURROGATES.values():
        gradient = jax.grad(lambda a, f=ours: f(jnp.full((2, 2), 0.1), a).sum())
        np.testing.assert_array_equal(gradient(jnp.ones((2, 2))), 0.0)


@pytest.mark.usefixtures("x64")
def test_advantages_per_row_are_those_of_its_tokens():
    log_ratio, _ = points()
    rows = np.random.default_rng(5).normal(size=6)
    for ours, _ in SURROGATES.values():
        per_row = ours(jnp.array(log_ratio), jnp.array(rows))
        dense = jnp.array(np.repeat(rows[:, None], 9, axis=1))
        np.testing.assert_allclose(
            per_row, ours(jnp.array(log_ratio), dense), rtol=1e-14
        )
