"""What must hold for every surrogate under every aggregation.

Padding changes nothing, masking a row is dropping it, rows may come in any order,
micro-batches add up, empty rows and batches are finite, NaN never leaves its place.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core import (
    aggregation,
    entropy,
    kl,
    losses,
    offpolicy,
    ranking,
    ratios,
    selection,
    weighted_losses,
)
from tests.core.batches import Batch, ragged

BOUNDS = {"epsilon_low": 0.2, "epsilon_high": 0.28}
TIGHT = {"epsilon_low": 0.02, "epsilon_high": 0.03}


def level(of):
    """A surrogate of the row's ratio instead of the token's."""
    return lambda b, logp, d: losses.clipped_loss(of(d, b.mask), b.advantages, **TIGHT)


# Each takes (batch, policy log-probs, token log-ratios) and gives a loss per token.
SURROGATES = {
    "PPO": lambda b, logp, d: losses.clipped_loss(d, b.advantages, **BOUNDS),
    "dual clip": lambda b, logp, d: losses.clipped_loss(
        d, b.advantages, dual_clip=1.3, **BOUNDS
    ),
    "GSPO": level(ratios.sequence_log_ratio),
    "GSPO-token": level(ratios.sequence_token_log_ratio),
    "SAPO": lambda b, logp, d: losses.sapo_loss(d, b.advantages),
    "GMPO": lambda b, logp, d: losses.gmpo_loss(d, b.advantages, b.mask),
    "REINFORCE": lambda b, logp, d: losses.reinforce_loss(logp, b.advantages),
    "DRO": lambda b, logp, d: losses.dro_loss(logp, d, b.advantages, beta=0.1),
    "CISPO": lambda b, logp, d: weighted_losses.cispo_loss(
        logp, d, b.advantages, epsilon_high=0.28
    ),
    "DIS": lambda b, logp, d: weighted_losses.dis_loss(logp, d, b.advantages, **BOUNDS),
    "DPPO-TV": lambda b, logp, d: weighted_losses.dppo_loss(
        logp, b.old, b.advantages, b.mask, threshold_low=0.05, threshold_high=0.05
    ),
    "DPPO-KL": lambda b, logp, d: weighted_losses.dppo_loss(
        logp,
        b.old,
        b.advantages,
        b.mask,
        divergence="kl",
        threshold_low=0.01,
        threshold_high=0.01,
    ),
    "VESPO": lambda b, logp, d: losses.reinforce_loss(
        logp, b.advantages, weighted_losses.vespo_weights(d, b.advantages, b.mask)
    ),
    "KL k3": lambda b, logp, d: kl.kl_estimate(logp, b.reference, token_mask=b.mask),
    "KL, importance-corrected": lambda b, logp, d: kl.importance_corrected_kl(
        kl.kl_estimate(logp, b.reference, token_mask=b.mask), d
    ),
    "entropy bonus": lambda b, logp, d: entropy.entropy_bonus_loss(
        -logp, coefficient=0.01
    ),
    "TIS": lambda b, logp, d: (
        losses.clipped_loss(d, b.advantages, **BOUNDS)
        * offpolicy.importance_weights(
            ratios.token_log_ratio(b.old, b.rollout, b.mask), b.mask, upper=1.1
        )
    ),
    "V3.2 mask": lambda b, logp, d: (
        losses.clipped_loss(d, b.advantages, **BOUNDS)
        * offpolicy.negative_sequence_mask(
            logp, b.rollout, b.advantages, b.mask, threshold=0.01
        )
    ),
    "MIS-PO": lambda b, logp, d: losses.reinforce_loss(
        logp,
        b.advantages,
        offpolicy.mispo_mask(
            ratios.token_log_ratio(b.old, b.rollout, b.mask),
            b.mask,
            sequence_band=(0.9, 1.1),
        ),
    ),
}

# Which tokens are selected depends on the whole batch: no sum over micro-batches.
BATCH_WIDE = {
    "KL-Cov": lambda b, logp, d: selection.kl_cov_loss(
        d,
        b.advantages,
        ranking.top_tokens(
            selection.token_covariance(logp, b.advantages, b.mask),
            b.mask,
            selection.token_count(b.mask, 0.2),
        ),
    ),
    "Clip-Cov": lambda b, logp, d: (
        losses.clipped_loss(d, b.advantages, **BOUNDS)
        * selection.clip_cov_mask(
            selection.token_covariance(logp, b.advantages, b.mask),
            b.mask,
            selection.token_count(b.mask, 0.2),
            covariance_min=0.0,
        )
    ),
    "top entropy": lambda b, logp, d: (
        losses.clipped_loss(d, b.advantages, **BOUNDS)
        * selection.top_entropy_mask(-logp, b.mask, keep_fraction=0.3)
    ),
}
EVERY = SURROGATES | BATCH_WIDE

grid = pytest.mark.parametrize("mode", aggregation.AGGREGATIONS)
every = pytest.mark.parametrize("name", EVERY)


def weights_of(batch, mode):
    return aggregation.token_weights(
        jnp.array(batch.mask),
        jnp.array(batch.group_id),
        loss_aggregation=mode,
        constant_length=16,
    )


@functools.partial(jax.jit, static_argnames="name")
def numerator(policy, batch, weights, name):
    """Numerator of the loss and its gradient."""

    def total(policy):
        log_ratio = ratios.token_log_ratio(policy, batch.old, batch.mask)
        per_token = EVERY[name](batch, policy, log_ratio)
        return aggregation.aggregate(per_token, weights, jnp.ones(())).numerator

    return jax.value_and_grad(total)(policy)


def loss_and_grad(batch: Batch, name: str, mode: str):
    """The loss of a whole batch and its gradient at every token."""
    weights, denominator = weights_of(batch, mode)
    arrays = Batch(*(jnp.asarray(array) for array in batch))
    value, gradient = numerator(arrays.policy, arrays, weights, name=name)
    scale = 1.0 / max(float(denominator), 1.0)
    return float(value) * scale, np.asarray(gradient) * scale


def change(batch, function):
    """Every [B, T] array changed in the same way."""
    return Batch(*(function(a) if a.ndim == 2 else a for a in batch))


pytestmark = pytest.mark.usefixtures("x64")


@every
@grid
def test_padding_on_the_right_changes_nothing(name, mode):
    batch = ragged()
    wider = change(batch, lambda a: np.pad(a, ((0, 0), (0, 3)), constant_values=-7.0))
    wider = wider._replace(mask=np.pad(batch.mask, ((0, 0), (0, 3))))
    (value, gradient), (padded, longer) = (
        loss_and_grad(b, name, mode) for b in (batch, wider)
    )
    np.testing.assert_allclose(padded, value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(longer[:, :7], gradient, atol=1e-14)
    np.testing.assert_array_equal(longer[:, 7:], 0.0)


@every
@grid
def test_masking_a_row_is_dropping_it(name, mode):
    batch = ragged()
    masked = batch._replace(mask=batch.mask & (np.arange(6) != 1)[:, None])
    keep = np.arange(6) != 1
    dropped = Batch(*(array[keep] for array in batch))
    (value, gradient), (smaller, rest) = (
        loss_and_grad(b, name, mode) for b in (masked, dropped)
    )
    if mode == "constant":
        # Its B counts all rows, also empty ones.
        value, gradient = value * 6 / 5, gradient * 6 / 5
    np.testing.assert_allclose(smaller, value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rest, gradient[keep], atol=1e-14)
    np.testing.assert_array_equal(gradient[1], 0.0)


# Without a key, Clip-Cov takes the first candidates in row order.
@pytest.mark.parametrize("name", [n for n in EVERY if n != "Clip-Cov"])
@grid
def test_rows_may_come_in_any_order(name, mode):
    batch = ragged()
    order = np.array([3, 0, 5, 1, 4, 2])
    shuffled = Batch(*(array[order] for array in batch))
    (value, gradient), (other, moved) = (
        loss_and_grad(b, name, mode) for b in (batch, shuffled)
    )
    np.testing.assert_allclose(other, value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(moved, gradient[order], atol=1e-14)


@pytest.mark.parametrize("name", SURROGATES)
@grid
def test_micro_batches_add_up(name, mode):
    """The weights are sliced, the one denominator is the batch's."""
    batch = ragged()
    weights, denominator = weights_of(batch, mode)
    arrays = Batch(*(jnp.asarray(array) for array in batch))
    value, gradient = numerator(arrays.policy, arrays, weights, name=name)
    total, parts = 0.0, []
    for rows in (slice(0, 2), slice(2, 4), slice(4, 6)):
        piece = Batch(*(array[rows] for array in arrays))
        part, slope = numerator(piece.policy, piece, weights[rows], name=name)
        total += part
        parts.append(slope)
    np.testing.assert_allclose(total, value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.concatenate(parts), gradient, atol=1e-14)
    assert float(denominator) > 0


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nothing_leaves_the_padding(name, bad):
    batch = ragged()
    dirty = change(batch, lambda a: np.where(batch.mask, a, bad))
    dirty = dirty._replace(mask=batch.mask)
    (value, gradient), (same, slope) = (
        loss_and_grad(b, name, "token_mean") for b in (batch, dirty)
    )
    np.testing.assert_allclose(same, value, rtol=1e-12)
    np.testing.assert_allclose(slope, gradient, atol=1e-14)
    np.testing.assert_array_equal(slope[~batch.mask], 0.0)


@every
@grid
def test_a_fully_masked_batch_is_zero(name, mode):
    batch = ragged()._replace(mask=np.zeros((6, 7), bool))
    value, gradient = loss_and_grad(batch, name, mode)
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
    _, denominator = weights_of(batch, mode)
    assert np.isfinite(float(denominator))
