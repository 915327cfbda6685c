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
