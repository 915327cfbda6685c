"""Sharpening, losses and openings, as curves of pass@k."""

import functools

import jax
import numpy as np
import pytest

from rlvr_jax.core.passk import expected_pass_at_k
from rlvr_jax.toys.reach import RARE, Training, World, curve, draw

KS = tuple(2**i for i in range(15))
SEEDS = 16


@functools.cache
def rates(**settings):
    keys = jax.random.split(jax.random.key(0), SEEDS)
    return [np.asarray(x) for x in draw(keys, World(), Training(**settings))]


def gains(**settings):
    """pass@k after less before, [seeds, k]."""
    before, after, _, _ = rates(**settings)
    return np.array(
        [curve(a, KS) - curve(b, KS) for b, a in zip(before, after, strict=True)]
    )


def test_losses_make_the_curves_cross_and_nothing_else_does():
    """PK-06, INT-8: crossing with losses; none without; none at large k with the box.

    500 problems, 16 seeds, each of them. The box opens a quarter of the impossible.
    """
    lossy = gains()
    assert (lossy[:, 0] > 0.1).all()
    assert (lossy[:, -1] < -0.05).all()
    # Once only: above the base up to some k, below from there on.
    assert (np.diff(np.sign(lossy), axis=1) != 0).sum(1).tolist() == [1] * SEEDS
    assert gains(lost=0.0).min() >= 0
    opened = gains(lost=0.5, opened=0.25)
    assert (opened[:, -1] > lossy[:, -1]).all()
    assert gains(lost=0.0, opened=0.25).min() > 0
    assert (gains(lost=0.1, opened=0.25)[:, -1] > 0).all()


def test_what_happened_to_each_problem():
    """PK-06: a quarter of the impossible opens; the rare ones alone are lost."""
    before, after, lost, opened = rates(opened=0.25)
    assert before.shape == (SEEDS, 500)
    assert (before == 0).sum(1).tolist() == [125] * SEEDS
    assert 0.2 < opened.sum() / (before == 0).sum() < 0.3
    assert (after[opened] == np.float32(0.2)).all()
    rare = (before > 0) & (before < RARE)
    assert 0.45 < lost.sum() / rare.sum() < 0.55
    assert not lost[~rare].any()
    assert (after[lost] == 0).all()
    kept = (before > 0) & ~lost
    assert (after[kept] >= before[kept]).all()


def test_pass_at_1_after_is_pass_at_4_before():
    """PK-06: p -> 1 - (1 - p)^4 where nothing is lost."""
    before, after, _, _ = rates(lost=0.0)
    for b, a in zip(before, after, strict=True):
        expected = expected_pass_at_k(b.astype(float), 4)
        np.testing.assert_allclose(a, expected, rtol=2e-5)


@pytest.mark.parametrize("k", [1, 256])
def test_a_curve_is_a_mean_over_problems(k):
    found = curve(np.array([0.0, 0.5, 1.0]), (k,))
    np.testing.assert_allclose(found, [(1 - 0.5**k + 1) / 3])
