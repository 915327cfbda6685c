"""KL estimators: exact expectations and expected gradients, by enumeration.

Expectations run over a whole vocabulary, so nothing is sampled. The example is the one
of the specification: logits z and z_ref of four tokens, KL(pi || ref) = .207231.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from rlvr_jax.core import kl, losses
from tests.core.batches import assert_transforms_agree, ragged

Z = np.array([1.0, 0.2, -0.5, 0.1])
Z_REF = np.array([0.3, 0.6, -1.0, 0.9])
FORWARD = [0.25600, -0.08759, 0.04601, -0.21441]
REVERSE = [0.26577, -0.11832, 0.03784, -0.18528]

pytestmark = pytest.mark.usefixtures("x64")


def log_softmax(z):
    return jax.nn.log_softmax(jnp.asarray(z))


def estimates(logprobs, **settings):
    """Estimates at every token of the vocabulary, as a batch of one row."""
    reference = log_softmax(Z_REF)
    return kl.kl_estimate(logprobs[None], reference[None], **settings)[0]


def expected_gradient(loss, z=Z):
    """sum_a sg[pi(a)] grad loss_a: what a batch of on-policy samples gives."""
    weights = jax.lax.stop_gradient(jnp.exp(log_softmax(z)))
    return jax.grad(lambda z: (weights * loss(log_softmax(z))).sum())(jnp.asarray(z))


def exact_kl(z, z_ref=Z_REF):
    """KL(pi || ref)."""
    logs, reference = log_softmax(z), log_softmax(z_ref)
    return (jnp.exp(logs) * (logs - reference)).sum()


def expectation(values):
    return float((np.exp(log_softmax(Z)) * values).sum())


def test_values():
    """KL-01: E k1 = E k3 = KL exactly, k3 >= 0, E k2 = .221727 is biased."""
    logs = log_softmax(Z)
    exact = float(exact_kl(jnp.array(Z)))
    np.testing.assert_allclose(exact, 0.207231, atol=5e-7)
    for estimator in ("k1", "k3"):
        found = expectation(estimates(logs, estimator=estimator))
        np.testing.assert_allclose(found, exact, rtol=1e-13)
    np.testing.assert_allclose(
        expectation(estimates(logs, estimator="k2")), 0.221727, atol=5e-7
    )
    assert (estimates(logs, estimator="k3") >= 0).all()
    assert (estimates(logs, estimator="k1") < 0).any()


@pytest.mark.parametrize("estimator", kl.ESTIMATORS)
def test_estimates_are_their_formulas(estimator):
    batch = ragged()
    found = assert_transforms_agree(
        lambda p, r: kl.kl_estimate(p, r, estimator=estimator),
        batch.policy,
        batch.reference,
    )
    d = batch.policy - batch.reference
    formula = {"k1": d, "k2": d**2 / 2, "k3": np.exp(-d) - 1 + d, "abs": np.abs(d)}
    np.testing.assert_allclose(found, formula[estimator], atol=1e-14)
    check_grads(
        lambda p: kl.kl_estimate(
            jnp.asarray(p), jnp.array(batch.reference), estimator=estimator
        ),
        (jnp.array(batch.policy),),
        order=1,
        modes=["rev"],
        eps=1e-6,
    )


def test_k3_gradient_is_that_of_the_forward_kl():
    """KL-02: E_pi[(1 - ref/pi) grad log pi] = pi - ref = grad KL(ref || pi)."""
    found = expected_gradient(lambda logs: estimates(logs, estimator="k3"))
    difference = np.exp(log_softmax(Z)) - np.exp(log_softmax(Z_REF))
    np.testing.assert_allclose(found, difference, atol=1e-14)
    np.testing.assert_allclose(found, FORWARD, atol=5e-6)
    forward = jax.grad(lambda z: -(jnp.exp(log_softmax(Z_REF)) * log_softmax(z)).sum())
    np.testing.assert_allclose(found, forward(jnp.array(Z)), atol=1e-14)


def test_k2_and_k3_agree_to_first_order_near_the_reference():
    """KL-03: 1 - ref/pi ~ log(pi/ref); halving the distance quarters the difference."""
    direction = Z - Z_REF

    def difference(distance):
        z = Z_REF + distance * direction
        k2, k3 = (
            expected_gradient(lambda logs, e=e: estimates(logs, estimator=e), z)
            for e in ("k2", "k3")
        )
        return float(jnp.linalg.norm(k2 - k3))

    np.testing.assert_allclose(difference(1e-3) / difference(5e-4), 4.0, rtol=1e-3)


def test_k2_gradient_is_that_of_the_reverse_kl():
    """KL-04: E[(log pi - log ref) grad log pi] = pi (log(pi/ref) - KL)."""
    found = expected_gradient(lambda logs: estimates(logs, estimator="k2"))
    np.testing.assert_allclose(found, jax.grad(exact_kl)(jnp.array(Z)), atol=1e-14)
    np.testing.assert_allclose(found, REVERSE, atol=5e-6)
    logs, reference = log_softmax(Z), log_softmax(Z_REF)
    closed = np.exp(logs) * (logs - reference - exact_kl(jnp.array(Z)))
    np.testing.assert_allclose(found, closed, atol=1e-14)


@pytest.mark.parametrize("estimator", ["k1", "k3", "abs"])
def test_straight_through_has_the_value_of_one_and_the_gradient_of_k2(estimator):
    settings = {"estimator": estimator, "straight_through": True}
    found = expected_gradient(lambda logs: estimates(logs, **settings))
    np.testing.assert_allclose(found, REVERSE, atol=5e-6)
    logs = log_softmax(Z)
    plain = estimates(logs, estimator=estimator)
    np.testing.assert_allclose(estimates(logs, **settings), plain, atol=1e-15)


def test_importance_correction_needs_its_gradient():
    """KL-05: (pi/pi_old) k3 gives the reverse KL; with the ratio detached, KL-02."""

    def corrected(logs, detach):
        log_ratio = logs - log_softmax(Z)
        if detach:
            log_ratio = jax.lax.stop_gradient(log_ratio)
        k3 = estimates(logs, estimator="k3")
        return kl.importance_corrected_kl(k3[None], log_ratio[None])[0]

    found = expected_gradient(lambda logs: corrected(logs, detach=False))
    np.testing.assert_allclose(found, REVERSE, atol=5e-6)
    found = expected_gradient(lambda logs: corrected(logs, detach=True))
    np.testing.assert_allclose(found, FORWARD, atol=5e-6)


def test_importance_corrected_value_is_unbiased_off_policy():
    """KL-05: over samples of any pi_old > 0, E[(pi/pi_old) k3] = KL(pi || ref)."""
    logs, exact = log_softmax(Z), float(exact_kl(jnp.array(Z)))
    for old_logits in ([0.0, 0.0, 0.0, 0.0], [-2.0, 1.0, 3.0, 0.5]):
        old = log_softmax(np.array(old_logits))
        k3 = estimates(logs, estimator="k3")
        value = kl.importance_corrected_kl(k3[None], (logs - old)[None])[0]
        np.testing.assert_allclose((np.exp(old) * value).sum(), exact, rtol=1e-12)


def test_weight_of_k3_has_no_bound_and_the_corrected_one_has():
    """KL-06: pi = 1e-6, ref = .5: |1 - ref/pi| ~ 5e5, corrected |log pi/ref| = 13.1."""
    logp, reference = jnp.log(jnp.array([[1e-6]])), jnp.log(jnp.array([[0.5]]))

    def plain(logp):
        return kl.kl_estimate(logp, reference, estimator="k3").sum()

    def corrected(logp):
        k3 = kl.kl_estimate(logp, reference, estimator="k3")
        old = jax.lax.stop_gradient(logp)
        return kl.importance_corrected_kl(k3, logp - old).sum()

    np.testing.assert_allclose(jax.grad(plain)(logp), [[1 - 0.5e6]], rtol=1e-12)
    weight = jax.grad(corrected)(logp)
    np.testing.assert_allclose(weight, [[np.log(1e-6 / 0.5)]], rtol=1e-9)
    np.testing.assert_allclose(abs(weight[0, 0]), 13.12, atol=5e-3)


def test_k1_as_a_loss_has_no_expected_gradient():
    """KL-07: E[grad log pi] = 0, whatever the reference."""
    found = expected_gradient(lambda logs: estimates(logs, estimator="k1"))
    np.testing.assert_allclose(found, 0.0, atol=1e-15)


class TwoTokens:
    """Three first tokens, then three second tokens that depend on the first."""

    rng = np.random.default_rng(0)
    first, second = rng.normal(size=3), rng.normal(size=(3, 3))
    first_ref, second_ref = rng.normal(size=3), rng.normal(size=(3, 3))
    # NumPy: arrays made at import would be float32.
    params = (first, second)

    @staticmethod
    def logprobs(params):
        """[9, 2]: log-probs of both tokens of each of the nine sequences."""
        one = jax.nn.log_softmax(params[0])
        two = jax.nn.log_softmax(params[1])
        return jnp.stack([jnp.repeat(one, 3), two.ravel()], axis=1)

    @classmethod
    def reference(cls):
        return cls.logprobs((cls.first_ref, cls.second_ref))

    @classmethod
    def probabilities(cls, params):
        """Of each sequence, as a constant."""
        return jax.lax.stop_gradient(jnp.exp(cls.logprobs(params).sum(-1)))

    @classmethod
    def exact_gradient(cls):
        """Of KL(pi || ref) of whole sequences."""

        def divergence(params):
            logs = cls.logprobs(params).sum(-1)
            return (jnp.exp(logs) * (logs - cls.reference().sum(-1))).sum()

        return jax.grad(divergence)(cls.params)

    @classmethod
    def loss_gradient(cls, estimator):
        """Expected gradient of the estimator as a loss per token."""

        def loss(params):
            values = kl.kl_estimate(
                cls.logprobs(params), cls.reference(), estimator=estimator
            )
            return (cls.probabilities(params) * values.sum(-1)).sum()

        return jax.grad(loss)(cls.params)

    @classmethod
    def reward_gradient(cls):
        """Expected REINFORCE gradient with the return of -k1 as advantage, negated."""
        rewards = kl.kl_rewards(
            cls.logprobs(cls.params), cls.reference(), jnp.ones((9, 2)), beta=1.0
        )
        returns = jnp.cumsum(rewards[:, ::-1], axis=1)[:, ::-1]

        def loss(params):
            values = losses.reinforce_loss(cls.logprobs(params), returns)
            return (cls.probabilities(cls.params) * values.sum(-1)).sum()

        return jax.grad(loss)(cls.params)


def test_a_loss_per_token_leaves_out_what_a_token_does_to_later_ones():
    """KL-08: exact - per-token = E[grad log pi(a) KL(pi(.|a) || ref(.|a))], not 0."""
    exact, partial = TwoTokens.exact_gradient(), TwoTokens.loss_gradient("k2")
    np.testing.assert_allclose(exact[1], partial[1], atol=1e-14)
    missing = exact[0] - partial[0]

    second = jax.nn.log_softmax(jnp.array(TwoTokens.second))
    reference = jax.nn.log_softmax(jnp.array(TwoTokens.second_ref))
    later = (jnp.exp(second) * (second - reference)).sum(-1)
    score = jax.grad(lambda z: (jax.nn.softmax(z) * later).sum())(TwoTokens.params[0])
    np.testing.assert_allclose(missing, score, atol=1e-14)
    assert np.abs(missing).max() > 0.01


def test_kl_in_the_reward_follows_the_full_sequence_gradient():
    """KL-09: REINFORCE on the return of -beta k1 = grad of the sequence's KL."""
    for found, exact in zip(
        TwoTokens.reward_gradient(), TwoTokens.exact_gradient(), strict=True
    ):
        np.testing.assert_allclose(found, exact, atol=1e-14)


def test_loss_and_reward_placements_differ():
    """KL-10: on two tokens the gradients of loss (k2, k3) and of reward part."""
    in_reward = TwoTokens.reward_gradient()[0]
    for estimator in ("k2", "k3"):
        in_loss = TwoTokens.loss_gradient(estimator)[0]
        assert np.abs(in_reward - in_loss).max() > 0.01


def test_a_coefficient_of_zero_leaves_the_policy_gradient_alone():
    """KL-11: rewards of beta 0 are 0, with no reference value able to reach them."""
    batch = ragged()
    rewards = kl.kl_rewards(
        jnp.array(batch.policy),
        jnp.array(batch.reference),
        jnp.array(batch.mask),
        beta=0.0,
    )
    np.testing.assert_array_equal(rewards, 0.0)


def test_kl_rewards_are_constants():
    batch = ragged()

    def total(policy):
        return kl.kl_rewards(
            policy, jnp.array(batch.reference), jnp.array(batch.mask), beta=0.1
        ).sum()

    np.testing.assert_array_equal(jax.grad(total)(jnp.array(batch.policy)), 0.0)


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
def test_regularised_optimum_tilts_the_reference(beta):
    """KL-14: at pi* = ref exp(r/beta)/Z no gradient is left; support does not grow."""
    reward = jnp.array([1.0, 0.0, 0.0, 1.0])
    reference = log_softmax(Z_REF)
    tilted = jax.nn.log_softmax(reference + reward / beta)
    penalty = kl.kl_rewards(tilted[None], reference[None], jnp.ones((1, 4)), beta=beta)[
        0
    ]

    def loss(z):
        advantage = reward + penalty
        values = losses.reinforce_loss(log_softmax(z)[None], advantage[None])[0]
        return (jnp.exp(tilted) * values).sum()

    np.testing.assert_allclose(jax.grad(loss)(tilted), 0.0, atol=1e-12)
    # A solution the reference never gives (p_x = 0) stays at 0 for every beta.
    impossible = jnp.array([0.0, -jnp.inf, 0.0, 0.0])
    tilted = jax.nn.softmax(impossible + jnp.array([0.0, 1.0, 0.0, 0.0]) / beta)
    assert tilted[1] == 0.0


@pytest.mark.parametrize("estimator", kl.ESTIMATORS)
def test_padding_reaches_neither_values_nor_gradients(estimator):
    batch = ragged()
    bad = np.where(batch.mask, batch.policy, -np.inf)
    worse = np.where(batch.mask, batch.reference, np.nan)

    def total(policy, reference):
        return kl.kl_estimate(
            policy,
            jnp.array(reference),
            estimator=estimator,
            token_mask=jnp.array(batch.mask),
            straight_through=estimator == "k3",
        ).sum()

    clean = jax.value_and_grad(total)(jnp.array(batch.policy), batch.reference)
    dirty = jax.value_and_grad(total)(jnp.array(bad), worse)
    np.testing.assert_array_equal(clean[0], dirty[0])
    np.testing.assert_array_equal(clean[1], dirty[1])
    np.testing.assert_array_equal(np.asarray(dirty[1])[~batch.mask], 0.0)


def test_clamps_stop_value_and_gradient():
    """verl's k3: d in +-20, estimate in +-10; zero gradient beyond either."""
    settings = {"input_clamp": 20.0, "output_clamp": 10.0}

    def k3(d):
        return kl.kl_estimate(d, jnp.zeros((1, 4)), estimator="k3", **settings)

    d = jnp.array([[-30.0, -3.0, 1.0, 30.0]])
    value, back = jax.vjp(k3, d)
    # e^3 - 1 - 3 = 16.1 and e^20 are cut to 10; at d = 30 the input is cut: 20 - 1.
    np.testing.assert_allclose(value, [[10.0, 10.0, np.exp(-1.0), 10.0]])
    gradient = back(jnp.ones((1, 4)))[0]
    np.testing.assert_allclose(gradient, [[0.0, 0.0, 1 - np.exp(-1.0), 0.0]])


def test_an_unknown_estimator_names_the_setting():
    with pytest.raises(ValueError, match=r"objective\.kl_estimator"):
        kl.kl_estimate(jnp.zeros((1, 1)), jnp.zeros((1, 1)), estimator="k4")
