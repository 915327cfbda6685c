"""On-policy distillation by enumeration: what its sampled update is in expectation."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.distillation import reverse_kl
from rlvr_jax.core.kl import kl_estimate, kl_rewards
from rlvr_jax.core.losses import reinforce_loss

STUDENT = np.array([0.4, -1.1, 2.0, 0.0])
TEACHER = np.array([1.0, 0.5, -0.3, 0.2])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def exact_gradient(student, teacher):
    """d KL(S || T) / d logits = pi (log(pi / pi_T) - KL)."""
    policy, other = softmax(student), softmax(teacher)
    log_ratio = np.log(policy / other)
    return policy * (log_ratio - policy @ log_ratio)


def expected_update(student, teacher, *, constant=True):
    """Minus the gradient of the loss on every token, weighted by its chance."""

    def expected(logits):
        logprobs = jax.nn.log_softmax(logits)[:, None]
        at_teacher = jax.nn.log_softmax(jnp.asarray(teacher))[:, None]
        if constant:
            ones = jnp.ones((4, 1))
            paid = kl_rewards(logprobs, at_teacher, ones, beta=1.0)
            losses = reinforce_loss(logprobs, paid)
        else:  # the log-ratio itself as the loss
            losses = kl_estimate(logprobs, at_teacher, estimator="k1")
        chances = jax.lax.stop_gradient(jnp.exp(logprobs))
        return (chances * losses).sum()

    with jax.enable_x64(True):
        return -np.asarray(jax.jit(jax.grad(expected))(jnp.asarray(student)))


def test_the_expected_update_is_that_of_the_reverse_kl():
    """SFT-12: E_S[A grad log pi_S] = -grad KL(S || T), A = log pi_T - log pi_S: closed
    form and the gradient of the divergence over the whole vocabulary."""
    found = expected_update(STUDENT, TEACHER)
    np.testing.assert_allclose(found, -exact_gradient(STUDENT, TEACHER), atol=1e-12)
    with jax.enable_x64(True):
        divergence = lambda logits: reverse_kl(logits, jnp.asarray(TEACHER))
        whole = jax.grad(divergence)(jnp.asarray(STUDENT))
    np.testing.assert_allclose(found, -np.asarray(whole), atol=1e-12)


def test_no_update_where_student_and_teacher_agree():
    """SFT-12: every advantage is 0, not only their mean; a constant added to the logits
    is no disagreement."""
    logprobs = jax.nn.log_softmax(jnp.asarray(STUDENT))[:, None]
    paid = kl_rewards(logprobs, logprobs, jnp.ones((4, 1)), beta=1.0)
    np.testing.assert_array_equal(paid, 0)
    np.testing.assert_allclose(expected_update(STUDENT, STUDENT + 7), 0, atol=1e-12)


def test_without_the_constant_there_is_no_signal():
    """SFT-12: the log-ratio as a loss, not stopped: expected gradient 0."""
    found = expected_update(STUDENT, TEACHER, constant=False)
    np.testing.assert_allclose(found, 0, atol=1e-12)
    assert abs(expected_update(STUDENT, TEACHER)).max() > 0.1


def test_descending_the_divergence_ends_at_the_teacher():
    """500 steps on the exact gradient: the student is the teacher to 1e-4."""
    step = lambda _, z: z - jax.grad(lambda y: reverse_kl(y, jnp.asarray(TEACHER)))(z)
    found = jax.jit(lambda z: jax.lax.fori_loop(0, 500, step, z))(jnp.asarray(STUDENT))
    np.testing.assert_allclose(jax.nn.softmax(found), softmax(TEACHER), atol=1e-4)
