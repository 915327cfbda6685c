"""Beam search with a process reward model against whole samples."""

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest

from rlvr_jax.toys.beams import EASY, HARD, search

PROBLEMS = 1000
ORACLE = dataclasses.replace(HARD, noise=0.0)


@functools.cache
def accuracy(world, paths, width):
    keys = jax.random.split(jax.random.key(0), PROBLEMS)
    return float(np.mean(search(keys, world, paths=paths, width=width)))


def test_an_oracle_finds_the_right_path():
    """TT-07: eight steps of .7: 16 samples hold a right one with 1 - (1 - .7^8)^16;
    beam search loses only where all 16 candidates of a step fail."""
    sampled = 1 - (1 - 0.7**8) ** 16
    error = math.sqrt(sampled * (1 - sampled) / PROBLEMS)
    assert abs(accuracy(ORACLE, 16, 1) - sampled) < 4 * error
    assert accuracy(ORACLE, 16, 4) > 0.999


@pytest.mark.parametrize("paths", [4, 16])
def test_beams_win_on_hard_problems_at_low_budgets(paths):
    """TT-07, TT-26: the same number of steps, noise half of what a mistake costs."""
    assert accuracy(HARD, paths, 4) > accuracy(HARD, paths, 1) + 0.1


def test_beams_over_optimise_on_easy_problems():
    """TT-07, TT-26: accuracy falls as beams are added; of whole samples it does not.

    A step that pleases, 2 in 1,000, is found sooner or later and copied into every
    beam; among whole samples it stays a minority in the weighted vote.
    """
    beams = [accuracy(EASY, paths, 4) for paths in (4, 16, 64)]
    samples = [accuracy(EASY, paths, 1) for paths in (4, 16, 64)]
    assert beams[0] > beams[1] + 0.05 > beams[2] + 0.2
    assert samples[0] - 0.03 < samples[1] < samples[2] + 0.03
    assert samples[2] > 0.97
