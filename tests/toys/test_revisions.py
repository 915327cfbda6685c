"""Chains of revisions against fresh starts: exact rates, and a simulation of them."""

import dataclasses

import numpy as np
import pytest

from rlvr_jax.toys.revisions import EASY, HARD, chain_rate, split_rate, sweep

BUDGET = 64


def test_easy_problems_are_revised_and_hard_ones_need_both():
    """TT-14: where every start is of the right kind, all in sequence is best, at every
    budget that does not solve it anyhow; where one of four is, a mix is, which beats
    both ends by more than ten points."""
    for budget in (2, 4, 8):
        assert (np.diff(sweep(EASY, budget)[1]) > 0).all()
    lengths, hard = sweep(HARD, BUDGET)
    assert lengths.tolist() == [1, 2, 4, 8, 16, 32, 64]
    best = hard.argmax()
    assert 0 < best < len(hard) - 1
    assert hard[best] > max(hard[0], hard[-1]) + 0.1
    # The harder it is to begin, the more chains are wanted.
    best_lengths = [
        lengths[sweep(dataclasses.replace(HARD, approach=a), BUDGET)[1].argmax()]
        for a in (1.0, 0.5, 0.1)
    ]
    assert (np.diff(best_lengths) <= 0).all()
    assert best_lengths[0] > best_lengths[-1]


@pytest.mark.parametrize("length", [1, 8, 64])
def test_rates_are_those_of_a_simulation(length):
    """TT-14: 20,000 problems, four standard errors."""
    rng, count = np.random.default_rng(0), 20_000
    chains = BUDGET // length
    right_kind = rng.random((count, chains)) < HARD.approach
    steps = np.minimum(HARD.first + HARD.gain * np.arange(length), HARD.limit)
    found = (rng.random((count, chains, length)) < steps).any(axis=-1)
    rate = (found & right_kind).any(axis=-1).mean()
    exact = split_rate(HARD, BUDGET, length)
    assert abs(rate - exact) < 4 * np.sqrt(exact * (1 - exact) / count) + 1e-12


def test_a_serial_thinker_stays_with_its_first_approach():
    """TT-30: anchored: however long one chain thinks, it solves no more than the share
    of right starts; as many answers from fresh starts go beyond it."""
    for length in (16, 64, 256):
        assert chain_rate(HARD, length) < HARD.approach + 1e-9
    assert chain_rate(HARD, 256) == pytest.approx(HARD.approach)
    assert split_rate(HARD, 256, 8) > 0.9 > chain_rate(HARD, 256) + 0.5
    # Not anchored, the same thinker is right nearly always.
    free = dataclasses.replace(HARD, approach=1.0)
    assert chain_rate(free, 64) > 0.99
