"""The optimal token baseline against a loop over groups and positions."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.token_baselines import optimal_token_advantages
from tests.core.variants import VARIANTS, run

GROUP_ID = np.array([1, 0, 1, 1, 0, 4], np.int32)
MASK = np.array(
    [
        [1, 1, 0, 0, 1],
        [1, 1, 1, 1, 1],
        [1, 0, 1, 1, 1],
        [0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
    ],
    np.int32,
)
OPTIONS = [(align, tail) for align in ("position", "kept") for tail in (True, False)]


def inputs(seed):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(4), size=MASK.shape)
    rewards = rng.normal(size=MASK.shape)
    return rewards, np.log(probs[..., 0]), (probs**2).sum(-1)


def loop(rewards, logprobs, squares, align, bare_tail):
    returns = np.zeros(MASK.shape)
    energy = np.zeros(MASK.shape)
    place = np.zeros(MASK.shape, int)
    for i in range(len(MASK)):
        kept = np.flatnonzero(MASK[i])
        for n, t in enumerate(kept):
            returns[i, t] = sum(rewards[i, s] for s in kept[n:])
            energy[i, t] = sum(
                1 - 2 * np.exp(logprobs[i, s]) + squares[i, s] for s in kept[: n + 1]
            )
            place[i, t] = n if align == "kept" else t
    found = np.zeros(MASK.shape)
    for i, t in zip(*np.nonzero(MASK), strict=True):
        peers = [
            (j, s)
            for j, s in zip(*np.nonzero(MASK), strict=True)
            if GROUP_ID[j] == GROUP_ID[i] and place[j, s] == place[i, t]
        ]
        baseline = sum(energy[p] * returns[p] for p in peers)
        baseline /= sum(energy[p] for p in peers) + 1e-8
        found[i, t] = returns[i, t] - (0 if bare_tail and len(peers) == 1 else baseline)
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_loop(variant):
    def ours(*arrays):
        """All options, one block each."""
        return jnp.stack(
            [
                optimal_token_advantages(
                    arrays[0],
                    jnp.asarray(GROUP_ID),
                    *arrays[1:],
                    jnp.asarray(MASK),
                    align=align,
                    bare_tail=tail,
                )
                for align, tail in OPTIONS
            ]
        )

    batches = [inputs(seed) for seed in range(2)]
    found = run(variant, ours, *map(np.stack, zip(*batches, strict=True)))
    expected = [[loop(*batch, *options) for options in OPTIONS] for batch in batches]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_by_hand():
    """Two rows, one token: W = 1 - 2 pi + sum pi^2 of two-way choices.

    pi = 3/4: 1 - 3/2 + 10/16 = 1/8; pi = 1/4: 1 - 1/2 + 10/16 = 9/8. Baseline of
    returns 1 and 0: (1/8) / (10/8) = 0.1.
    """
    found = optimal_token_advantages(
        jnp.array([[1.0], [0.0]]),
        jnp.zeros(2, int),
        jnp.log(jnp.array([[0.75], [0.25]])),
        jnp.full((2, 1), 10 / 16),
        jnp.ones((2, 1)),
    )
    np.testing.assert_allclose(found, [[0.9], [-0.1]], rtol=1e-5)


def test_alignments_agree_without_holes():
    mask = jnp.asarray(np.sort(MASK, axis=1)[:, ::-1])
    rewards, logprobs, squares = map(jnp.asarray, inputs(0))
    arguments = (rewards, jnp.asarray(GROUP_ID), logprobs, squares, mask)
    by_position = optimal_token_advantages(*arguments, align="position")
    by_count = optimal_token_advantages(*arguments, align="kept")
    np.testing.assert_allclose(by_position, by_count, rtol=1e-6)


def test_importance_weights_enter_squared():
    """Weights (2, 1) make energies 4/8 and 9/8: baseline 4/13."""
    found = optimal_token_advantages(
        jnp.array([[1.0], [0.0]]),
        jnp.zeros(2, int),
        jnp.log(jnp.array([[0.75], [0.25]])),
        jnp.full((2, 1), 10 / 16),
        jnp.ones((2, 1)),
        importance_weights=jnp.array([[2.0], [1.0]]),
    )
    np.testing.assert_allclose(found[:, 0], [9 / 13, -4 / 13], rtol=1e-5)


def test_alignment_is_checked():
    unchecked = getattr(
        optimal_token_advantages, "__wrapped__", optimal_token_advantages
    )
    one = jnp.ones((1, 1))
    with pytest.raises(ValueError, match="'position' or 'kept', got 'turn'"):
        unchecked(one, jnp.zeros(1, int), one, one, one, align="turn")
