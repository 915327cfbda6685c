"""Adapters of the corrections for samples of another policy, without verl's metrics."""

import math
from typing import Any

import numpy as np

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import offpolicy, ratios, selection

# verl's option names: level, then statistic.
RS_LEVELS = {
    "token": "token",
    "seq_sum": "sequence_sum",
    "seq_mean": "sequence_mean",
    "seq_max": "sequence_max",
}


def rs_options(
    options: str, thresholds: str
) -> list[tuple[str, str, float | None, float]]:
    """verl's strings as (level, statistic, lower, upper); k1 keeps its two bounds."""
    names = [name.strip() for name in options.split(",") if name.strip()]
    bounds = [bound.strip() for bound in str(thresholds).split(",") if bound.strip()]
    if len(bounds) == 1:
        bounds = bounds * len(names)
    parsed = []
    for name, bound in zip(names, bounds, strict=True):
        level, statistic = name.rsplit("_", 1)
        if statistic == "k1":
            low, high = bound.split("_") if "_" in bound else (1 / float(bound), bound)
            parsed.append((level, statistic, float(low), float(high)))
        else:
            parsed.append((level, statistic, None, float(bound)))
    return parsed


def rejection(log_ratio: Any, mask: Any, options: str, thresholds: str) -> Any:
    """Every option's mask; verl's k1 bounds apply to mu / pi, the inverse ratio."""
    kept = mask
    for level, statistic, lower, upper in rs_options(options, thresholds):
        if statistic == "k1":
            statistic, lower, upper = "ratio", 1 / upper, 1 / lower
        kept = kept & offpolicy.rejection_mask(
            log_ratio,
            mask,
            statistic=statistic,
            level=RS_LEVELS[level],
            lower=lower,
            upper=upper,
        )
    return kept


def trl_is(case: Case) -> dict[str, Any]:
    """trl_is: weight 1 at padding and where the sampler gave no log-prob (NaN)."""
    x, params = peers.inputs(case), case.params
    level, action = params["mode"].split("_")
    difference = x["old_logp"] - x["rollout_logp"]
    difference = np.where(np.isnan(difference), 0.0, difference)
    bounds = {
        "lower": 0.0 if params["clip_min"] is None else params["clip_min"],
        "upper": math.inf if params["clip_max"] is None else params["clip_max"],
        "outside": {"truncate": "clamp", "mask": "zero"}[action],
        "log_ratio_clamp": math.inf,
    }
    weights = offpolicy.importance_weights(difference, x["mask"], level=level, **bounds)
    if level == "token":
        # A ratio of 1 is bounded as any other.
        neutral = offpolicy.importance_weights(
            np.zeros((1, 1)), np.ones((1, 1)), **bounds
        )
        weights = np.where(x["mask"], weights, neutral)
    return {"weights": weights}


def opsm(case: Case) -> dict[str, Any]:
    """opsm: DeepSeek-V3.2's mask, one value per row."""
    x = peers.inputs(case)
    keep = offpolicy.negative_sequence_mask(
        x["logp"],
        x["rollout_logp"],
        x["advantages"],
        x["mask"],
        threshold=case.params["threshold"],
    )
    return {"keep": keep}


def high_entropy_mask(case: Case) -> dict[str, Any]:
    """high_entropy_mask: the top share by entropy."""
    x = peers.inputs(case)
    keep = selection.top_entropy_mask(
        x["entropy"], x["mask"], keep_fraction=case.params["keep_fraction"]
    )
    return {"keep": keep}


def slime_is(case: Case) -> dict[str, Any]:
    """slime_is: every position counts; `clipped` marks weights that were changed."""
    x, params = peers.inputs(case), case.params
    every = np.ones(x["old_logp"].shape, bool)
    log_ratio = x["old_logp"] - x["rollout_logp"]
    weights = offpolicy.importance_weights(
        log_ratio,
        every,
        lower=params["low"],
        upper=params["high"],
        outside={"tis": "clamp", "icepop": "zero"}[params["mode"]],
        log_ratio_clamp=math.inf,
    )
    raw = offpolicy.importance_weights(log_ratio, every, log_ratio_clamp=math.inf)
    return {"weights": weights, "clipped": weights != raw}


def oi_rho(case: Case) -> dict[str, Any]:
    """oi_rho: open-instruct's clamp and mask in one; a bound of 0 is off."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    log_ratio = ratios.token_log_ratio(x["old_logp"], x["rollout_logp"], mask)
    log_ratio = np.clip(log_ratio, -10.0, 10.0)
    if not params["use_rho_correction"]:
        return {"weights": np.ones(mask.shape)}
    level = "sequence_mean" if params["rho_mask_sequence_level"] else "token"
    on = lambda bound, off: bound if bound > 0 else off
    raw = offpolicy.importance_weights(log_ratio, mask, level=level)
    clamped = offpolicy.importance_weights(
        log_ratio,
        mask,
        level=level,
        lower=on(params["rho_clamp_lower_bound"], 0.0),
        upper=on(params["rho_clamp_upper_bound"], math.inf),
    )
    low, high = params["rho_mask_lower_bound"], params["rho_mask_upper_bound"]
    if params["rho_mask_tv_divergence"]:
        # The row's mean |r - 1|; only tokens that moved the way A pushes are dropped.
        distance = ratios.sequence_log_ratio(np.abs(np.exp(log_ratio) - 1.0), mask)
        onward = np.sign(log_ratio) * x["advantages"][:, None] > 0
    else:
        distance, onward = raw, True
    dropped_low = (distance < low) & (low > 0) & mask & onward
    dropped_high = (distance > high) & (high > 0) & mask & onward
    weights = np.where(mask & ~dropped_low & ~dropped_high, clamped, 0.0)
    # open-instruct reports in float32.
    mean = lambda values: peers.single(peers.masked_mean(values, mask, 0.0))
    return {
        "weights": weights,
        "metric:rho_drop_frac": mean(dropped_low | dropped_high),
        "metric:rho_drop_low_frac": mean(dropped_low),
        "metric:rho_drop_high_frac": mean(dropped_high),
        "metric:rho_weight": mean(weights),
        "metric:rho_clipfrac": mean(clamped != raw),
    }


ADAPTERS: dict[str, Adapter] = {
    "trl_is": trl_is,
    "opsm": opsm,
    "high_entropy_mask": high_entropy_mask,
    "slime_is": slime_is,
    "oi_rho": oi_rho,
}
