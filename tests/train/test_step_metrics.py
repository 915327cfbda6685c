"""What a step logs about its tokens and groups, on planted batches."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.train.objective import Rows
from rlvr_jax.train.step_metrics import batch_metrics, finished, token_metrics
from rlvr_jax.train.surrogates import Terms
from rlvr_jax.types import Rollouts

CLIP = Objective(epsilon_low=0.2, epsilon_high=0.2)


def logged(
    policy, old, advantages, mask, *, entropies=None, objective=CLIP, sampler=None
):
    """Metrics of one micro-batch, from arrays [B, T] and advantages [B]."""
    policy, old, mask = (jnp.asarray(x, jnp.float32) for x in (policy, old, mask))
    sampler = old if sampler is None else jnp.asarray(sampler, jnp.float32)
    advantages = jnp.asarray(advantages, jnp.float32)
    log_ratio = jnp.where(mask > 0, policy - old, 0.0)
    terms = Terms(
        policy_logprobs=policy,
        old_logprobs=old,
        log_ratio=log_ratio,
        token_log_ratio=log_ratio,
        advantages=advantages,
        token_mask=mask,
        selected=None,
    )
    rows = Rows(
        completion_tokens=jnp.zeros((1, *mask.shape), int),
        token_mask=mask[None],
        weights=mask[None],
        advantages=advantages.reshape(1, -1, 1),
        correct=(advantages > 0).astype(jnp.float32)[None],
        rollout_logprobs=sampler[None],
        old_logprobs=old[None],
        reference_logprobs=None,
        kept_tokens=None,
    )
    entropies = jnp.zeros_like(mask) if entropies is None else jnp.asarray(entropies)
    sums, peaks = token_metrics(terms, entropies, rows, objective)
    return {name: float(value) for name, value in (finished(sums) | peaks).items()}


def test_clips_are_counted_by_the_old_probability():
    """DIAG-03: four tokens in the lowest bin, two of them clipped, one in the highest
    that cannot be."""
    old = np.log([[0.1, 0.1, 0.1, 0.1], [0.95, 0.5, 0.5, 0.5]])
    ratio = np.array([[1.5, 1.5, 1.0, 0.5], [1.05, 1.0, 1.3, 1.0]])
    mask = [[1, 1, 1, 1], [1, 1, 0, 0]]
    found = logged(old + np.log(ratio), old, [1.0, 1.0], mask)
    bins = [found[f"clip/probability_bin_{k}"] for k in range(1, 6)]
    np.testing.assert_allclose(bins, [0.5, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(found["clip/high"], 2 / 6, rtol=1e-6)
    assert found["clip/low"] == 0  # a ratio of 0.5 with A > 0 keeps its gradient
    np.testing.assert_allclose(found["clip/high_probability"], 0.15, rtol=1e-5)


@pytest.mark.parametrize("surrogate", ["reinforce", "sapo", "gmpo", "kl_cov"])
def test_surrogates_without_a_clip_log_none(surrogate):
    objective = Objective(surrogate=surrogate)
    zeros = np.zeros((1, 2))
    found = logged(zeros - 1, zeros - 1, [1.0], zeros + 1, objective=objective)
    assert not [name for name in found if name.startswith("clip/")]


def test_covariance_of_a_step_is_that_of_numpy():
    """DIAG-05, ENT-08: over kept tokens, each with the advantage of its row."""
    rng = np.random.default_rng(0)
    policy = -rng.exponential(size=(5, 7))
    advantages = rng.normal(size=5)
    mask = rng.random((5, 7)) < 0.7
    found = logged(policy, policy, advantages, mask)
    pairs = np.stack([policy[mask], np.repeat(advantages[:, None], 7, 1)[mask]])
    expected = np.cov(pairs, ddof=0)[0, 1]
    np.testing.assert_allclose(found["entropy/covariance"], expected, rtol=1e-4)
    np.testing.assert_allclose(found["logprob/mean"], policy[mask].mean(), rtol=1e-5)


def test_entropy_by_outcome_and_quarter():
    """DIAG-05: entropy 1, 2, 3, 4 in the quarters of eight positions; no completion
    reaches the last one."""
    entropies = np.repeat([[1.0, 2.0, 3.0, 4.0]], 2, axis=1).repeat(2, axis=0)
    mask = [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]]
    zeros = np.zeros((2, 8))
    found = logged(zeros, zeros, [1.0, -1.0], mask, entropies=entropies)
    quarters = [found[f"entropy/quarter_{k}"] for k in range(1, 5)]
    assert quarters == [1, 2, 3, 0]
    np.testing.assert_allclose(found["entropy/correct"], 12 / 6)
    np.testing.assert_allclose(found["entropy/wrong"], 4 / 3, rtol=1e-6)


def test_spread_of_the_ratio():
    """Ratios 0.5 and 2.5: mean 1.5, std 1."""
    ratio = np.log([[0.5, 2.5, 9.0]])
    found = logged(ratio, np.zeros((1, 3)), [1.0], [[1, 1, 0]])
    np.testing.assert_allclose(found["ratio/mean"], 1.5, rtol=1e-6)
    np.testing.assert_allclose(found["ratio/std"], 1.0, rtol=1e-6)


def test_a_planted_mismatch_is_logged_in_every_figure():
    """DIAG-07: noise of 0.2 nats on the sampler's log-probs, and one token far off.

    Expected: NumPy in float64, over the kept tokens; 0.02 nats is the noise's own
    0.2^2 / 2 (seed 0; 2,000 tokens, so k3 has a standard error of about 0.0006).
    """
    rng = np.random.default_rng(0)
    trainer = -rng.exponential(size=(20, 100)) - 1.0
    noise = 0.2 * rng.normal(size=trainer.shape)
    mask = rng.random(trainer.shape) < 0.8
    quiet = logged(trainer, trainer, np.ones(20), mask, sampler=trainer + noise)
    np.testing.assert_allclose(quiet["mismatch/kl"], 0.02, atol=0.002)
    np.testing.assert_allclose(quiet["mismatch/effective_share"], 0.96, atol=0.005)

    noise[0, 0], mask[0, 0] = -3.0, True
    sampler = trainer + noise
    found = logged(trainer, trainer, np.ones(20), mask, sampler=sampler)
    gap, p, q = -noise[mask], np.exp(trainer[mask]), np.exp(sampler[mask])
    weights = np.exp(gap)
    expected = {
        "kl": np.mean(np.exp(gap) - 1 - gap),
        "kl_k1": -gap.mean(),
        "effective_share": weights.sum() ** 2 / (weights.size * (weights**2).sum()),
        "beyond_0.01": np.mean(np.abs(gap) > 0.01),
        "beyond_0.1": np.mean(np.abs(gap) > 0.1),
        "beyond_1": 1 / gap.size,
        "probability_gap": np.abs(p - q).mean(),
        "probability_gap_max": np.abs(p - q).max(),
        "abs_logprob_mean": np.abs(gap).mean(),
        "abs_logprob_max": 3.0,
        "correlation": np.corrcoef(p, q)[0, 1],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[f"mismatch/{name}"], value, rtol=2e-4, atol=1e-6, err_msg=name
        )


def test_the_correlation_of_nearly_equal_log_probs_is_one():
    """DIAG-07: of small probabilities, whose variance is next to nothing; what one
    device and another make of it must not differ in the fifth digit."""
    rng = np.random.default_rng(1)
    trainer = np.log(0.03 * rng.random((20, 100)) + 1e-4)
    noise = 1e-6 * rng.normal(size=trainer.shape)
    mask = np.ones(trainer.shape)
    found = logged(trainer, trainer, np.ones(20), mask, sampler=trainer + noise)
    np.testing.assert_allclose(found["mismatch/correlation"], 1.0, atol=2e-7)
    # Half of the tokens by other probabilities; variances of 7e-5 have three digits.
    other = np.where(rng.random(trainer.shape) < 0.5, trainer, rng.permuted(trainer))
    found = logged(trainer, trainer, np.ones(20), mask, sampler=other)
    expected = np.corrcoef(np.exp(trainer).ravel(), np.exp(other).ravel())[0, 1]
    np.testing.assert_allclose(found["mismatch/correlation"], expected, atol=3e-3)


def test_repetition_is_logged_beside_entropy_and_length():
    """AGG-13: a loop of two tokens has one 4-gram twice in six of eight; expected
    counts are those of Python sets."""
    tokens = np.array(
        [[[5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]]]
    )
    lengths = np.array([[11, 8]])
    expected = []
    for row, length in zip(tokens[0], lengths[0], strict=True):
        grams = [tuple(row[i : i + 4]) for i in range(length - 3)]
        expected.append(1 - len(set(grams)) / len(grams))
    assert expected == [0.75, 0.0]
    ones = jnp.ones((1, 2))
    rollouts = Rollouts(
        prompt_tokens=jnp.zeros((1, 1), int),
        prompt_lengths=jnp.ones(1, int),
        completion_tokens=jnp.asarray(tokens),
        completion_lengths=jnp.asarray(lengths),
        ended=ones > 0,
        rollout_logprobs=jnp.zeros(tokens.shape),
        group_id=jnp.zeros((1, 2), int),
    )
    found = batch_metrics(rollouts, ones, ones, ones, ones[..., None])
    np.testing.assert_allclose(found["completion/repetition"], np.mean(expected))
    assert float(found["completion/length_mean"]) == 9.5


def test_groups_by_their_number_of_correct_completions():
    """DIAG-02: of four groups of two, one has none right, two have one, one has two."""
    correct = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    shape = correct.shape
    rollouts = Rollouts(
        prompt_tokens=jnp.zeros((4, 1), int),
        prompt_lengths=jnp.ones(4, int),
        completion_tokens=jnp.zeros((*shape, 3), int),
        completion_lengths=jnp.full(shape, 2),
        ended=jnp.ones(shape, bool),
        rollout_logprobs=jnp.zeros((*shape, 3)),
        group_id=jnp.repeat(jnp.arange(4), 2).reshape(shape),
    )
    advantages = (correct - correct.mean(axis=1, keepdims=True))[..., None]
    found = batch_metrics(rollouts, correct, correct, correct, advantages)
    histogram = [float(found[f"pass_rate/histogram_{k}"]) for k in range(3)]
    assert histogram == [0.25, 0.5, 0.25]
    assert float(found["pass_rate/all_correct"]) == 0.25
    assert float(found["advantage/zero_share"]) == 0.5
