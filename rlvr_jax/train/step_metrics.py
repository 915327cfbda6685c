"""What a step says about itself: metrics of tokens, of completions, of groups."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.config import Objective
from rlvr_jax.core import diagnostics, outcomes, ratios, repetition
from rlvr_jax.core.shapes import per_token
from rlvr_jax.train.forward import flat
from rlvr_jax.train.surrogates import Terms
from rlvr_jax.types import Ratio, Rollouts

BANDED = ("clip", "clip_cov", "cispo", "dis")
"""Surrogates whose epsilons bound the ratio around 1."""
QUARTERS = 4
PROBABILITY_BINS = 5
REPEATED = 4
"""Tokens of the n-grams whose repetition is counted."""
MAX_LOG_WEIGHT = 20.0
GAPS = (0.01, 0.1, 1.0)
"""In nats: gaps of log-probs whose share of the tokens is counted."""


def token_metrics(
    terms: Terms, entropies: Float[Array, "B T"], rows: Any, objective: Objective
) -> tuple[dict[str, Ratio], dict[str, Float[Array, ""]]]:
    """Sums over the tokens of a micro-batch, and largest values; no gradients.

    Args:
      terms: of the surrogate.
      entropies: per token.
      rows: `objective.Rows`.
      objective: which metrics mean something.
    """
    terms, entropies = jax.lax.stop_gradient((terms, entropies))
    mask, log_ratio = terms.token_mask, terms.token_log_ratio
    ratio = jnp.exp(log_ratio)
    trainer = rows.old_logprobs
    trainer = terms.policy_logprobs if trainer is None else flat(trainer)
    gap = ratios.token_log_ratio(trainer, flat(rows.rollout_logprobs), mask)
    correct = flat(rows.correct)[:, None]
    advantages = jnp.broadcast_to(per_token(terms.advantages), mask.shape)

    def mean(values, where=mask):
        return diagnostics.masked_mean(values, where)

    sums = {
        "entropy/mean": mean(entropies),
        "entropy/correct": mean(entropies, mask * correct),
        "entropy/wrong": mean(entropies, mask * (1 - correct)),
        "ratio/mean": mean(ratio),
        "ratio/square": mean((ratio - 1) ** 2),
        "kl/old_policy": mean(ratio - 1 - log_ratio),
        "mismatch/abs_logprob_mean": mean(jnp.abs(gap)),
        **_mismatch(gap, mask),
        **_probability_moments(trainer, flat(rows.rollout_logprobs), mask),
        "logprob/mean": mean(terms.policy_logprobs),
        "logprob/advantage": mean(advantages),
        "logprob/product": mean(terms.policy_logprobs * advantages),
    }
    slots = jnp.arange(mask.shape[1]) * QUARTERS // mask.shape[1]
    for quarter in range(QUARTERS):
        sums[f"entropy/quarter_{quarter + 1}"] = mean(
            entropies, mask * (slots == quarter)
        )
    if rows.reference_logprobs is not None:
        to_reference = ratios.token_log_ratio(
            flat(rows.reference_logprobs), terms.policy_logprobs, mask
        )
        sums["kl/reference"] = mean(jnp.expm1(to_reference) - to_reference)
    if objective.surrogate in BANDED:
        sums |= _clipping(terms, objective)
    peaks = {
        "ratio/max": ratio.max(),
        "ratio/min": (-ratio).max(),
        "mismatch/abs_logprob_max": jnp.abs(gap).max(),
        "mismatch/probability_gap_max": jnp.abs(
            _probability_gap(trainer, flat(rows.rollout_logprobs), mask)
        ).max(),
    }
    return sums, peaks


def _mismatch(gap, mask) -> dict[str, Ratio]:
    """How far trainer and sampler are apart: gap = log(trainer / sampler)."""
    # Bounded, as a square beyond float32 would leave no share at all.
    weight = jnp.exp(jnp.minimum(gap, MAX_LOG_WEIGHT))
    found = {
        "mismatch/kl": jnp.expm1(gap) - gap,
        "mismatch/kl_k1": -gap,
        "mismatch/weight": weight,
        "mismatch/weight_square": weight**2,
    }
    found |= {
        f"mismatch/beyond_{x:g}": (jnp.abs(gap) > x).astype(gap.dtype) for x in GAPS
    }
    return {
        name: diagnostics.masked_mean(values, mask) for name, values in found.items()
    }


def _probability_gap(trainer, sampler, mask):
    return jnp.where(mask > 0, jnp.exp(trainer) - jnp.exp(sampler), 0.0)


def _probability_moments(trainer, sampler, mask) -> dict[str, Ratio]:
    """What the correlation of two sets of probabilities is made of."""
    # Around 1/2: squares of numbers near 1 would leave few digits to a small variance.
    p, q = (jnp.where(mask > 0, jnp.exp(x), 0.5) - 0.5 for x in (trainer, sampler))
    pairs = {"p": p, "q": q, "pp": p * p, "qq": q * q, "dd": (p - q) ** 2}
    found = {f"moment/{name}": values for name, values in pairs.items()}
    found["mismatch/probability_gap"] = jnp.abs(p - q)
    return {
        name: diagnostics.masked_mean(values, mask) for name, values in found.items()
    }


def _correlation(values: dict[str, Float[Array, ""]]) -> Float[Array, ""]:
    """Takes the moments out of `values`; 0 where one side is constant.

    (var p + var q - var(p - q)) / (2 std p std q): where both sides are nearly equal,
    the rounding of their variances is too, and cancels to first order. In the usual
    form it stays, and correlations of 1.00001 come out.
    """
    p, q, pp, qq, dd = (
        values.pop(f"moment/{name}") for name in ("p", "q", "pp", "qq", "dd")
    )
    of_p, of_q, of_gap = pp - p * p, qq - q * q, dd - (p - q) ** 2
    spread = 2 * jnp.sqrt(jnp.maximum(of_p, 0) * jnp.maximum(of_q, 0))
    return jnp.where(
        spread > 0, (of_p + of_q - of_gap) / jnp.where(spread > 0, spread, 1.0), 0.0
    )


def _clipping(terms: Terms, objective: Objective) -> dict[str, Ratio]:
    bounds = {
        "epsilon_low": objective.epsilon_low,
        "epsilon_high": objective.epsilon_high,
    }
    on = (terms.log_ratio, terms.advantages)
    low, high = diagnostics.clip_fractions(*on, terms.token_mask, **bounds)
    found = {
        "clip/low": low,
        "clip/high": high,
        "clip/high_probability": diagnostics.up_clipped_probability(
            terms.policy_logprobs,
            *on,
            terms.token_mask,
            epsilon_high=objective.epsilon_high,
        ),
    }
    rates = diagnostics.clips_by_probability(
        *on, terms.old_logprobs, terms.token_mask, **bounds, bins=PROBABILITY_BINS
    )
    for k in range(PROBABILITY_BINS):
        clipped = (rates.low[k] + rates.high[k]).astype(jnp.float32)
        name = f"clip/probability_bin_{k + 1}"
        found[name] = Ratio(clipped, rates.tokens[k].astype(jnp.float32))
    return found


def finished(sums: dict[str, Ratio]) -> dict[str, Float[Array, ""]]:
    """The values of all sums, with those that combine several."""
    values = {name: ratio.value() for name, ratio in sums.items()}
    square = values.pop("ratio/square")
    # Around 1, where float32 has digits to spare.
    gap = values["ratio/mean"] - 1
    values["ratio/std"] = jnp.sqrt(jnp.maximum(square - gap**2, 0))
    values["mismatch/correlation"] = _correlation(values)
    values["mismatch/effective_share"] = _effective_share(
        values.pop("mismatch/weight"), values.pop("mismatch/weight_square")
    )
    product = values.pop("logprob/product")
    values["entropy/covariance"] = product - values["logprob/mean"] * values.pop(
        "logprob/advantage"
    )
    if "correction/squared_weight_mean" in values:
        values["correction/effective_share"] = _effective_share(
            values["correction/weight_mean"],
            values.pop("correction/squared_weight_mean"),
        )
    return values


def _effective_share(mean: Float[Array, ""], square: Float[Array, ""]):
    """Kish: (mean of the weights)^2 / mean of their squares; 0 if all are 0."""
    return mean**2 / jnp.where(square == 0, 1.0, square)


def batch_metrics(
    rollouts: Rollouts,
    rewards: Float[Array, "P G"],
    shaped: Float[Array, "P G"],
    correct: Float[Array, "P G"],
    advantages: Float[Array, "P G N"],
) -> dict[str, Float[Array, ""]]:
    """Metrics of the rollouts as a whole."""
    lengths = rollouts.completion_lengths.astype(jnp.float32)
    groups, generations = rewards.shape

    def mean_where(values, mask):
        return Ratio((values * mask).sum(), mask.sum()).value()

    ids = flat(rollouts.group_id)
    counted = rollouts.token_mask if advantages.shape[-1] > 1 else jnp.ones(())
    kept = jnp.broadcast_to(counted, advantages.shape).astype(jnp.float32)
    per_row = jnp.abs(advantages * kept).max(axis=-1)
    zero = diagnostics.zero_advantage_share(flat(per_row), ids)
    solved = outcomes.pass_rate_histogram(
        flat(correct) > 0, ids, num_generations=generations
    )
    metrics = {
        "reward/mean": rewards.mean(),
        "reward/shaped_mean": shaped.mean(),
        "reward/std": rewards.std(),
        "pass_rate/mean": correct.mean(),
        "pass_rate/all_correct": solved[-1] / groups,
        "pass_rate/all_wrong": solved[0] / groups,
        "advantage/zero_share": zero.value(),
        "advantage/abs_mean": Ratio(
            jnp.abs(advantages * kept).sum(), kept.sum()
        ).value(),
        "completion/length_mean": lengths.mean(),
        "completion/length_correct": mean_where(lengths, correct),
        "completion/length_wrong": mean_where(lengths, 1 - correct),
        "completion/length_max": lengths.max(),
        "completion/truncated_share": 1 - rollouts.ended.mean(),
        "completion/repetition": repetition.repetition_rate(
            flat(rollouts.completion_tokens),
            flat(rollouts.token_mask),
            n=min(REPEATED, rollouts.completion_tokens.shape[-1]),
        ).mean(),
    }
    for k in range(generations + 1):
        metrics[f"pass_rate/histogram_{k}"] = solved[k] / groups
    return metrics
