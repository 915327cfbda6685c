"""Adapters of surrogates that weigh log pi, and of selected tokens: verl and others."""

import math
from typing import Any

import numpy as np

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import (
    losses,
    offpolicy,
    ranking,
    ratios,
    selection,
    weighted_losses,
)
from tests.golden.offpolicy import rejection
from tests.golden.policy_loss import clip_metrics, run


def log_ratio_of(case: Case, logp: Any) -> Any:
    """Token log-ratios against the old policy."""
    x = peers.inputs(case)
    return ratios.token_log_ratio(logp, x["old_logp"], x["mask"])


def kl_metric(case: Case, clamp: float = math.inf) -> dict[str, Any]:
    """verl's ppo_kl: the k1 estimate of KL(old || pi)."""
    x = peers.inputs(case)
    log_ratio = np.clip(log_ratio_of(case, x["logp"]), -clamp, clamp)
    return {"metric:ppo_kl": peers.masked_mean(-log_ratio, x["mask"])}


def dppo(case: Case) -> dict[str, Any]:
    """dppo_tv, dppo_kl: clip fraction = share outside the trust region."""
    x, params = peers.inputs(case), case.params
    region = {
        "divergence": case.formula.removeprefix("dppo_"),
        "threshold_low": params["div_low"],
        "threshold_high": params["div_high"],
    }
    weights = x.get("is_weights", 1.0)

    def per_token(logp: Any) -> Any:
        loss = weighted_losses.dppo_loss(
            logp,
            x["old_logp"],
            x["advantages"],
            x["mask"],
            ratio_max=params["ratio_cap"],
            log_ratio_clamp=params["log_ratio_clamp"],
            **region,
        )
        return loss * weights

    inside = weighted_losses.dppo_mask(
        x["logp"], x["old_logp"], x["advantages"], **region
    )
    clamp = params["log_ratio_clamp"]
    ratio = np.exp(np.clip(log_ratio_of(case, x["logp"]), -clamp, clamp))
    capped = inside & (ratio > params["ratio_cap"])
    return run(case, per_token) | {
        "metric:pg_clipfrac": peers.masked_mean(~inside, x["mask"]),
        "metric:pg_clipfrac_lower": peers.masked_mean(capped, x["mask"]),
        **kl_metric(case, clamp),
    }


def reinforce(case: Case) -> dict[str, Any]:
    """reinforce: log pi times the advantage, times given weights."""
    x = peers.inputs(case)
    per_token = lambda logp: losses.reinforce_loss(
        logp, x["advantages"], x.get("is_weights")
    )
    return run(case, per_token) | kl_metric(case)


def dro(case: Case) -> dict[str, Any]:
    """dro: the quadratic pull is weighted too."""
    x = peers.inputs(case)

    def per_token(logp: Any) -> Any:
        loss = losses.dro_loss(
            logp,
            log_ratio_of(case, logp),
            x["advantages"],
            beta=case.params["beta"],
        )
        return loss * x.get("is_weights", 1.0)

    return run(case, per_token) | kl_metric(case)


def cispo(case: Case) -> dict[str, Any]:
    """cispo: the clip fraction counts every bounded weight, whatever the sign."""
    x, params = peers.inputs(case), case.params
    clamp = params["log_ratio_clamp"] or math.inf
    low, high = params["ratio_min"], params["ratio_max"]

    def per_token(logp: Any) -> Any:
        loss = weighted_losses.cispo_capped_loss(
            logp,
            log_ratio_of(case, logp),
            x["advantages"],
            ratio_min=low,
            ratio_max=high,
            log_ratio_clamp=clamp,
        )
        return loss * x.get("is_weights", 1.0)

    ratio = np.exp(np.clip(log_ratio_of(case, x["logp"]), -clamp, clamp))
    bounded = (ratio < low) | (ratio > high)
    return run(case, per_token) | {
        "metric:pg_clipfrac": peers.masked_mean(bounded, x["mask"]),
        "metric:pg_clipfrac_lower": 0.0,
        **kl_metric(case, clamp),
    }


def kl_cov(case: Case) -> dict[str, Any]:
    """kl_cov: verl takes a fraction, Entropy-Mechanism a percentage; KL is |d|."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    if "k_percent" in params:
        tokens = mask.sum()
        percent = np.floor(tokens * params["k_percent"] / 100)
        count = np.maximum(percent.astype(int), 1)
    else:
        count = selection.token_count(mask, params["k_fraction"])
    covariance = selection.token_covariance(x["logp"], x["advantages"], mask)
    selected = ranking.top_tokens(covariance, mask, count)

    def per_token(logp: Any) -> Any:
        loss = selection.kl_cov_loss(
            log_ratio_of(case, logp),
            x["advantages"],
            selected,
            kl_coefficient=params["kl_coef"],
            log_ratio_clamp=math.inf,
        )
        return loss * x.get("is_weights", 1.0)

    distance = peers.masked_mean(np.abs(log_ratio_of(case, x["logp"])), mask)
    return run(case, per_token) | {"metric:ppo_kl": distance}


def clip_cov(case: Case) -> dict[str, Any]:
    """clip_cov: the random draw is replaced by the first candidates in row order."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    bounds = {"epsilon_low": params["clip_low"], "epsilon_high": params["clip_high"]}
    low, high = selection.clip_masks(
        log_ratio_of(case, x["logp"]), x["advantages"], **bounds
    )
    keep = selection.clip_cov_mask(
        selection.token_covariance(x["logp"], x["advantages"], mask),
        mask & ~low & ~high,
        selection.token_count(mask, params["ratio"]),
        covariance_min=params["lb"],
        covariance_max=params["ub"],
    )

    def per_token(logp: Any) -> Any:
        loss = losses.clipped_loss(
            log_ratio_of(case, logp),
            x["advantages"],
            log_ratio_clamp=math.inf,
            **bounds,
        )
        return loss * keep

    return run(case, per_token) | {
        "metric:pg_clipfrac": peers.masked_mean(~keep, mask),
        **kl_metric(case),
    }


def bypass(case: Case) -> dict[str, Any]:
    """bypass: old = rollout; rejection shrinks the mask, weights only REINFORCE."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    log_ratio = log_ratio_of(case, x["logp"])
    kept = mask
    if params["rollout_rs"] is not None:
        kept = rejection(
            log_ratio, mask, params["rollout_rs"], params["rollout_rs_threshold"]
        )
    weights = None
    if params["rollout_is"] is not None:
        # "upper" truncates, "lower_upper" zeroes outside (IcePop).
        *lower, upper = str(params["rollout_is_threshold"]).split("_")
        weights = offpolicy.importance_weights(
            log_ratio,
            mask,
            level=params["rollout_is"],
            lower=float(lower[0]) if lower else 0.0,
            upper=float(upper),
            outside="zero" if lower else "clamp",
        )

    def per_token(logp: Any) -> Any:
        if params["loss_type"] == "reinforce":
            return losses.reinforce_loss(logp, x["advantages"], weights)
        return losses.clipped_loss(
            log_ratio_of(case, logp),
            x["advantages"],
            epsilon_low=params["clip_low"],
            epsilon_high=params["clip_high"],
            dual_clip=params["dual_clip"],
            log_ratio_clamp=params["log_ratio_clamp"] or math.inf,
        )

    return peers.loss_and_grad(
        lambda logp: peers.aggregate(params["agg"], per_token(logp), kept), x["logp"]
    ) | clip_metrics(case, params["log_ratio_clamp"] or math.inf)


ADAPTERS: dict[str, Adapter] = {
    "dppo_tv": dppo,
    "dppo_kl": dppo,
    "reinforce": reinforce,
    "dro": dro,
    "cispo": cispo,
    "kl_cov": kl_cov,
    "clip_cov": clip_cov,
    "bypass": bypass,
}
