"""Length under each aggregation, over sampled groups."""

import functools

import jax
import numpy as np
import pytest

from rlvr_jax.toys.lengths import LONGEST, Recipe, train

SEEDS = 64
RATES = {"sequence_mean": 0.3, "token_mean": 0.3, "constant": 1.0}


@functools.cache
def at_60_percent(mode, scale):
    """(start, where accuracy first passes 60%): lengths of right and wrong, [seeds]."""
    recipe = Recipe(mode, scale, learning_rate=RATES[mode])
    trace = train(jax.random.split(jax.random.key(0), SEEDS), recipe)
    accuracy, right, wrong = map(np.asarray, trace)
    assert (accuracy[:, -1] > 0.6).all()
    place = (accuracy > 0.6).argmax(1)
    seeds = np.arange(SEEDS)
    return right[:, 0], right[seeds, place], wrong[:, 0], wrong[seeds, place]


def drift(before, after):
    change = after - before
    return change.mean(), change.std(ddof=1) / np.sqrt(SEEDS)


def test_wrong_answers_grow_and_right_ones_shrink_under_the_sequence_mean():
    """AGG-11, BEH-04: at equal accuracy (60%), beyond 6 standard errors of 64 seeds."""
    right0, right, wrong0, wrong = at_60_percent("sequence_mean", "group")
    mean, error = drift(wrong0, wrong)
    assert mean > 6 * error
    assert mean > 1
    mean, error = drift(right0, right)
    assert mean < -6 * error


def test_the_constant_leaves_length_alone():
    """AGG-11: Dr. GRPO: no drift within 4 standard errors; GRPO's is far beyond."""
    right0, right, wrong0, wrong = at_60_percent("constant", "none")
    for before, after in ((right0, right), (wrong0, wrong)):
        mean, error = drift(before, after)
        assert abs(mean) < 4 * error
    grpo = at_60_percent("sequence_mean", "group")
    assert np.mean(grpo[3]) > np.mean(wrong) + 1


@pytest.mark.parametrize("mode", RATES)
def test_lengths_start_as_stated(mode):
    """sum_{t < 32} sigmoid(2)^t = 8.26 tokens for both."""
    right, _, wrong, _ = at_60_percent(mode, "group" if mode != "constant" else "none")
    go_on = 1 / (1 + np.exp(-2.0))
    expected = (1 - go_on**LONGEST) / (1 - go_on)
    np.testing.assert_allclose([right, wrong], expected, rtol=1e-5)
