"""What the KL term in the reward does to advantages."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.objective_rules import PER_TOKEN, WITHOUT_REWARDS
from rlvr_jax.train.credit import ADVANTAGES, Signals, batch_advantages

REWARDS = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
GROUPS = np.array([0, 0, 0, 1, 1, 1])
MASK = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0], [1, 0, 0]])
KL = np.random.default_rng(0).normal(size=MASK.shape) * MASK


def signals(kl_rewards=None):
    count = len(REWARDS)
    return Signals(
        group_id=jnp.asarray(GROUPS),
        token_mask=jnp.asarray(MASK, bool),
        correct=jnp.asarray(REWARDS > 0),
        kl_rewards=kl_rewards,
        values=jnp.zeros(MASK.shape),
        greedy_rewards=jnp.zeros(count),
        reward_parts=jnp.asarray(REWARDS, jnp.float32)[:, None],
        part_weights=jnp.ones(1),
        history=jnp.zeros((count, 2)),
        history_seen=jnp.ones((count, 2), bool),
    )


def advantages(name, kl_rewards=None):
    objective = Objective(advantage=name, scale_rewards="none")
    kl = None if kl_rewards is None else jnp.asarray(kl_rewards, jnp.float32)
    rewards = jnp.asarray(REWARDS, jnp.float32)
    return np.asarray(batch_advantages(rewards, signals(kl), objective))


@pytest.mark.parametrize("name", sorted(set(ADVANTAGES) - set(WITHOUT_REWARDS)))
def test_each_advantage_reads_the_kl_term(name):
    """KL-09: for those that read no reward the settings are refused."""
    assert not np.allclose(advantages(name), advantages(name, KL), atol=1e-3)
    if name not in PER_TOKEN:  # per completion: as if it had been in the reward
        moved = jnp.asarray(REWARDS + KL.sum(axis=1), jnp.float32)
        objective = Objective(advantage=name, scale_rewards="none")
        np.testing.assert_allclose(
            advantages(name, KL),
            batch_advantages(moved, signals(), objective),
            atol=1e-6,
        )


def test_the_baseline_of_reinforce_pp_is_that_of_rewards_with_their_kl_terms():
    """verl's compute_reinforce_plus_plus_baseline_outcome_advantage, in float64: token
    rewards are summed, the group's mean is taken off, and all tokens are whitened."""
    paid = REWARDS + KL.sum(axis=1)
    means = np.array([paid[GROUPS == group].mean() for group in GROUPS])
    tokens = np.repeat((paid - means)[:, None], MASK.shape[1], axis=1)[MASK > 0]
    expected = np.zeros(MASK.shape)
    expected[MASK > 0] = (tokens - tokens.mean()) / tokens.std()
    np.testing.assert_allclose(
        advantages("reinforce_pp_baseline", KL), expected, atol=1e-5
    )
