"""Adapters of aggregation alone: the gradient is d loss / d loss_mat."""

from typing import Any

import jax

from tests.golden import peers
from tests.golden.case import Adapter, Case


def aggregation(case: Case) -> dict[str, Any]:
    """agg: `core.aggregation` with the peer's divisor."""
    x = peers.inputs(case)
    value, gradient = jax.value_and_grad(
        lambda per_token: peers.aggregate(case.params["agg"], per_token, x["mask"])
    )(x["loss_mat"])
    return {"loss": value, "grad": gradient}


ADAPTERS: dict[str, Adapter] = {"agg": aggregation}
