"""The objective of a step as a composition of `core` functions, chosen by settings."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt, UInt32

from rlvr_jax.config import Objective
from rlvr_jax.core import aggregation, kl, ratios, shaping
from rlvr_jax.train.corrections import correction_weights
from rlvr_jax.train.forward import flat
from rlvr_jax.train.step_metrics import token_metrics
from rlvr_jax.train.surrogates import SURROGATES, Terms
from rlvr_jax.types import Ratio, Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rows:
    """Completions of a (micro-)batch and what the whole batch decided about them."""

    completion_tokens: Int[Array, "... P G T"]
    token_mask: Float[Array, "... P G T"]
    """1 on sampled tokens; diagnostics count these."""
    weights: Float[Array, "... P G T"]
    """Of each token in the loss (core/aggregation.py); 0 outside it."""
    advantages: Float[Array, "... P G N"]
    """N = 1, one per completion, or N = T."""
    correct: Float[Array, "... P G"]
    rollout_logprobs: Float[Array, "... P G T"]
    old_logprobs: Float[Array, "... P G T"] | None
    """None while no update has been made: then the policy is its own old policy."""
    reference_logprobs: Float[Array, "... P G T"] | None
    kept_tokens: UInt32[Array, "... P G T W"] | None
    routes: UInt[Array, "... P G T L E"] | None = None
    """Experts of the rollouts' tokens; None for a model without."""
    kept: Bool[Array, "... P G"] | None = None
    """Completions of groups that the loss takes; None: all."""
    counts: Bool[Array, "... P G T"] | None = None
    """Tokens that a rule over the minibatch leaves in the surrogate; None: all."""
    penalised: Bool[Array, "... P G T"] | None = None
    """Tokens of the KL penalty of "kl_cov"."""
    imitation_weights: Float[Array, "... P G T"] | None = None
    """Of each token in the likelihood of correct completions; None: no such term."""
    old_values: Float[Array, "... P G T"] | None = None
    """The critic's, before the first update; None without a critic."""
    value_targets: Float[Array, "... P G T"] | None = None


def core_advantages(advantages: Float[Array, "P G N"]) -> Array:
    """As `core` takes them: [B], or [B, T] if they are per token."""
    rows = flat(advantages)
    return rows[:, 0] if rows.shape[1] == 1 else rows


def loss_mask(
    rollouts: Rollouts,
    objective: Objective,
    kept_groups: Bool[Array, " P"] | None = None,
) -> Float[Array, "P G T"]:
    """1 on tokens that belong to the loss."""
    mask = rollouts.token_mask
    if kept_groups is not None:
        mask = mask & kept_groups[:, None, None]
    if objective.overlong_filter:
        kept = shaping.overlong_filter(flat(mask), flat(rollouts.ended))
        mask = kept.reshape(mask.shape)
    return mask.astype(jnp.float32)


def minibatch_weights(
    mask: Float[Array, "P G T"],
    group_id: Int[Array, "P G"],
    objective: Objective,
    max_completion_tokens: int,
) -> tuple[Float[Array, "P G T"], Float[Array, ""]]:
    """Weight per token and the denominator of the minibatch that makes one update."""
    weights, denominator = aggregation.token_weights(
        flat(mask),
        local_ids(group_id),
        loss_aggregation=objective.loss_aggregation,
        constant_length=max_completion_tokens,
    )
    return weights.reshape(mask.shape), denominator


def imitation_weights(
    mask: Float[Array, "P G T"], correct: Float[Array, "P G"], denominator: Array
) -> Float[Array, "P G T"]:
    """Weights that make a sum of -log pi the mean over tokens of correct completions.

    Only completions of the loss are imitated: `mask` is that of `loss_mask`. The
    minibatch's one division is by `denominator`, so the weights carry it.
    """
    chosen = mask * correct[..., None]
    tokens = chosen.sum()
    return chosen * denominator / jnp.where(tokens == 0, 1.0, tokens)


def local_ids(group_id: Int[Array, "P G"]) -> Int[Array, " B"]:
    """Group ids of any numbers as values in 0..B-1, which `core` wants."""
    ids = flat(group_id)
    return jnp.argmax(ids[:, None] == ids[None, :], axis=1)


def objective_sums(
    policy_logprobs: Float[Array, "B T"],
    entropies: Float[Array, "B T"],
    rows: Rows,
    objective: Objective,
    entropy_coefficient: float | Float[Array, ""],
    band_shift: Float[Array, ""] | None = None,
) -> tuple[Float[Array, ""], dict[str, Ratio], dict[str, Float[Array, ""]]]:
    """The numerator of the loss over `rows`, sums of metrics, and largest values."""
    terms = _terms(policy_logprobs, rows, objective, band_shift)
    weights = flat(rows.weights)
    surrogate = SURROGATES[objective.surrogate](terms, objective)
    corrections, sums = correction_weights(
        policy_logprobs,
        policy_logprobs if rows.old_logprobs is None else flat(rows.old_logprobs),
        flat(rows.rollout_logprobs),
        terms.advantages,
        terms.token_mask,
        objective,
    )
    policy_weights = weights if rows.counts is None else weights * flat(rows.counts)
    if corrections is not None:
        policy_weights = policy_weights * corrections

    def numerator(values: Array, weights: Array) -> Array:
        return aggregation.aggregate(values, weights, weights.sum()).numerator

    parts = {"policy": numerator(surrogate, policy_weights)}
    if rows.reference_logprobs is not None:
        divergence = _divergence(terms, flat(rows.reference_logprobs), objective)
        parts["kl"] = objective.beta * numerator(divergence, weights)
    if objective.entropy_coefficient != 0 or objective.entropy_target > 0:
        parts["entropy"] = -entropy_coefficient * numerator(entropies, weights)
    if rows.imitation_weights is not None:
        likelihood = numerator(-policy_logprobs, flat(rows.imitation_weights))
        parts["imitation"] = objective.imitation_coefficient * likelihood
    total = jnp.stack(list(parts.values())).sum()

    more, peaks = token_metrics(terms, entropies, rows, objective)
    # Denominators of the loss parts are the minibatch's: train_step puts them in.
    losses = {
        f"loss/{name}": Ratio(part, jnp.zeros(())) for name, part in parts.items()
    }
    sums = sums | more | losses
    return total, jax.lax.stop_gradient(sums), jax.lax.stop_gradient(peaks)


def old_logprobs(
    policy_logprobs: Float[Array, "B T"], rows: Rows, objective: Objective
) -> Float[Array, "B T"]:
    """What the surrogate's ratio divides by, a constant."""
    old = rows.old_logprobs
    if objective.old_policy == "rollout":
        old = rows.rollout_logprobs
    # While no update has been made the policy is its own old policy.
    return jax.lax.stop_gradient(policy_logprobs) if old is None else flat(old)


def _terms(policy_logprobs, rows: Rows, objective: Objective, band_shift) -> Terms:
    mask = flat(rows.token_mask)
    old = old_logprobs(policy_logprobs, rows, objective)
    log_ratio = ratios.token_log_ratio(policy_logprobs, old, mask)
    level = {
        "token": lambda ratio, _: ratio,
        "sequence": ratios.sequence_log_ratio,
        "sequence_token": ratios.sequence_token_log_ratio,
    }[objective.ratio_level]
    return Terms(
        policy_logprobs=policy_logprobs,
        old_logprobs=old,
        log_ratio=level(log_ratio, mask),
        token_log_ratio=log_ratio,
        advantages=core_advantages(rows.advantages),
        token_mask=mask,
        selected=None if rows.penalised is None else flat(rows.penalised),
        band_shift=band_shift,
    )


def _divergence(terms: Terms, reference_logprobs, objective: Objective):
    """The KL estimate per token."""
    name = objective.kl_estimator
    estimate = kl.kl_estimate(
        terms.policy_logprobs,
        reference_logprobs,
        estimator="k3" if name.startswith("k3") else name,
        token_mask=terms.token_mask,
        straight_through=name == "k3_straight",
    )
    if name == "k3_corrected":
        estimate = kl.importance_corrected_kl(estimate, terms.token_log_ratio)
    return estimate
