"""Batches ahead of their turn, with a collector that counts."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.data.curriculum import BatchShort
from rlvr_jax.train.ahead import Ahead
from rlvr_jax.train.collect import Batch, Tally
from tests.train.test_collect import rollouts, scores

KEPT = np.ones(1, bool)


class Counting:
    """A collector whose place moves by 10 per batch, also by one that fails."""

    def __init__(self, fails_at=None):
        self.place, self.fails_at, self.seen = 0, fails_at, []

    def __call__(self, weights, step):
        self.seen.append((step, int(weights["version"][...])))
        self.place += 10
        if step == self.fails_at:
            raise BatchShort("short")
        return Batch(np.array([step]), rollouts([step]), scores([step]), KEPT), Tally()

    def state(self):
        return {"place": self.place}


def policy(version):
    return nnx.State({"version": nnx.Param(jnp.int32(version))})


def version_of(weights):
    return int(weights["version"][...])


def ahead(collect, staleness, steps=10):
    return Ahead(collect, collect.state, staleness=staleness, steps=steps)


@pytest.mark.parametrize("staleness", [0, 1, 2])
def test_what_is_saved_when_the_rules_end_a_run_is_from_before_that_batch(staleness):
    """The next start collects the failing batch again: the same draws, the same
    policies, as if it had not been tried."""
    collect = Counting(fails_at=3)
    first = ahead(collect, staleness)
    for step in range(3):
        assert first(policy(step), step)[0].indices == [step]
    with pytest.raises(BatchShort):
        first(policy(3), 3)
    state, behaviour = first.state(), first.behaviour(policy(3))
    assert state == {"place": 30}
    assert [version_of(each) for each in behaviour] == [*range(3 - staleness, 3)]
    first.close()
    again = Counting()
    again.place = state["place"]
    second = ahead(again, staleness)
    second.resume(behaviour, 3)
    assert second(policy(3), 3)[0].indices == [3]
    second.close()
    tried = [each for each in collect.seen if each[0] >= 3]
    # How many more have begun by now is the thread's affair.
    both = zip(again.seen, tried, strict=False)
    assert all(one == other for one, other in both)
    assert again.seen[0][0] == 3


def test_batches_under_way_are_those_of_a_run_that_is_saved_between_steps():
    """After step 2 of staleness 1 the batch of step 3 is under way, from policy 2."""
    collect = Counting()
    first = ahead(collect, 1)
    for step in range(3):
        first(policy(step), step)
    assert [version_of(each) for each in first.behaviour(policy(3))] == [2]
    assert first.state() == {"place": 30}
    first.close()
