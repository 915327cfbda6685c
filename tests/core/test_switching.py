"""The thought switching penalty on logits."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.switching import switch_penalty, tokens_since_switch

SWITCHES = np.array([3, 7])


def test_the_age_of_a_thought_equals_the_loop():
    """TT-21: a counter that a switch sets to 0, row by row."""
    tokens = np.random.default_rng(0).integers(0, 9, (4, 30))
    expected = np.zeros_like(tokens)
    for row in range(4):
        age = 0
        for place in range(30):
            age = 0 if place == 0 or tokens[row, place] in SWITCHES else age + 1
            expected[row, place] = age
    found = tokens_since_switch(jnp.asarray(tokens), jnp.asarray(SWITCHES))
    np.testing.assert_array_equal(found, expected)


def test_switches_of_a_young_thought_lose_alpha():
    """TT-21: minus 3 at the switch tokens for 600 tokens, nothing else, then nothing;
    the odds of switching fall by e^3."""
    logits = np.random.default_rng(1).normal(size=(3, 9)).astype(np.float32)
    ages = jnp.array([0, 599, 600])
    found = jax.jit(switch_penalty)(jnp.asarray(logits), ages, jnp.asarray(SWITCHES))
    expected = logits.copy()
    expected[:2, SWITCHES] -= 3
    np.testing.assert_array_equal(found, expected)
    odds = lambda z: np.exp(z)[SWITCHES].sum() / np.delete(np.exp(z), SWITCHES).sum()
    np.testing.assert_allclose(
        odds(logits[0]) / odds(np.asarray(found)[0]), np.exp(3), rtol=1e-5
    )


def test_no_strength_changes_nothing():
    logits = jnp.arange(9.0)[None]
    found = switch_penalty(logits, jnp.array([0]), jnp.asarray(SWITCHES), alpha=0.0)
    np.testing.assert_array_equal(found, logits)
