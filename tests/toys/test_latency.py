"""Waiting for the slowest of a group."""

import math

import jax
import numpy as np
import pytest

from rlvr_jax.toys.latency import wait


def means(**settings):
    keys = jax.random.split(jax.random.key(0), 64)
    found = wait(keys, prompts=500, **settings)
    return [(x.mean(), x.std(ddof=1) / 8) for x in map(np.asarray, found)]


@pytest.mark.parametrize("group", [1, 4, 16])
def test_a_group_waits_for_the_harmonic_number(group):
    """PG-29, DATA-13: exponential lengths: ready after H_G = 3.3807 means for G = 16.

    Idle is max - mean: 1 - 1 / H_G of the time (.704). Four standard errors, 64 seeds.
    """
    harmonic = sum(1 / i for i in range(1, group + 1))
    ready, idle, stale = means(group=group)
    assert abs(ready[0] - harmonic) < 4 * ready[1]
    assert abs(idle[0] - (1 - 1 / harmonic)) <= 4 * idle[1]
    assert abs(stale[0] - (harmonic - 1)) <= 4 * stale[1]
    if group == 16:
        assert harmonic == pytest.approx(3.3807, abs=5e-5)


def test_longer_tails_cost_a_group_more_and_a_critic_nothing():
    """PG-29: log-normal lengths; staleness grows with how often the trainer updates."""
    ready = [means(group=16, spread=s)[0][0] for s in (0.2, 0.5, 1.0)]
    assert ready == sorted(ready)
    assert ready[0] == pytest.approx(1.4, abs=0.1)
    one = means(group=1, spread=1.0)
    assert abs(one[0][0] - 1) < 4 * one[0][1]
    assert one[1][0] == one[2][0] == 0
    often = means(group=16, update_rate=3.0)[2][0]
    assert math.isclose(often, 3 * means(group=16)[2][0], rel_tol=1e-5)
