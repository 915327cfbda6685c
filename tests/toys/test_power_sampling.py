"""Samples of p^alpha against its enumeration."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.toys.power_sampling import (
    Chain,
    enumerate_all,
    logprob,
    power_sample,
    tempered,
)

LENGTH, ALPHA = 4, 4.0
# The likely first token leads nowhere in particular; the unlikely one to one answer.
CHAIN = Chain(
    jnp.log(jnp.array([0.5, 0.3, 0.2])),
    jnp.log(jnp.array([[0.4, 0.3, 0.3], [0.05, 0.9, 0.05], [0.2, 0.2, 0.6]])),
)
ALL = enumerate_all(3, LENGTH)


def distribution(logits):
    return np.asarray(jax.nn.softmax(logits), float)


def test_samples_have_the_power_distribution_and_not_that_of_a_temperature():
    """PK-18: 3 tokens, length 4: total variation from p^4 / Z below .03, from the
    temperature 1/4 per token above .3. 20,000 chains of 400 steps: 81 cells of noise
    alone give about .5 sum sqrt(2 p (1 - p) / pi / n) = .01."""
    found = power_sample(
        jax.random.split(jax.random.key(0), 20_000),
        CHAIN,
        length=LENGTH,
        alpha=ALPHA,
        steps=400,
    )
    places = np.asarray(found) @ 3 ** np.arange(LENGTH - 1, -1, -1)
    empirical = np.bincount(places, minlength=len(ALL)) / len(places)
    target = distribution(ALPHA * logprob(CHAIN, jnp.array(ALL)))
    by_token = distribution(logprob(tempered(CHAIN, 1 / ALPHA), jnp.array(ALL)))
    distance = lambda p, q: np.abs(p - q).sum() / 2
    assert distance(empirical, target) < 0.03
    assert distance(by_token, target) > 0.3
    assert distance(empirical, by_token) > 0.3


def test_alpha_1_is_the_base():
    """Every proposal is accepted then, and the base is what comes out."""
    found = power_sample(
        jax.random.split(jax.random.key(1), 20_000),
        CHAIN,
        length=LENGTH,
        alpha=1.0,
        steps=40,
    )
    places = np.asarray(found) @ 3 ** np.arange(LENGTH - 1, -1, -1)
    empirical = np.bincount(places, minlength=len(ALL)) / len(places)
    base = distribution(logprob(CHAIN, jnp.array(ALL)))
    assert np.abs(empirical - base).sum() / 2 < 0.04
