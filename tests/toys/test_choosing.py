"""Votes, favourites of a verifier, and weighted votes over the same samples."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.passk import expected_pass_at_k
from rlvr_jax.toys.choosing import (
    EASY,
    HARD,
    RIGHT,
    TEMPTING,
    World,
    accuracy,
    best_of_n_policy,
    divergence,
    sample,
    simulate,
    tilted_policy,
)

PROBLEMS = 300
HONEST = dataclasses.replace(HARD, exploit=0.0)
curves = functools.cache(simulate)

# Of an independent simulation of 300 problems (NumPy), at these numbers of samples.
VOTE = {4: 0.213, 16: 0.190, 64: 0.050, 256: 0.000}
BEST = {4: 0.488, 16: 0.807, 64: 0.858, 256: 0.640, 1024: 0.201}
BEST_HONEST = {4: 0.508, 16: 0.844, 64: 0.970, 256: 0.990, 1024: 0.998}


@pytest.mark.parametrize(
    ("world", "rule", "expected"),
    [(HARD, "vote", VOTE), (HARD, "best", BEST), (HONEST, "best", BEST_HONEST)],
)
def test_curves_of_hard_problems(world, rule, expected):
    """TT-25, INT-9, TT-02, TT-04: votes fall to 0, best-of-n peaks and declines.

    Four standard errors of the difference of two runs of 300 problems, at a rate
    shrunk towards 1/2 by four problems. Without exploits there is no decline.
    """
    for n, rate in expected.items():
        shrunk = (PROBLEMS * rate + 2) / (PROBLEMS + 4)
        error = math.sqrt(2 * shrunk * (1 - shrunk) / PROBLEMS)
        assert abs(getattr(curves(world), rule)[n - 1] - rate) < 4 * error


def test_best_of_n_is_its_integral():
    """TT-25: n p int f_right(s) F(s)^(n - 1) ds; 4000 problems, four errors."""
    found = simulate(HONEST, problems=4000, n=16).best
    s = np.linspace(-5, 7, 20_001)
    cdf = lambda mean: 0.5 * np.vectorize(math.erfc)((mean - s) / 0.5 / math.sqrt(2))
    density = np.exp(-0.5 * ((s - 1) / 0.5) ** 2) / (0.5 * math.sqrt(2 * math.pi))
    below = 0.2 * cdf(1.0) + 0.8 * cdf(0.0)
    for n in (1, 4, 16):
        exact = np.trapezoid(n * 0.2 * density * below ** (n - 1), s)
        assert abs(found[n - 1] - exact) < 4 * math.sqrt(exact * (1 - exact) / 4000)


def test_the_vote_goes_to_the_most_likely_answer():
    """TT-01: to 1 where that is the right one, to 0 where it is not, in the limit."""
    assert curves(EASY).vote[63] > 0.99
    assert curves(HARD).vote[255] < 0.01
    assert np.diff(curves(EASY).vote[[0, 3, 15, 63]]).min() > 0


def test_a_verifier_that_knows_is_pass_at_n():
    """TT-03: with the label as score the best of n is right where any is: pass@n."""
    world = dataclasses.replace(HONEST, noise=0.0)
    samples = sample(jax.random.split(jax.random.key(1), 4000), world, 16)
    best = accuracy(samples, num_answers=world.tail + 2).best
    any_right = np.cumsum(np.asarray(samples.answers) == RIGHT, axis=1) > 0
    np.testing.assert_array_equal(best, any_right)
    expected = expected_pass_at_k([0.2], 4)
    assert abs(best[:, 3].mean() - expected[0]) < 4 * math.sqrt(0.24 / 4000)


def test_a_weighted_vote_withstands_exploits():
    """TT-05: it ends higher than best-of-n ever comes, and does not fall."""
    found = curves(HARD)
    assert found.weighted[1023] > found.best.max()
    assert found.weighted[255:].min() > 0.99


def test_a_cap_is_found_on_other_problems():
    """TT-06: n of the peak among 150 problems keeps the others near their own peak."""
    samples = sample(jax.random.split(jax.random.key(2), PROBLEMS), HARD, 1024)
    best = np.asarray(accuracy(samples, num_answers=HARD.tail + 2).best)
    chosen = int(best[:150].mean(0).argmax())
    held_out = best[150:].mean(0)
    assert held_out[chosen] > held_out.max() - 0.05
    assert held_out[chosen] > held_out[-1] + 0.5
    assert 16 <= chosen + 1 <= 256


def test_the_proxy_climbs_while_the_truth_turns_over():
    """DIAG-26: the score of the best of n never falls; accuracy peaks inside."""
    samples = sample(jax.random.split(jax.random.key(2), PROBLEMS), HARD, 1024)
    proxy = np.maximum.accumulate(np.asarray(samples.scores), axis=1).mean(0)
    gold = curves(HARD).best
    assert np.diff(proxy).min() >= 0
    assert proxy[-1] > proxy[63] + 1
    assert 16 <= gold.argmax() + 1 <= 256
    assert gold[-1] < gold.max() - 0.5


def test_which_rule_wins_where():
    """TT-26, TT-30: a committee, a judge, and both; 64 samples of 300 problems.

    The vote needs no verifier and wins where most are right and the verifier is noisy
    (4 standard deviations of the label); the judge where the right answer is a
    minority; the weighted vote where the verifier is noisy, or can be fooled. A shared
    misconception beats the vote, an engineered sample the judge.
    """
    at = lambda world, n=64: {
        rule: float(getattr(curves(world, n=n), rule)[n - 1])
        for rule in ("vote", "best", "weighted")
    }
    blurred = at(dataclasses.replace(EASY, noise=4.0))
    assert blurred["vote"] > blurred["best"] + 0.1
    misconception = at(HONEST)
    assert misconception["best"] > 0.9 > 0.2 > misconception["vote"]
    engineered = at(dataclasses.replace(HARD, exploit=0.02))
    assert engineered["weighted"] > 0.9 > 0.5 > engineered["best"]
    noisy = at(dataclasses.replace(HONEST, noise=1.0))
    assert noisy["weighted"] > max(noisy["best"], noisy["vote"])


def test_problems_without_a_right_sample_gain_nothing():
    """TT-16: where p = 0, every rule stays at 0 however many samples."""
    found = curves(World(right=0.0), n=64)
    assert all(curve.max() == 0 for curve in found)


def test_ties_share():
    """By hand: answers right, tempting, tail; scores .4, 1, -.5."""
    samples = sample(jax.random.split(jax.random.key(0), 1), HARD, 3)
    samples = samples._replace(
        answers=jnp.array([[RIGHT, TEMPTING, 2]]), scores=jnp.array([[0.4, 1.0, -0.5]])
    )
    found = accuracy(samples, num_answers=3)
    np.testing.assert_allclose(found.vote[0], [1, 1 / 2, 1 / 3], rtol=1e-6)
    np.testing.assert_array_equal(found.best[0], [1, 0, 0])
    np.testing.assert_array_equal(found.weighted[0], [1, 0, 0])


@pytest.mark.parametrize("n", [2, 8, 64])
def test_best_of_n_against_the_optimum_of_the_same_divergence(n):
    """TT-10: KL = log n - (n - 1) / n; RL may reach as much reward at the same KL.

    100,000 equally likely answers whose scores are all different and uniform. Best-of-n
    has mean n / (n + 1); the tilted policy has the most that this KL allows.
    """
    size = 100_000
    base = np.full(size, 1 / size)
    scores = np.random.default_rng(0).permutation(np.arange(size)) / size
    chosen = best_of_n_policy(base, scores, n)
    kl = divergence(chosen, base)
    assert kl == pytest.approx(math.log(n) - (n - 1) / n, abs=n / size * 5)
    assert chosen @ scores == pytest.approx(n / (n + 1), abs=1e-4)
    optimum = tilted_policy(base, scores, kl)
    assert divergence(optimum, base) == pytest.approx(kl, abs=1e-6)
    gain = optimum @ scores - chosen @ scores
    assert 0 <= gain < 0.02
