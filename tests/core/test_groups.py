"""Sums within groups: ids in any order, ids that do not exist."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import baselines, groups, passk_advantages, process, shaping
from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.sequence_losses import log_partition
from rlvr_jax.core.token_baselines import optimal_token_advantages

ALL = jnp.ones(4, bool)
REWARDS = jnp.array([1.0, 0.0, 0.5, 0.25])
TOKENS = jnp.stack([REWARDS, REWARDS], axis=1)
STEPS = jnp.ones((4, 2), bool)


def test_sums_means_and_maxima_by_hand():
    values, group_id = jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([3, 0, 3, 0])
    kept = jnp.array([True, True, True, False])
    np.testing.assert_array_equal(
        groups.group_sum(values, group_id, kept), [5, 2, 5, 2]
    )
    np.testing.assert_array_equal(
        groups.group_mean(values, group_id, kept), [2.5, 2, 2.5, 2]
    )
    np.testing.assert_array_equal(
        groups.group_max(values, group_id, kept), [4, 2, 4, 2]
    )
    np.testing.assert_array_equal(
        groups.group_is_constant(values, group_id, kept), [False, True, False, True]
    )


@pytest.mark.parametrize("bad", [-1, 4, 1000])
@pytest.mark.parametrize(
    "function",
    [
        lambda ids: group_advantages(REWARDS, ids),
        lambda ids: group_advantages(REWARDS, ids, scale="none"),
        lambda ids: baselines.weighted_mean_advantages(REWARDS, ids, REWARDS),
        lambda ids: baselines.gpg_advantages(REWARDS, ids),
        lambda ids: baselines.best_of_group_advantages(REWARDS, ids),
        lambda ids: passk_advantages.passk_advantages(REWARDS > 0.4, ids, k=1),
        lambda ids: process.process_advantages(TOKENS, STEPS, ids, STEPS)[:, 0],
        lambda ids: shaping.kimi_length_rewards(jnp.arange(4), ALL, ids),
        lambda ids: log_partition(REWARDS, ids, tau=1.0),
        lambda ids: optimal_token_advantages(TOKENS, ids, TOKENS, TOKENS, STEPS)[:, 0],
    ],
)
def test_an_id_that_does_not_exist_gives_nan_not_a_wrong_number(function, bad):
    """Other rows are those of a batch without it, if only groups enter."""
    found = np.asarray(function(jnp.array([0, 0, 0, bad])))
    assert np.isnan(found[3])
    assert np.isfinite(found[:3]).all()
