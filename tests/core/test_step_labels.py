"""Labels of steps against closed forms, and the loss against optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlvr_jax.core.step_labels import (
    consensus,
    expected_hard_label,
    monte_carlo_labels,
    step_loss,
    up_to_first_error,
)
from tests.core.variants import VARIANTS, run

EVERY = jnp.ones((1, 4), bool)


@pytest.mark.parametrize(
    ("rate", "hard"), [(0.2, 0.8322), (0.5, 0.9961), (0.02, 0.1492)]
)
def test_labels_measure_the_completer(rate, hard):
    """PROC-07: completions that are right with chance q: soft labels are q on average,
    hard ones 1 - (1 - q)^8: .2 -> .8322. 20,000 steps, within four standard errors."""
    steps = 20_000
    drawn = np.random.default_rng(0).random((1, steps, 8)) < rate
    correct = jnp.asarray(drawn, jnp.float32)
    soft = monte_carlo_labels(correct, kind="soft")
    assert abs(soft.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / 8 / steps)
    found = monte_carlo_labels(correct, kind="hard")
    assert set(np.unique(found)) == {0, 1}
    assert abs(found.mean() - hard) < 4 * np.sqrt(hard * (1 - hard) / steps)
    expected = expected_hard_label(jnp.float32(rate), completions=8)
    assert float(expected) == pytest.approx(hard, abs=5e-5)


def test_a_perfect_completer_calls_every_step_good():
    """PROC-07, PROC-08: at q = 1 both labels are 1, at q = 0 both are 0; one right
    completion of eight makes a hard label."""
    one = jnp.zeros((1, 1, 8)).at[0, 0, 3].set(1)
    for kind, expected in (("hard", 1), ("soft", 1 / 8)):
        assert monte_carlo_labels(jnp.ones((1, 2, 8)), kind=kind).min() == 1
        assert monte_carlo_labels(jnp.zeros((1, 2, 8)), kind=kind).max() == 0
        assert float(monte_carlo_labels(one, kind=kind)[0, 0]) == expected


def test_what_no_label_can_be_made_of_is_refused():
    with pytest.raises(ValueError, match="kind must be hard or soft, got 'any'"):
        monte_carlo_labels(jnp.ones((1, 1, 2)), kind="any")
    with pytest.raises(ValueError, match="a completion per step"):
        monte_carlo_labels(jnp.ones((1, 1, 0)))


def test_steps_after_the_first_error_are_left_out():
    """PROC-09: and padding, wherever it stands."""
    labels = jnp.array([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1.0]])
    steps = jnp.ones((4, 4), bool).at[1, 3].set(False).at[3, 0].set(False)
    found = up_to_first_error(labels, steps)
    expected = [[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0]]
    np.testing.assert_array_equal(found, expected)


def test_the_filter_keeps_what_two_sources_agree_on():
    """PROC-09: the place of the first error, whatever they say of later steps; and a
    solution in which neither finds one."""
    labels = jnp.array([[1, 0, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0.0]])
    judged = jnp.array([[1, 0, 1, 0], [1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1.0]])
    steps = jnp.broadcast_to(EVERY, (4, 4))
    np.testing.assert_array_equal(
        consensus(labels, judged, steps), [True, False, True, False]
    )
    # A step that the last solution has not is no error of it.
    shorter = steps.at[3, 3].set(False)
    assert bool(consensus(labels, judged, shorter)[3])
    assert bool(consensus(judged, labels, shorter)[3])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_loss_is_the_cross_entropy_of_each_step(variant):
    """PROC-02: against optax, for hard and soft labels and at large logits."""
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 4, (2, 5, 7))
    logits[0, 0, :2] = 60, -60
    labels = np.where(rng.random(logits.shape) < 0.5, rng.random(logits.shape), 1.0)
    expected = optax.sigmoid_binary_cross_entropy(jnp.asarray(logits), labels)
    found = run(variant, step_loss, logits, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_its_least_is_at_the_label_and_labels_get_no_gradient():
    """PROC-02: d l / d logit = p - y."""
    logits, labels = jnp.array([[-1.0, 0.5]]), jnp.array([[0.3, 1.0]])
    total = lambda logits, labels: step_loss(logits, labels).sum()
    by_logits, by_labels = jax.grad(total, argnums=(0, 1))(logits, labels)
    np.testing.assert_allclose(by_logits, jax.nn.sigmoid(logits) - labels, rtol=1e-6)
    np.testing.assert_array_equal(by_labels, 0)
