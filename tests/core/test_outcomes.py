"""Pass rates and lengths on planted batches."""

import jax.numpy as jnp
import numpy as np

from rlvr_jax.core import outcomes


def test_pass_rate_histogram():
    """DIAG-02: groups of four with 0, 0, 1, 4 correct; ids out of order."""
    solved = {0: 0, 1: 4, 2: 0, 3: 1}
    group_id, correct = [], []
    for group in (2, 0, 3, 1):
        group_id += [group] * 4
        correct += [k < solved[group] for k in range(4)]
    counts = outcomes.pass_rate_histogram(
        jnp.array(correct), jnp.array(group_id), num_generations=4
    )
    np.testing.assert_array_equal(counts, [2, 1, 0, 0, 1])


def test_a_group_that_is_not_there_is_not_counted():
    counts = outcomes.pass_rate_histogram(
        jnp.array([True, False]), jnp.array([1, 1]), num_generations=2
    )
    np.testing.assert_array_equal(counts, [0, 1, 0])


def test_lengths_and_truncation():
    """DIAG-04: lengths 10, 20, 30, 40; the last two wrong, the last cut."""
    found = outcomes.length_statistics(
        jnp.array([10, 20, 30, 40]),
        jnp.array([True, True, True, False]),
        jnp.array([True, True, False, False]),
    )
    values = {name: float(ratio.value()) for name, ratio in found.items()}
    assert values == {"mean": 25.0, "correct": 15.0, "wrong": 35.0, "truncated": 0.25}


def test_no_wrong_answer_is_length_zero_not_nan():
    found = outcomes.length_statistics(
        jnp.array([3]), jnp.array([True]), jnp.array([True])
    )
    assert float(found["wrong"].value()) == 0.0


def test_a_group_waits_for_its_slowest():
    """PG-29: exponential lengths: E[max of 16] = H_16 = 3.3807 times the mean.

    20,000 groups: the standard error is 0.3%. Groups of different sizes count once.
    """
    assert round(sum(1 / k for k in range(1, 17)), 4) == 3.3807
    rng = np.random.default_rng(0)
    lengths = rng.exponential(300.0, 16 * 20_000)
    group_id = np.repeat(np.arange(20_000), 16)
    wait = outcomes.group_wait(jnp.array(lengths), jnp.array(group_id)).value()
    np.testing.assert_allclose(wait, 3.3807, rtol=0.01)
    # (8 + 4) / (5 + 4): the mean of 2, 8 and 5 is 5, and the second group has one row.
    uneven = outcomes.group_wait(jnp.array([2, 8, 5, 4]), jnp.array([0, 0, 0, 1]))
    np.testing.assert_allclose(uneven.value(), 12 / 9, rtol=1e-6)
