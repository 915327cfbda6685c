"""Tokens that a rule over the whole minibatch chooses before its gradient is taken.

Covariances and entropy quantiles belong to all tokens of an update; micro-batches
cannot find them. One more forward pass over the minibatch does, where a rule is on.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from rlvr_jax.config import Objective
from rlvr_jax.core import ranking, ratios, selection
from rlvr_jax.core.shapes import Advantages


def needs_selection(objective: Objective) -> bool:
    """Whether an update starts with a pass over its minibatch."""
    by_covariance = objective.surrogate in ("clip_cov", "kl_cov")
    return by_covariance or objective.top_entropy_fraction < 1


def selection_masks(
    policy_logprobs: Float[Array, "B T"],
    entropies: Float[Array, "B T"],
    old_logprobs: Float[Array, "B T"],
    advantages: Advantages,
    token_mask: Float[Array, "B T"],
    objective: Objective,
    key: Key[Array, ""],
) -> tuple[Bool[Array, "B T"], Bool[Array, "B T"]]:
    """(tokens whose surrogate counts, tokens of the covariance penalty).

    Args:
      policy_logprobs: at the parameters before the update.
      entropies: likewise.
      old_logprobs: what the surrogate's ratio divides by.
      advantages: per completion or token.
      token_mask: 1 on tokens of the loss.
      objective: which rules are on.
      key: of the update; "clip_cov" draws by it.
    """
    counts = token_mask > 0
    penalised = jnp.zeros_like(counts)
    if objective.top_entropy_fraction < 1:
        counts &= selection.top_entropy_mask(
            entropies, token_mask, keep_fraction=objective.top_entropy_fraction
        )
    if objective.surrogate not in ("clip_cov", "kl_cov"):
        return counts, penalised
    covariance = selection.token_covariance(policy_logprobs, advantages, token_mask)
    count = selection.token_count(token_mask, objective.covariance_fraction)
    if objective.surrogate == "kl_cov":
        return counts, ranking.top_tokens(covariance, token_mask > 0, count)
    low, high = selection.clip_masks(
        ratios.token_log_ratio(policy_logprobs, old_logprobs, token_mask),
        advantages,
        epsilon_low=objective.epsilon_low,
        epsilon_high=objective.epsilon_high,
    )
    kept = selection.clip_cov_mask(
        covariance,
        (token_mask > 0) & ~low & ~high,
        count,
        covariance_min=objective.covariance_min,
        covariance_max=objective.covariance_max,
        key=key,
    )
    return counts & kept, penalised
