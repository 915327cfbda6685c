"""Adapters of verl's rollout correction, whose metrics make up most of a case."""

import math
from typing import Any

import numpy as np

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import offpolicy
from tests.golden.offpolicy import rejection, rs_options


def rollout_is(case: Case) -> dict[str, Any]:
    """rollout_is: weights, truncated or zeroed; metrics are of the raw ones."""
    x, params = peers.inputs(case), case.params
    mask, log_ratio = x["mask"], x["log_ratio"]
    common = {"level": params["level"], "log_ratio_clamp": params["log_clamp"]}
    lower = 0.0 if params["lower"] is None else params["lower"]
    outside = {"truncate": "clamp", "mask": "zero"}[params["mode"]]
    weights = offpolicy.importance_weights(
        log_ratio, mask, lower=lower, upper=params["upper"], outside=outside, **common
    )
    raw = offpolicy.importance_weights(log_ratio, mask, **common)
    metrics = is_metrics(case, dense(weights, mask), dense(raw, mask))
    if params["batch_normalize"]:
        # Means over tokens have 1e-8 on the count: here all tokens, there a row's.
        tokens = mask.sum() if params["level"] == "token" else peers.row_lengths(mask)
        shrink = tokens / (tokens + 1e-8)
        shrink = np.where(tokens > 0, shrink, 1.0)
        normal = offpolicy.normalize_weights(weights * shrink, mask) / shrink
        kept = dense(normal, mask)
        factor = dense(weights, mask).sum() / kept.sum() if kept.sum() else 1.0
        metrics["rollout_is_batch_norm_factor"] = factor
        weights = normal
    return {"weights": dense(weights, mask)} | prefixed(metrics)


def dense(weights: Any, mask: Any) -> np.ndarray:
    """One weight per token, 0 at padding."""
    return np.asarray(np.where(mask, weights, 0.0))


def prefixed(metrics: dict[str, Any]) -> dict[str, Any]:
    """Names as in the vectors."""
    return {f"metric:{name}": value for name, value in metrics.items()}


def is_metrics(case: Case, weights: np.ndarray, raw: np.ndarray) -> dict[str, Any]:
    """verl's compute_is_metrics; row means count every row, also empty ones."""
    x, params = peers.inputs(case), case.params
    mask = np.asarray(x["mask"])
    mean = lambda values: float(peers.masked_mean(values, x["mask"]))
    upper = params["upper"]
    lower = 1.0 / upper if params["lower"] is None else params["lower"]
    bounded = np.clip(weights, 0.0, upper)
    average = mean(bounded)
    rows, raw_rows = row_means(weights, mask), row_means(raw, mask)
    metrics = {
        "rollout_is_mean": mean(weights),
        "rollout_is_std": deviation(bounded, x["mask"]),
        "rollout_is_eff_sample_size": 1.0 / mean((bounded / (average + 1e-8)) ** 2),
        "rollout_is_seq_mean": rows.mean(),
        "rollout_is_seq_std": rows.std(ddof=1) if rows.size > 1 else 0.0,
        "rollout_is_seq_max": rows.max(),
        "rollout_is_seq_min": rows.min(),
        "rollout_is_seq_max_deviation": np.abs(rows - 1.0).max(),
        "rollout_is_seq_fraction_high": share(raw_rows > upper),
        "rollout_is_seq_fraction_low": share(raw_rows < lower),
    }
    if params["mode"] == "mask":
        outside = (raw < lower) | (raw > upper)
        metrics["rollout_is_oob_ratio"] = mean(outside)
    if params["level"] == "sequence":
        sums = np.where(mask, np.asarray(x["log_ratio"]), 0.0).sum(-1)
        metrics |= {
            "rollout_is_max": np.exp(min(sums.max(), params["log_clamp"])),
            "rollout_is_min": np.exp(sums.min()),
            "rollout_is_ratio_fraction_high": share(sums > np.log(upper)),
            "rollout_is_ratio_fraction_low": share(sums < np.log(lower)),
        }
    else:
        metrics |= {
            "rollout_is_max": weights[mask].max(),
            "rollout_is_min": weights[mask].min(),
            "rollout_is_ratio_fraction_high": mean(raw > upper),
            "rollout_is_ratio_fraction_low": mean(raw < lower),
        }
    return metrics


def share(hits: np.ndarray) -> np.float32:
    """Share of rows; verl takes it in float32."""
    return peers.single(np.mean(hits))


def row_means(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Mean of each row's tokens with 1e-8 on the count; 0 for empty rows."""
    return np.where(mask, values, 0.0).sum(-1) / (mask.sum(-1) + 1e-8)


def deviation(values: Any, mask: Any) -> float:
    """sqrt(E x^2 - (E x)^2), 0 for a single token."""
    if mask.sum() <= 1:
        return 0.0
    square = peers.masked_mean(np.asarray(values) ** 2, mask)
    return math.sqrt(max(float(square - peers.masked_mean(values, mask) ** 2), 0.0))


def rollout_rs(case: Case) -> dict[str, Any]:
    """rollout_rs: the mask left by all options, and metrics of each."""
    x, params = peers.inputs(case), case.params
    mask, log_ratio = x["mask"], x["log_ratio"]
    options, thresholds = params["options"], params["thresholds"]
    metrics: dict[str, Any] = {}
    names = [name.strip() for name in options.split(",") if name.strip()]
    for name, option in zip(names, rs_options(options, thresholds), strict=True):
        metrics |= rs_metrics(name, option, log_ratio, mask)
    kept = rejection(log_ratio, mask, options, thresholds)
    metrics["rollout_rs_masked_fraction"] = peers.masked_mean(~kept, mask)
    hurt = (mask & ~kept).any(-1)
    metrics["rollout_rs_seq_masked_fraction"] = share(np.asarray(hurt))
    return {"new_mask": kept} | prefixed(metrics)


def rs_statistic(level: str, statistic: str, log_ratio: Any, mask: Any) -> Any:
    """The value that is compared, per token (rows repeat theirs): k1 = -log ratio."""
    safe = np.clip(log_ratio, -20.0, 20.0)
    values = {"k1": -safe, "k2": safe**2 / 2, "k3": np.exp(safe) - 1.0 - safe}
    inside = np.where(mask, values[statistic], 0.0)
    if level == "token":
        return values[statistic]
    if level == "seq_sum":
        rows = inside.sum(-1, keepdims=True)
    elif level == "seq_mean":
        rows = inside.sum(-1, keepdims=True) / (peers.row_lengths(mask) + 1e-8)
    else:
        highest = np.where(mask, values[statistic], -np.inf).max(-1, keepdims=True)
        rows = np.where(mask.any(-1, keepdims=True), highest, 0.0)
    return np.broadcast_to(rows, mask.shape)


def rs_metrics(name: str, option: Any, log_ratio: Any, mask: Any) -> dict[str, Any]:
    """verl's compute_rs_metrics of one option."""
    level, statistic, low, high = option
    two_sided = statistic == "k1"
    upper = math.log(high) if two_sided else high
    lower = math.log(low) if two_sided else 0.0
    values = rs_statistic(level, statistic, log_ratio, mask)
    mean = lambda array: float(peers.masked_mean(array, mask))
    kept = rejection(log_ratio, mask, name, threshold_text(option))
    valid = np.asarray(mask.any(-1))
    every, flat = np.asarray(values), np.asarray(values)[np.asarray(mask)]
    rows = row_means(every, np.asarray(mask)) if level == "token" else every[:, 0]
    rows = rows[valid]
    judged = flat if level == "token" else rows
    # Shares of tokens are float64 and carry 1e-8 on the count, of rows neither.
    tokens = lambda hits: float(np.mean(hits)) * flat.size / (flat.size + 1e-8)
    judge = tokens if level == "token" else share
    hurt = np.asarray((mask & ~kept).any(-1))
    found = {
        "mean": mean(values),
        "max": judged.max(),
        "min": judged.min(),
        "fraction_high": judge(judged > upper),
        "fraction_low": judge(judged < lower) if two_sided else 0.0,
        "std": deviation(np.clip(values, lower, upper), mask),
        "seq_mean": rows.mean(),
        "seq_std": rows.std(ddof=1) if rows.size > 1 else 0.0,
        "seq_max": rows.max(),
        "seq_min": rows.min(),
        "seq_max_deviation": np.abs(rows).max(),
        "seq_fraction_high": share(rows > upper),
        "masked_fraction": mean(mask & ~kept),
        "seq_masked_fraction": float(np.mean(hurt[valid])),
    }
    if two_sided:
        found["seq_fraction_low"] = share(rows < lower)
    return {f"rollout_rs_{name}_{key}": value for key, value in found.items()}


def threshold_text(option: Any) -> str:
    """An option's bounds as verl writes them."""
    _, statistic, low, high = option
    return f"{low!r}_{high!r}" if statistic == "k1" else repr(high)


def offpolicy_metrics(case: Case) -> dict[str, Any]:
    """offpolicy_metrics: perplexities, KL and chi^2; every row counts."""
    x = peers.inputs(case)
    mask = np.asarray(x["mask"])
    train, rollout = np.asarray(x["old_logp"]), np.asarray(x["rollout_logp"])
    log_ratio = train - rollout
    mean = lambda values: float(peers.masked_mean(values, x["mask"]))
    train_row, rollout_row = row_means(train, mask), row_means(rollout, mask)
    gap = rollout_row - train_row
    sums = np.clip(np.where(mask, log_ratio, 0.0).sum(-1), -20.0, 20.0)
    metrics = {
        "training_ppl": np.exp(-train_row).mean(),
        "training_log_ppl": -train_row.mean(),
        "kl": mean(-log_ratio),
        "k3_kl": mean(np.exp(log_ratio) - log_ratio - 1.0),
        "rollout_ppl": np.exp(-rollout_row).mean(),
        "rollout_log_ppl": -rollout_row.mean(),
        "log_ppl_diff": gap.mean(),
        "log_ppl_abs_diff": np.abs(gap).mean(),
        "log_ppl_diff_max": gap.max(),
        "log_ppl_diff_min": gap.min(),
        "ppl_ratio": np.exp(gap).mean(),
        "chi2_token": mean(np.exp(2.0 * np.clip(log_ratio, -20.0, 20.0))) - 1.0,
        "chi2_seq": np.exp(2.0 * sums).mean() - 1.0,
    }
    return prefixed(metrics)


ADAPTERS: dict[str, Adapter] = {
    "rollout_is": rollout_is,
    "rollout_rs": rollout_rs,
    "offpolicy_metrics": offpolicy_metrics,
}
