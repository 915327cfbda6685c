"""Adapters of the clipped family: verl, OpenRLHF, slime, Entropy-Mechanism, GMPO."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import losses, offpolicy, ratios, selection


def ppo_clip(case: Case) -> dict[str, Any]:
    """ppo_clip: token ratios, optional dual clip, clamp and rollout correction."""
    x, params = peers.inputs(case), case.params
    clamp = params["log_ratio_clamp"] or math.inf
    weights = rollout_weights(case)

    def per_token(logp: Any) -> Any:
        loss = losses.clipped_loss(
            ratios.token_log_ratio(logp, x["old_logp"], x["mask"]),
            x["advantages"],
            epsilon_low=params["clip_low"],
            epsilon_high=params["clip_high"],
            dual_clip=params["dual_clip"],
            log_ratio_clamp=clamp,
        )
        return loss * weights

    computed = run(case, per_token)
    return computed | clip_metrics(case, clamp)


def rollout_weights(case: Case) -> Any:
    """Given weights, or OpenRLHF's correction of old against rollout log-probs."""
    x, kind = peers.inputs(case), case.params.get("is_correction")
    if kind is None:
        return x.get("is_weights", 1.0)
    log_ratio = ratios.token_log_ratio(x["old_logp"], x["rollout_logp"], x["mask"])
    low, high = kind["low"], kind["high"]
    if kind["type"] == "seq-mask-tis":
        # Rows are filtered by their geometric mean, the weights stay unbounded.
        kept = offpolicy.rejection_mask(log_ratio, x["mask"], lower=low, upper=high)
        weights = offpolicy.importance_weights(
            log_ratio, x["mask"], log_ratio_clamp=math.inf
        )
        return kept * weights
    return offpolicy.importance_weights(
        log_ratio,
        x["mask"],
        lower=low,
        upper=high,
        outside={"tis": "clamp", "icepop": "zero"}[kind["type"]],
        log_ratio_clamp=math.inf,
    )


def run(case: Case, per_token: Any) -> dict[str, Any]:
    """Loss, gradient and the masked loss per token of an adapter's surrogate."""
    x = peers.inputs(case)
    mask = x["mask"]
    computed = peers.loss_and_grad(
        lambda logp: peers.aggregate(case.params["agg"], per_token(logp), mask),
        x["logp"],
    )
    values = np.broadcast_to(per_token(x["logp"]), mask.shape)
    return computed | {"per_token_loss": np.where(mask, values, 0.0)}


def clip_metrics(case: Case, clamp: float, *, level: str = "token") -> dict[str, Any]:
    """Clip fractions and the k1 estimate of KL(old || pi)."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    # verl has 1e-8 on the count of its means.
    epsilon = 0.0 if case.peer == "openrlhf" else 1e-8
    mean = lambda values: peers.masked_mean(values, mask, epsilon)
    raw = ratios.token_log_ratio(x["logp"], x["old_logp"], mask)
    log_ratio = np.clip(raw, -clamp, clamp)
    used = log_ratio if level == "token" else ratios.sequence_log_ratio(raw, mask)
    low, high = selection.clip_masks(
        used,
        x["advantages"],
        epsilon_low=params["clip_low"],
        epsilon_high=params["clip_high"],
    )
    clipped = mean(low | high)
    # OpenRLHF reports the KL of the unclamped ratio.
    reported = raw if case.peer == "openrlhf" else log_ratio
    metrics = {
        "metric:pg_clipfrac": clipped,
        "metric:clip_ratio": clipped,
        "metric:ppo_kl": mean(-reported),
        "metric:pg_clipfrac_lower": 0.0,
    }
    if params.get("dual_clip") is not None:
        beyond = (np.exp(log_ratio) > params["dual_clip"]) & (advantages_of(x) < 0)
        metrics["metric:pg_clipfrac_lower"] = mean(beyond)
    if "rollout_logp" in x:
        gap = x["rollout_logp"] - x["old_logp"]
        metrics["metric:vllm_kl"] = mean(gap)
    return metrics


def advantages_of(x: dict[str, Any]) -> Any:
    """Advantages with a token axis."""
    advantages = x["advantages"]
    return advantages if advantages.ndim == 2 else advantages[:, None]


def gspo_token(case: Case) -> dict[str, Any]:
    """gspo_token: verl caps log s from above and clips the row's ratio per token."""
    x, params = peers.inputs(case), case.params

    def per_token(logp: Any) -> Any:
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], x["mask"])
        log_ratio = ratios.sequence_token_log_ratio(log_ratio, x["mask"])
        return losses.clipped_loss(
            jnp.minimum(log_ratio, params["log_ratio_max"]),
            x["advantages"],
            epsilon_low=params["clip_low"],
            epsilon_high=params["clip_high"],
            log_ratio_clamp=math.inf,
        )

    return run(case, per_token) | clip_metrics(case, math.inf, level="sequence")


def gspo_seq(case: Case) -> dict[str, Any]:
    """gspo_seq: the differentiable row ratio."""
    x, params = peers.inputs(case), case.params
    clamp = params["log_ratio_clamp"] or math.inf

    def per_token(logp: Any) -> Any:
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], x["mask"])
        return losses.clipped_loss(
            ratios.sequence_log_ratio(log_ratio, x["mask"]),
            x["advantages"],
            epsilon_low=params["clip_low"],
            epsilon_high=params["clip_high"],
            dual_clip=params["dual_clip"],
            log_ratio_clamp=clamp,
        )

    return run(case, per_token) | clip_metrics(case, math.inf, level="sequence")


def sapo(case: Case) -> dict[str, Any]:
    """sapo: verl reports clip fractions of 0."""
    x, params = peers.inputs(case), case.params
    clamp = params["log_ratio_clamp"] or math.inf

    def per_token(logp: Any) -> Any:
        return losses.sapo_loss(
            ratios.token_log_ratio(logp, x["old_logp"], x["mask"]),
            x["advantages"],
            tau_positive=params["tau_pos"],
            tau_negative=params["tau_neg"],
            log_ratio_clamp=clamp,
        )

    log_ratio = ratios.token_log_ratio(x["logp"], x["old_logp"], x["mask"])
    kl = peers.masked_mean(-np.clip(log_ratio, -clamp, clamp), x["mask"])
    return run(case, per_token) | {
        "metric:pg_clipfrac": 0.0,
        "metric:pg_clipfrac_lower": 0.0,
        "metric:ppo_kl": kl,
    }


def gmpo(case: Case) -> dict[str, Any]:
    """gmpo, gmpo_seqclip: the mean runs over all rows; an empty row adds 0."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    lengths = peers.row_lengths(mask)
    # verl divides by n + 1e-8, in the exponent and in its mean advantage.
    shrink = lengths / (lengths + params["len_eps"] + (lengths == 0))
    advantages = x["advantages"][:, None]
    sign = np.where(advantages > 0, 1.0, -1.0)
    weights = 1.0
    if "is_weights" in x:
        logs = np.where(mask, np.log(x["is_weights"] + 1e-10), 0.0)
        mean = ratios.sequence_log_ratio(logs, mask)
        weights = np.exp(mean * shrink)

    def per_row(logp: Any) -> Any:
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], mask)
        unit = losses.gmpo_loss(
            log_ratio,
            sign[:, 0],
            mask,
            epsilon_low=params["clip_low"],
            epsilon_high=params["clip_high"],
            clip_level="sequence" if case.formula == "gmpo_seqclip" else "token",
        )
        ratio = (-sign * unit) ** shrink
        return -advantages * shrink * ratio * weights

    computed = peers.loss_and_grad(lambda logp: per_row(logp).mean(), x["logp"])
    log_ratio = ratios.token_log_ratio(x["logp"], x["old_logp"], mask)
    # verl counts tokens beyond either bound, by the sign of the advantage.
    outside = (log_ratio < -params["clip_low"]) | (log_ratio > params["clip_high"])
    return computed | {
        "seq_loss": per_row(x["logp"])[:, 0],
        "metric:pg_clipfrac": peers.masked_mean(outside & (advantages > 0), mask),
        "metric:pg_clipfrac_lower": peers.masked_mean(outside & (advantages < 0), mask),
        "metric:ppo_kl": peers.masked_mean(-log_ratio, mask),
    }


def slime_opsm(case: Case) -> dict[str, Any]:
    """slime_opsm: the V3.2 mask against the old policy; it covers the whole row."""
    x, params = peers.inputs(case), case.params
    keep = offpolicy.negative_sequence_mask(
        x["logp"],
        x["old_logp"],
        x["advantages"],
        x["mask"],
        threshold=params["opsm_delta"],
    )

    def per_token(logp: Any) -> Any:
        loss = losses.clipped_loss(
            ratios.token_log_ratio(logp, x["old_logp"], x["mask"]),
            x["advantages"],
            epsilon_low=params["clip_low"],
            epsilon_high=params["clip_high"],
            dual_clip=params["dual_clip"],
            log_ratio_clamp=params["log_ratio_clamp"] or math.inf,
        )
        return loss * keep

    return run(case, per_token) | {"opsm_mask": np.broadcast_to(keep, x["mask"].shape)}


ADAPTERS: dict[str, Adapter] = {
    "ppo_clip": ppo_clip,
    "gspo_token": gspo_token,
    "gspo_seq": gspo_seq,
    "sapo": sapo,
    "gmpo": gmpo,
    "gmpo_seqclip": gmpo,
    "slime_opsm": slime_opsm,
}
