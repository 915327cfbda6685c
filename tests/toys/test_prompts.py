"""Groups with and without a signal, and dynamic sampling."""

import functools

import jax
import numpy as np
import pytest

from rlvr_jax.toys.prompts import Recipe, train

SEEDS = 32


@functools.cache
def trace(refill):
    keys = jax.random.split(jax.random.key(0), SEEDS)
    found = train(keys, Recipe(refill=refill))
    return type(found)(*map(np.asarray, found))


def test_the_share_of_silent_groups_is_that_of_the_formula():
    """PG-19: mean over prompts of p^8 + (1 - p)^8, at every update, within noise.

    16 groups x 32 seeds: a standard error of .02 at most; the mean over 200 updates is
    held to .004.
    """
    plain = trace(0)
    gap = plain.silent.mean(0) - plain.expected_silent.mean(0)
    assert np.abs(gap).max() < 4.5 * np.sqrt(0.25 / 16 / SEEDS)
    assert abs(gap.mean()) < 0.004


def test_the_effective_batch_shrinks_unless_it_is_refilled():
    """DATA-10, ENT-21: informative groups of 16 fall as prompts are solved; refilled
    batches stay full while they can, and pay for it in samples."""
    plain, filled = trace(0), trace(7)
    few = plain.informative.mean(0)
    assert few[:10].mean() > 8
    assert few[-10:].mean() < 0.6 * few[:10].mean()
    assert (filled.informative[:, :20] == 16).all()
    np.testing.assert_array_equal(plain.samples[0, :3], [128, 256, 384])
    assert (filled.samples[:, -1] > 2 * plain.samples[:, -1]).all()


def test_dropping_silent_groups_is_no_brake_on_entropy_by_itself():
    """ENT-21: with dynamic sampling accuracy and entropy move faster per update.

    At equal accuracy the entropy of both is the same here (within .03 nats): it buys
    signal per update, and the policy that has learned as much is as narrow.
    """
    plain, filled = trace(0), trace(7)
    assert (filled.accuracy[:, 50] > plain.accuracy[:, 50] + 0.02).all()
    assert filled.entropy[:, 50].mean() < plain.entropy[:, 50].mean()
    for level in (0.55, 0.65, 0.75):
        at = [
            t.entropy[np.arange(SEEDS), (t.accuracy > level).argmax(1)].mean()
            for t in (plain, filled)
        ]
        assert at[0] == pytest.approx(at[1], abs=0.03)
