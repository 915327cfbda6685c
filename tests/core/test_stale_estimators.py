"""Gradients from stale or mismatched samples, by enumeration: bias, variance, repair.

A policy over seven answers of one token. The samples come from another policy mu, so
the batch is the whole vocabulary, each answer weighted by mu: expectations are exact.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import kl, losses, offpolicy, ratios, sampling, weighted_losses

pytestmark = pytest.mark.usefixtures("x64")

BASE = np.array([2.0, 1.2, 0.8, 0.0, -1.0, -2.5, -4.0])
"""Logits: from .52 down to .0013."""
REWARDS = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
DRIFT = np.array([-0.8, 0.4, 0.1, -0.3, -0.4, 0.5, 1.2])
"""Where the policy has moved since the samples were drawn, per unit of staleness."""
MASK = np.ones((7, 1), bool)


def columns(values):
    return jnp.asarray(values)[:, None]


def logprobs(logits):
    """log pi of every answer as seven completions of one token."""
    return jax.nn.log_softmax(logits)[:, None]


def true_gradient(logits):
    """grad E_pi[r]."""
    return jax.grad(lambda z: jax.nn.softmax(z) @ jnp.asarray(REWARDS))(logits)


def sample_gradients(loss, logits, old):
    """-grad of the loss of each answer, one row per answer.

    `loss` takes (log-probs, log-ratio, advantages).
    """
    advantages = jnp.asarray(REWARDS) - jax.nn.softmax(logits) @ jnp.asarray(REWARDS)

    def per_answer(z):
        log_ratio = ratios.token_log_ratio(logprobs(z), columns(old), jnp.array(MASK))
        return -loss(logprobs(z), log_ratio, advantages)[:, 0]

    return jax.jacobian(per_answer)(logits)


ESTIMATORS = {
    "none": lambda logp, d, a: losses.ratio_loss(d, a),
    "clip": lambda logp, d, a: losses.clipped_loss(
        d, a, epsilon_low=0.2, epsilon_high=0.2
    ),
    "cap": lambda logp, d, a: weighted_losses.cispo_loss(logp, d, a, epsilon_high=0.5),
    "drop": lambda logp, d, a: weighted_losses.dis_loss(
        logp, d, a, epsilon_low=0.5, epsilon_high=0.5
    ),
}


def bias_and_variance(name, staleness):
    """Distance of the estimator's mean from grad E[r], and its trace-variance."""
    logits = jnp.asarray(BASE + staleness * DRIFT)
    old = jax.nn.log_softmax(jnp.asarray(BASE))
    gradients = sample_gradients(ESTIMATORS[name], logits, old)
    mean = jnp.exp(old) @ gradients
    variance = jnp.exp(old) @ (gradients**2).sum(1) - (mean**2).sum()
    return float(jnp.linalg.norm(mean - true_gradient(logits))), float(variance)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fresh_samples_need_no_rule(name):
    """CLIP-37: at staleness 0 every rule gives the exact gradient."""
    assert bias_and_variance(name, 0.0)[0] < 1e-15


@pytest.mark.parametrize("staleness", [0.5, 1.0, 2.0])
def test_no_clip_a_cap_and_a_drop_trade_bias_for_variance(staleness):
    """CLIP-37: importance weights alone have no bias and the most variance.

    A cap (CISPO, 1.5) keeps every token's gradient and bounds it: some bias, less
    variance. Dropping tokens outside .5 to 1.5 (DIS): more bias, still less variance.
    """
    none, cap, drop = (bias_and_variance(n, staleness) for n in ("none", "cap", "drop"))
    assert none[0] < 1e-15
    assert 0 < cap[0] < drop[0]
    assert none[1] > cap[1] > drop[1]


def test_what_becomes_of_the_rare_right_answer():
    """CLIP-37: its ratio is 3.2 at staleness 1: kept by the cap alone.

    PPO's clip and the drop both take its gradient away; capped, it weighs 1.5 A, where
    plain importance weights give it 3.2 A.
    """
    logits, old = jnp.asarray(BASE + DRIFT), jax.nn.log_softmax(jnp.asarray(BASE))
    rare = {
        name: sample_gradients(loss, logits, old)[-1]
        for name, loss in ESTIMATORS.items()
    }
    np.testing.assert_array_equal(rare["clip"], 0)
    np.testing.assert_array_equal(rare["drop"], 0)
    ratio = jnp.exp(jax.nn.log_softmax(logits)[-1] - old[-1])
    assert ratio > 3
    np.testing.assert_allclose(rare["cap"] * ratio / 1.5, rare["none"], rtol=1e-12)


def bundle_error(*, float32_head, keep_mask, tis):
    """Error of the expected gradient, some stabilisers on: rms over 64 policies.

    The sampler draws from the top-p .9 set of a policy that lags behind by noise of std
    .05, and its logits, shifted by 60 as those of real models may be, are rounded to
    bfloat16 (steps of .25) unless its head is float32. The truth is grad E[r] of the
    policy on the sampler's set.
    """
    rng = np.random.default_rng(0)
    bases, lags = rng.normal(0, 1.5, (64, 7)), rng.normal(0, 0.05, (64, 7))
    rewards = jnp.asarray(REWARDS)
    mask = jnp.array(MASK)

    def error(base, lag):
        sampler = base + 60.0
        if not float32_head:
            sampler = sampler.astype(jnp.bfloat16).astype(float)
        kept = sampling.kept_tokens(sampler, top_p=0.9)
        mu = sampling.sampling_log_softmax(sampler, kept)

        def policy(z, restricted):
            logp = sampling.sampling_log_softmax(z, kept if restricted else None)
            # Answers that are never drawn have weight 0: any finite number will do.
            return jnp.where(kept, logp, 0.0)

        def value(z):
            return jnp.where(kept, jnp.exp(policy(z, True)), 0.0) @ rewards

        def estimate(z):
            logp = columns(policy(z, keep_mask))
            loss = losses.reinforce_loss(logp, rewards - value(base + lag))
            if tis:
                sampled = columns(jnp.where(kept, mu, 0.0))
                log_ratio = ratios.token_log_ratio(logp, sampled, mask)
                loss *= offpolicy.importance_weights(log_ratio, mask, upper=2.0)
            return -jnp.exp(mu) @ loss[:, 0]

        gap = jax.grad(estimate)(base + lag) - jax.grad(value)(base + lag)
        return (gap**2).sum()

    squares = jax.vmap(error)(jnp.asarray(bases), jnp.asarray(lags))
    return float(jnp.sqrt(squares.mean()))


def test_each_stabiliser_of_the_bundle_lowers_the_error():
    """CLIP-35: float32 head (MiniMax), Keep Sampling Mask (V3.2), TIS (Olmo 3).

    The head by itself halves the error. Mask and TIS need one another: with both
    nothing is left; without the mask TIS weighs against a set that was never drawn.
    """
    error = bundle_error
    nothing = error(float32_head=False, keep_mask=False, tis=False)
    head = error(float32_head=True, keep_mask=False, tis=False)
    np.testing.assert_allclose([nothing, head], [0.0099, 0.0053], atol=1e-4)
    all_three = error(float32_head=True, keep_mask=True, tis=True)
    without_tis = error(float32_head=True, keep_mask=True, tis=False)
    without_mask = error(float32_head=True, keep_mask=False, tis=True)
    assert all_three < 1e-15
    assert min(without_tis, without_mask) > 5e-3


@pytest.mark.parametrize("staleness", [0.25, 0.5, 1.0])
def test_corrected_kl_is_exact_on_stale_samples(staleness):
    """CLIP-35: k3 as a loss has the wrong gradient on stale samples, V3.2's has not."""
    logits = jnp.asarray(BASE + staleness * DRIFT)
    old = jax.nn.log_softmax(jnp.asarray(BASE))
    reference = jax.nn.log_softmax(jnp.asarray(BASE - 0.5 * DRIFT))

    def exact(z):
        logp = jax.nn.log_softmax(z)
        return jnp.exp(logp) @ (logp - reference)

    def error(corrected):
        def loss(z):
            estimate = kl.kl_estimate(logprobs(z), columns(reference))
            if corrected:
                log_ratio = ratios.token_log_ratio(
                    logprobs(z), columns(old), jnp.array(MASK)
                )
                estimate = kl.importance_corrected_kl(estimate, log_ratio)
            return jnp.exp(old) @ estimate[:, 0]

        return float(jnp.linalg.norm(jax.grad(loss)(logits) - jax.grad(exact)(logits)))

    assert error(corrected=True) < 1e-14
    assert error(corrected=False) > 0.01
