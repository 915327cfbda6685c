"""Entropy matched by temperature: solved exactly, and what it can give back."""

import numpy as np
import pytest

from rlvr_jax.core.temperature import (
    mean_entropy,
    recovered_share,
    temperature_for_entropy,
)


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def test_entropy_of_known_distributions():
    """A coin has log 2, a certain token 0, and logits of -inf do no harm."""
    coin = np.array([[0.0, 0.0, -np.inf]])
    assert mean_entropy(coin, 0.3) == pytest.approx(np.log(2))
    assert mean_entropy(np.array([[0.0, -np.inf]]), 1.0) == 0
    logits = np.random.default_rng(0).normal(0, 2, (5, 7))
    p = softmax(logits / 0.7)
    assert mean_entropy(logits, 0.7) == pytest.approx(-(p * np.log(p)).sum(1).mean())


def test_temperature_is_solved_for():
    """PK-14: the entropy at the solution is the target to 1e-9."""
    logits = np.random.default_rng(1).normal(0, 4, (30, 16))
    for target in (0.05, 1.0, 2.5):
        found = temperature_for_entropy(logits, target)
        assert mean_entropy(logits, found) == pytest.approx(target, abs=1e-9)
    with pytest.raises(ValueError, match="outside of"):
        temperature_for_entropy(logits, 3.0)


def test_temperature_gives_back_spread_and_not_support():
    """PK-14: gap decomposition. 20 problems, right answer among 8; training doubles all
    logits (spread, which a temperature undoes) and takes the right answer of half of
    the problems down by 6 nats (support, which it does not).

    With the first alone all of the base's lead at k = 64 comes back; with both a part.
    """
    base = np.random.default_rng(2).normal(0, 2, (20, 8))
    sharpened = 2 * base
    lost = sharpened.copy()
    lost[::2, 0] -= 6

    def at_64(logits, temperature):
        return (1 - (1 - softmax(logits / temperature)[:, 0]) ** 64).mean()

    shares = {}
    for name, trained in (("sharpened", sharpened), ("lost", lost)):
        matched = temperature_for_entropy(trained, mean_entropy(base, 1.0))
        shares[name] = recovered_share(
            at_64(base, 1.0), at_64(trained, 1.0), at_64(trained, matched)
        )
    assert shares["sharpened"] == pytest.approx(1)
    assert 0.1 < shares["lost"] < 0.9
    assert np.isnan(recovered_share(0.5, 0.6, 0.6))
