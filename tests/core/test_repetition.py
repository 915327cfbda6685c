"""Repetition against a count of sets."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.repetition import longest_confident_run, repetition_rate
from tests.core.batches import assert_transforms_agree


def by_hand(row, mask, n):
    grams = [
        tuple(row[i : i + n]) for i in range(len(row) - n + 1) if mask[i : i + n].all()
    ]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_rate_is_that_of_sets(n):
    """AGG-13, DIAG-29: few letters, holes in the mask, one empty row."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 4, (6, 20))
    mask = np.arange(20) < np.array([20, 13, 7, 20, 3, 0])[:, None]
    mask[3, 8] = False
    found = assert_transforms_agree(
        lambda t, m: repetition_rate(t, m, n=n), tokens, mask, atol=1e-7
    )
    expected = [by_hand(row, m, n) for row, m in zip(tokens, mask, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_gibberish_loop_against_plain_text():
    """AGG-13, DIAG-29: a loop of three tokens repeats all but 3 of its 4-grams.

    57 4-grams in 60 tokens, 3 of them distinct; counting upwards repeats nothing.
    """
    loop, count = np.tile([5, 6, 7], 20), np.arange(60)
    found = repetition_rate(jnp.array([loop, count]), jnp.ones((2, 60)))
    np.testing.assert_allclose(found, [1 - 3 / 57, 0.0], atol=1e-6)


def test_error_names_the_range():
    with pytest.raises(ValueError, match=r"1\.\.T = 1\.\.3, got 4"):
        repetition_rate(jnp.ones((1, 3), int), jnp.ones((1, 3)), n=4)


def test_longest_confident_run():
    """DIAG-29: planted runs; a masked token ends one, whatever stands there."""
    sure, unsure = np.log(0.995), np.log(0.9)
    logprobs = np.full((3, 10), sure)
    logprobs[0, [3, 4, 8]] = unsure
    logprobs[1] = unsure
    mask = np.ones((3, 10), bool)
    mask[2, [4, 9]] = False
    logprobs[2, 9] = np.nan
    found = assert_transforms_agree(longest_confident_run, logprobs, mask)
    np.testing.assert_array_equal(found, [3, 0, 4])


def test_a_loop_of_3000_certain_tokens_is_found():
    """DIAG-29: MiniMax-M1's rule: 3,000 tokens in a row with p > .99."""
    logprobs = np.full((2, 3200), np.log(0.999))
    logprobs[:, 100] = np.log(0.5)
    logprobs[1, 3000] = np.log(0.98)
    run = longest_confident_run(jnp.array(logprobs), jnp.ones((2, 3200)))
    np.testing.assert_array_equal(run, [3099, 2899])
    np.testing.assert_array_equal(run >= 3000, [True, False])
