"""Adapters of the covariance of log-prob and advantage per token."""

from typing import Any

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import entropy, selection


def covariance(case: Case) -> dict[str, Any]:
    """cov: where a peer adds epsilon to the count, its means fall short by a drift.

    (x - m + dx) (a - n + da) = ours + (x - m) da + (a - n) dx + dx da
    """
    x = peers.inputs(case)
    logp, advantages, mask = x["logp"], x["advantages"], x["mask"]
    shortfall = case.params["mean_eps"] / (mask.sum() + case.params["mean_eps"])
    mean_logp = peers.masked_mean(logp, mask, 0.0)
    mean_advantage = peers.masked_mean(advantages, mask, 0.0)
    drift_logp, drift_advantage = mean_logp * shortfall, mean_advantage * shortfall
    ours = selection.token_covariance(logp, advantages, mask)
    difference = (
        (logp - mean_logp) * drift_advantage
        + (advantages - mean_advantage) * drift_logp
        + drift_logp * drift_advantage
    )
    return {
        "cov": ours + difference * mask,
        "mean_cov": entropy.covariance(logp, advantages, mask),
    }


ADAPTERS: dict[str, Adapter] = {"cov": covariance}
