"""Tokens held back by covariance: by the loss's own ratio, by the run's seed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.train.objective import Rows, old_logprobs
from rlvr_jax.train.selected import selection_masks

SHAPE = (1, 4, 64)


def rows():
    """Old log-probs are the policy's; those of the sampler are 1 nat lower."""
    policy = jnp.full(SHAPE, -2.0)
    return Rows(
        completion_tokens=jnp.zeros(SHAPE, jnp.int32),
        token_mask=jnp.ones(SHAPE),
        weights=jnp.ones(SHAPE),
        advantages=jnp.ones((1, 4, 1)),
        correct=jnp.ones((1, 4)),
        rollout_logprobs=policy - 1.0,
        old_logprobs=policy,
        reference_logprobs=None,
        kept_tokens=None,
    )


@pytest.mark.parametrize(("old_policy", "ratio"), [("trainer", 1.0), ("rollout", np.e)])
def test_the_ratio_is_to_the_policy_that_the_objective_names(old_policy, ratio):
    objective = Objective(surrogate="clip_cov", old_policy=old_policy)
    policy = rows().old_logprobs.reshape(4, 64)
    old = old_logprobs(policy, rows(), objective)
    np.testing.assert_allclose(np.exp(policy - old), ratio, rtol=1e-6)
    alone = dataclasses.replace(rows(), old_logprobs=None)
    np.testing.assert_array_equal(
        old_logprobs(policy, alone, objective), old if ratio > 1 else policy
    )


def masks(seed, old_shift=0.0):
    """Tokens that count; a tenth of those with a covariance in the band are drawn."""
    random = np.random.default_rng(0)
    policy = jnp.asarray(random.normal(size=(4, 64)), jnp.float32)
    objective = Objective(
        surrogate="clip_cov",
        covariance_fraction=0.1,
        covariance_min=-9.0,
        covariance_max=9.0,
    )
    return np.asarray(
        selection_masks(
            policy,
            jnp.ones((4, 64)),
            policy - old_shift,
            jnp.asarray(random.normal(size=4), jnp.float32) ** 2,
            jnp.ones((4, 64)),
            objective,
            jax.random.key(seed),
        )[0]
    )


def test_what_is_clipped_already_is_not_held_back():
    """Ratio e, advantages above 0: the clip has all of them."""
    assert (~masks(0)).sum() > 0
    assert masks(0, old_shift=1.0).all()


def test_another_seed_holds_back_others():
    assert (masks(0) == masks(0)).all()
    assert (masks(0) != masks(1)).any()
