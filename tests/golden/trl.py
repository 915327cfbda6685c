"""Adapters of TRL: GRPOTrainer._compute_loss and its GMPO and RLOO relatives.

TRL bounds no log-ratio, counts rows that are fully masked, and averages its metrics
over rows (all of them) where the ratio is one per row.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import kl, losses, offpolicy, ratios, selection, weighted_losses
from tests.golden.policy_loss import advantages_of

UNBOUNDED = {"log_ratio_clamp": math.inf}


def trl(case: Case) -> dict[str, Any]:
    """trl: surrogate, off-policy mask, entropy mask, importance ratio, + beta k3."""
    x = peers.inputs(case)
    weights, denominator = loss_weights(case)
    multiplier = constant_multiplier(case)

    def loss(logp: Any) -> Any:
        per_token = surrogate(case, logp) * multiplier
        if case.params["beta"]:
            per_token = per_token + case.params["beta"] * kl_term(case, logp)
        return (jnp.where(x["mask"], per_token, 0.0) * weights).sum() / denominator

    computed = peers.loss_and_grad(loss, x["logp"])
    if case.params["entropy_coef"]:
        # The bonus is a token mean, whatever the aggregation of the policy term.
        bonus = peers.masked_mean(x["entropy"], entropy_mask(case), 0.0)
        computed["loss"] = computed["loss"] - case.params["entropy_coef"] * bonus
    return computed | metrics(case)


def log_weights(case: Case, logp: Any) -> Any:
    """Log importance weights, per token or per row."""
    x = peers.inputs(case)
    log_ratio = ratios.token_log_ratio(logp, x["old_logp"], x["mask"])
    if case.params["importance_sampling_level"] == "sequence":
        return ratios.sequence_log_ratio(log_ratio, x["mask"])
    return log_ratio


def surrogate(case: Case, logp: Any) -> Any:
    """The loss per token (or row) before masks and weights."""
    x, params = peers.inputs(case), case.params
    log_ratio, advantages = log_weights(case, logp), x["advantages"]
    if params["loss_type"] == "cispo":
        return weighted_losses.cispo_capped_loss(
            logp, log_ratio, advantages, ratio_max=params["epsilon_high"], **UNBOUNDED
        )
    if params["loss_type"] == "sapo":
        return losses.sapo_loss(
            log_ratio,
            advantages,
            tau_positive=params["sapo_temperature_pos"],
            tau_negative=params["sapo_temperature_neg"],
            **UNBOUNDED,
        )
    if params["loss_type"] == "vespo":
        return losses.reinforce_loss(logp, advantages, vespo_weights(case, logp))
    return losses.clipped_loss(
        log_ratio,
        advantages,
        epsilon_low=params["epsilon_low"],
        epsilon_high=params["epsilon_high"],
        dual_clip=params["delta"],
        **UNBOUNDED,
    )


def vespo_weights(case: Case, logp: Any) -> Any:
    """The gamma weights; a given importance ratio enters the row's ratio."""
    x, params = peers.inputs(case), case.params
    importance = None
    if "is_weights" in x:
        logs = np.clip(np.log(x["is_weights"]), math.log(1e-8), 20.0)
        importance = logs.sum(-1, keepdims=True)
    return weighted_losses.vespo_weights(
        ratios.token_log_ratio(logp, x["old_logp"], x["mask"]),
        x["advantages"],
        x["mask"],
        k_positive=params["vespo_k_pos"],
        lambda_positive=params["vespo_lambda_pos"],
        k_negative=params["vespo_k_neg"],
        lambda_negative=params["vespo_lambda_neg"],
        log_importance=importance,
    )


def entropy_mask(case: Case) -> Any:
    """Tokens of high entropy; all of the mask at quantile 1."""
    x, keep = peers.inputs(case), case.params["top_entropy_quantile"]
    if keep >= 1.0:
        return x["mask"]
    return selection.top_entropy_mask(x["entropy"], x["mask"], keep_fraction=keep)


def constant_multiplier(case: Case) -> Any:
    """Off-policy mask x entropy mask x importance ratio of the sampler."""
    x, params = peers.inputs(case), case.params
    factor = entropy_mask(case).astype(float)
    if params["off_policy_mask_threshold"] is not None:
        factor = factor * offpolicy.negative_sequence_mask(
            x["logp"],
            x.get("rollout_logp", x["old_logp"]),
            x["advantages"],
            x["mask"],
            threshold=params["off_policy_mask_threshold"],
        )
    if params["loss_type"] != "vespo":
        factor = factor * x.get("is_weights", 1.0)
    return factor


def kl_term(case: Case, logp: Any) -> Any:
    """k3, times the (differentiable) ratio when TRL corrects its bias."""
    x = peers.inputs(case)
    term = kl.kl_estimate(logp, x["ref_logp"], token_mask=x["mask"])
    if case.params["use_bias_correction_kl"]:
        return kl.importance_corrected_kl(term, log_weights(case, logp), **UNBOUNDED)
    return term


def loss_weights(case: Case) -> tuple[Any, Any]:
    """Weights per token and the divisor, by loss_type; empty rows count in B."""
    params, mask = case.params, peers.inputs(case)["mask"]
    rows, tokens = mask.shape[0], np.maximum(mask.sum(), 1)
    kind = params["loss_type"]
    ones = mask.astype(float)
    if kind in ("grpo", "sapo"):
        return ones / np.maximum(peers.row_lengths(mask), 1.0), rows
    if kind == "bnpo":
        return ones, tokens
    if kind == "dr_grpo":
        return ones, rows * params["max_completion_length"]
    if kind in ("dapo", "cispo", "vespo"):
        return ones, max(params["num_items_in_batch"], 1.0)
    return ones, rows


def batch_mean(values: Any, mask: Any) -> Any:
    """TRL's metric mean: over tokens, or over all rows for one value per row."""
    values = np.asarray(values, float)
    if values.shape[1] == 1 != mask.shape[1]:
        return values.mean()
    return np.where(mask, values, 0.0).sum() / np.maximum(mask.sum(), 1)


def metrics(case: Case) -> dict[str, Any]:
    """Clip ratios, KL, entropy, phi: what TRL logs for its loss_type."""
    x, params = peers.inputs(case), case.params
    mask, log_ratio = x["mask"], log_weights(case, x["logp"])
    found = {}
    if params["loss_type"] == "cispo":
        bounded = (np.exp(log_ratio) > params["epsilon_high"]) & (advantages_of(x) > 0)
        share = peers.single(batch_mean(bounded, mask))
        found["metric:cispo_clip_ratio"] = share
    elif params["loss_type"] == "vespo":
        phi = vespo_weights(case, x["logp"])
        found["metric:vespo/phi_seq_mean"] = batch_mean(phi, mask)
    elif params["loss_type"] != "sapo":
        low, high = selection.clip_masks(
            log_ratio,
            x["advantages"],
            epsilon_low=params["epsilon_low"],
            epsilon_high=params["epsilon_high"],
        )
        found |= clip_ratios(low, high, mask)
    if params["beta"]:
        found["metric:kl"] = batch_mean(kl_term(case, x["logp"]), mask)
    if "entropy" in x:
        found["metric:entropy"] = batch_mean(x["entropy"], mask)
    return found


def clip_ratios(low: Any, high: Any, mask: Any) -> dict[str, Any]:
    """TRL's three clip ratios, shares in float32."""
    share = lambda hits: peers.single(batch_mean(hits, mask))
    return {
        "metric:clip_ratio/low_mean": share(low),
        "metric:clip_ratio/high_mean": share(high),
        "metric:clip_ratio/region_mean": share(low | high),
    }


def gmpo(case: Case) -> dict[str, Any]:
    """trl_gmpo: mean over all rows; a fully masked row adds the constant -A."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    bounds = {
        "epsilon_low": params["epsilon_low"],
        "epsilon_high": params["epsilon_high"],
    }

    def loss(logp: Any) -> Any:
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], mask)
        rows = losses.gmpo_loss(
            log_ratio, x["advantages"], entropy_mask(case), **bounds
        )
        if params["beta"]:
            term = kl.kl_estimate(logp, x["ref_logp"], token_mask=mask)
            rows = rows + params["beta"] * ratios.sequence_log_ratio(term, mask)
        return rows.mean()

    log_ratio = ratios.token_log_ratio(x["logp"], x["old_logp"], mask)
    advantages = advantages_of(x)
    low = (log_ratio < -bounds["epsilon_low"]) & (advantages < 0)
    high = (log_ratio > bounds["epsilon_high"]) & (advantages > 0)
    computed = peers.loss_and_grad(loss, x["logp"]) | clip_ratios(low, high, mask)
    if params["beta"]:
        term = kl.kl_estimate(x["logp"], x["ref_logp"], token_mask=mask)
        computed["metric:kl"] = batch_mean(term, mask)
    return computed


def rloo_loss(case: Case) -> dict[str, Any]:
    """trl_rloo_loss: PPO clip on the ratio of whole completions, mean over all rows."""
    x, params = peers.inputs(case), case.params

    def loss(logp: Any) -> Any:
        total = jnp.where(x["mask"], logp, 0.0).sum(-1, keepdims=True)
        return losses.clipped_loss(
            total - x["old_seq_logp"][:, None],
            x["advantages"],
            epsilon_low=params["epsilon_low"],
            epsilon_high=params["epsilon_high"],
            **UNBOUNDED,
        ).mean()

    return peers.loss_and_grad(loss, x["logp"])


ADAPTERS: dict[str, Adapter] = {
    "trl": trl,
    "trl_gmpo": gmpo,
    "trl_rloo_loss": rloo_loss,
}
