"""Weights that correct for a sampler that is not the policy of the trainer."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.config import Objective
from rlvr_jax.core import diagnostics, offpolicy, ratios
from rlvr_jax.core.shapes import Advantages
from rlvr_jax.types import Ratio

OFF = (0.0, 0.0)


def correction_weights(
    policy_logprobs: Float[Array, "B T"],
    old_logprobs: Float[Array, "B T"],
    rollout_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: Float[Array, "B T"],
    objective: Objective,
) -> tuple[Float[Array, "B T"] | None, dict[str, Ratio]]:
    """What the surrogate is multiplied by, constants; None if no correction is on.

    Also the share of tokens that it takes out and the effective sample size.
    """
    gap = ratios.token_log_ratio(
        jax.lax.stop_gradient(old_logprobs), rollout_logprobs, token_mask
    )
    factors = []
    if objective.importance_correction != "none":
        weights = offpolicy.importance_weights(
            gap,
            token_mask,
            level=objective.importance_level,
            lower=objective.importance_lower,
            upper=objective.importance_upper,
            outside=objective.importance_correction,
        )
        factors.append(weights)
    bands = (objective.token_band, objective.sequence_band)
    if any(tuple(band) != OFF for band in bands):
        token_band, sequence_band = (
            (0.0, float("inf")) if tuple(band) == OFF else band for band in bands
        )
        factors.append(
            offpolicy.mispo_mask(
                gap, token_mask, token_band=token_band, sequence_band=sequence_band
            )
        )
    if objective.negative_mask_threshold > 0:
        factors.append(
            offpolicy.negative_sequence_mask(
                jax.lax.stop_gradient(policy_logprobs),
                rollout_logprobs,
                advantages,
                token_mask,
                threshold=objective.negative_mask_threshold,
            )
        )
    if not factors:
        return None, {}
    product = jnp.ones_like(token_mask)
    for factor in factors:
        product = product * factor
    dropped = (product == 0).astype(token_mask.dtype)
    return product, {
        "correction/dropped_share": diagnostics.masked_mean(dropped, token_mask),
        "correction/weight_mean": diagnostics.masked_mean(product, token_mask),
        "correction/squared_weight_mean": diagnostics.masked_mean(
            product**2, token_mask
        ),
    }
