"""Adapters of the KL estimators."""

from typing import Any

import jax
import jax.numpy as jnp

from tests.golden import core, peers
from tests.golden.case import Adapter, Case

NAMES = {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}


def kl(case: Case) -> dict[str, Any]:
    """kl: gradient of sum(grad_weight * kl) with respect to the policy's log-probs."""
    x, params = peers.inputs(case), case.params
    clamp = params.get("out_clamp")

    def estimate(logprobs: Any) -> Any:
        value = core.kl.kl_estimate(
            logprobs,
            x["ref_logp"],
            estimator=NAMES.get(params["kind"], params["kind"]),
            input_clamp=params.get("in_clamp"),
            # A weighted estimate is clamped after the weight, below.
            straight_through=params.get("straight_through_k2", False),
            output_clamp=clamp[1] if clamp and not _weighted(case) else None,
        )
        if "is_weights" in x:
            value = value * x["is_weights"]
        if params.get("times_ratio"):
            value = core.kl.importance_corrected_kl(
                value, logprobs - x["old_logp"], log_ratio_clamp=jnp.inf
            )
        if clamp and _weighted(case):
            value = jnp.clip(value, *clamp)
        return value * params.get("scale", 1.0)

    gradient = jax.grad(lambda logp: (estimate(logp) * x["grad_weight"]).sum())
    return {"kl": estimate(x["logp"]), "grad_logp": gradient(x["logp"])}


def _weighted(case: Case) -> bool:
    return "is_weights" in case.inputs or bool(case.params.get("times_ratio"))


ADAPTERS: dict[str, Adapter] = {"kl": kl}
