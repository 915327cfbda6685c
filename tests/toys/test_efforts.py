"""Levels of effort in a world whose best lengths are known."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.analysis.thinking import Forced, log_law
from rlvr_jax.toys.efforts import (
    DIFFICULTIES,
    LENGTHS,
    LEVELS,
    PRICES,
    at_length,
    at_price,
    solved,
)


def test_accuracy_is_a_line_in_the_logarithm_of_tokens():
    """REC-35: where difficulties are spread evenly, each doubling buys the share of
    problems within one doubling, 1 of 14; by the fit and at every length of the
    middle."""
    lengths = LENGTHS[1:-1]
    points = [Forced(float(n), float(at_length(n))) for n in lengths]
    doubling = np.log(2) * log_law(points)[1]
    assert abs(doubling - 1 / 14) < 0.003
    gains = np.diff([point.accuracy for point in points])
    np.testing.assert_allclose(gains[1:-1], 1 / 14, atol=0.005)


def test_more_effort_thinks_longer_on_every_problem():
    """TT-19, REC-35: low < medium < high < max, in tokens at every difficulty and in
    accuracy over all."""
    spent = jax.vmap(at_price)(PRICES)
    assert spent.tokens.shape == (len(LEVELS), len(DIFFICULTIES))
    assert (np.diff(spent.tokens, axis=0) > 0).all()
    assert (np.diff(spent.accuracy.mean(axis=1)) > 0).all()


def test_the_order_is_exact():
    """d E[L] / d price = -Var(L) / beta, by differentiation."""
    price, beta = jnp.float32(1e-5), 0.02
    slope = jax.jacobian(lambda p: at_price(p, beta=beta).tokens)(price)
    scores = (np.asarray(solved(LENGTHS, DIFFICULTIES)) - 1e-5 * LENGTHS) / beta
    chosen = np.exp(scores - scores.max(-1, keepdims=True)).astype(np.float64)
    chosen /= chosen.sum(-1, keepdims=True)
    mean = chosen @ LENGTHS
    variance = (chosen * (np.asarray(LENGTHS) - mean[:, None]) ** 2).sum(-1)
    np.testing.assert_allclose(slope, -variance / beta, rtol=2e-3)


def test_one_level_spends_by_difficulty():
    """TT-19: easy problems get few tokens, harder ones more, hopeless ones few again;
    and at equal tokens in all that solves more than a length for everyone."""
    for price in PRICES[:3]:
        spent = at_price(price)
        most = int(spent.tokens.argmax())
        assert 0 < most < len(DIFFICULTIES) - 1
        assert (np.diff(spent.tokens[: most + 1]) > 0).all()
        assert (np.diff(spent.tokens[most:]) < 0).all()
        assert spent.accuracy.mean() > at_length(spent.tokens.mean()) + 0.01
