"""The same RL from imitation and from comparisons."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.toys import priming, starts
from rlvr_jax.toys.priming import AGAIN, CHECK, UNKNOWN, WRONG

SEEDS, STEPS = 64, 250
BASE, WRITER = priming.policy(0.003, 0.003), priming.policy(0.2, 0.2)
STRONG, WEAK = priming.policy(0.6, 0.6), priming.policy(0.05, 0.05)


def keys(seed):
    return jax.random.split(jax.random.key(seed), SEEDS)


def imitated(start, writer, steps, seed):
    """Each start after imitating 64 traces of a writer."""

    def one(key, logits):
        return priming.primed(key[None], logits, writer, count=64, steps=steps)[0]

    return jax.vmap(one)(keys(seed), start)


@functools.cache
def arms():
    """Policies that RL goes on from: [SEEDS, 3, 4] each."""
    base = jnp.broadcast_to(BASE, (SEEDS, 3, 4))
    first = imitated(base, WRITER, 10, seed=2)
    compared = functools.partial(starts.preferred, keys(3), first, beta=0.3, steps=40)
    return {
        "imitation": first,
        "imitation, as many steps": imitated(first, WRITER, 40, seed=3),
        "imitation of the preferred": imitated(first, STRONG, 40, seed=3),
        "comparisons": compared(STRONG, WEAK),
        "comparisons, turned around": compared(WEAK, STRONG),
    }


@functools.cache
def curves():
    """Exact accuracy before RL and after each step, [SEEDS, 1 + STEPS], by arm."""
    exact = jax.jit(jax.vmap(priming.accuracy))
    found = {}
    for name, start in arms().items():
        after = jax.vmap(exact)(priming.reinforced(keys(1), start, steps=STEPS))
        found[name] = np.concatenate([exact(start)[:, None], after], axis=1)
    return found


def gap(name, other, step=-1):
    """Of two arms, paired by the seeds of RL: mean, and three standard errors."""
    apart = curves()[name][:, step] - curves()[other][:, step]
    return apart.mean(), 3 * apart.std(ddof=1) / np.sqrt(SEEDS)


@pytest.mark.parametrize("other", ["imitation", "imitation, as many steps"])
def test_comparisons_are_the_better_start(other):
    """REC-19: before RL no arm is more than two points from another; after it the start
    by DPO ends ahead of imitation alone, and of imitation that went on for as many
    steps as DPO took, beyond three standard errors over 64 seeds."""
    assert abs(gap("comparisons", other, 0)[0]) < 0.02
    mean, error = gap("comparisons", other)
    assert mean - error > 0


def test_whose_traces_are_preferred_is_what_helps():
    """REC-19, its controls: with the pairs turned around RL stays where it began, in
    every seed; imitating the preferred traces alone is a start at least as good."""
    turned = curves()["comparisons, turned around"]
    assert (turned[:, -1] < 0.16).all()
    mean, error = gap("imitation of the preferred", "comparisons")
    assert mean + error > 0


def test_a_step_raises_the_habits_of_the_preferred():
    """By hand: at the start the loss is log 2 and its gradient -beta/2 (grad log pi of
    the preferred less that of the others), so one step of 1 moves the logits along it;
    checks and returns, which the better writer makes more of, become more likely."""
    start = jnp.broadcast_to(WRITER, (SEEDS, 3, 4))
    moved = starts.preferred(keys(4), start, STRONG, WEAK, beta=0.3, count=32, steps=1)

    def expected(key):
        better, worse = jax.random.split(key)

        def apart(logits):
            sums = []
            for writer, drawn in ((STRONG, better), (WEAK, worse)):
                traces = priming.sample(drawn, writer, 32)
                each = jax.nn.log_softmax(logits)[traces.states, traces.moves]
                sums.append((each * traces.written).sum(axis=1))
            return (sums[0] - sums[1]).mean()

        return WRITER + 0.15 * jax.grad(apart)(WRITER)

    by_hand = jnp.stack([expected(key) for key in keys(4)[:4]])
    np.testing.assert_allclose(moved[:4], by_hand, atol=1e-5)
    before, after = jax.nn.softmax(start), jax.nn.softmax(moved)
    for state, move in ((UNKNOWN, CHECK), (WRONG, AGAIN)):
        assert (after - before)[:, state, move].mean() > 0
