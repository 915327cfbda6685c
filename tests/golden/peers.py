"""What the peers' calls have in common: inputs, means, aggregation, gradients."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.golden.case import Case
from tests.golden.core import aggregation


def inputs(case: Case) -> dict[str, Any]:
    """The case's inputs as arrays; `mask` as booleans."""
    arrays = dict(case.inputs)
    if "mask" in arrays:
        arrays["mask"] = arrays["mask"] > 0
    return arrays


def loss_and_grad(loss: Callable[[Any], Any], logprobs: Any) -> dict[str, Any]:
    """{loss, grad_logp} of a scalar function of the policy's log-probs."""
    value, gradient = jax.value_and_grad(loss)(jnp.asarray(logprobs))
    return {"loss": value, "grad_logp": gradient}


def masked_mean(values: Any, mask: Any, epsilon: float = 1e-8) -> Any:
    """Mean over the mask as verl, OpenRLHF and NeMo-RL take it: 1e-8 on the count."""
    values = np.broadcast_to(np.asarray(values, float), mask.shape)
    return np.where(mask, values, 0.0).sum() / (mask.sum() + epsilon)


def single(value: Any) -> np.float32:
    """A scalar that the peer computes in float32, though the case is float64."""
    return np.float32(value)


def row_lengths(mask: Any) -> Any:
    """Tokens of each row, [B, 1]."""
    return mask.sum(-1, keepdims=True).astype(float)


MODES = {
    "token-mean": "token_mean",
    "token-sum": "token_sum",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-sum-norm": "sequence_sum",
    "seq-mean-token-mean": "sequence_mean",
}


def aggregate(agg: dict[str, Any], per_token: Any, mask: Any) -> Any:
    """`params.agg` of the vectors with our weights; only the divisor is the peer's.

    Ours counts rows that have tokens and adds nothing to a divisor; peers count all
    rows ("all"), a number from outside, or add 1e-8, and scale by the ranks.
    """
    weights, denominator = aggregation.token_weights(
        mask, np.arange(mask.shape[0]), loss_aggregation=MODES[agg["mode"]]
    )
    if agg["mode"] == "token-mean":
        denominator = agg.get("batch_num_tokens", denominator)
        denominator = denominator + agg.get("token_eps", 0.0)
    elif agg["mode"] != "token-sum":
        counted = agg["seq_denominator"]
        if counted == "all":
            denominator = mask.shape[0]
        elif counted != "nonempty":
            denominator = counted
        denominator = denominator + agg.get("seq_eps", 0.0)
    if agg["mode"] == "seq-mean-token-sum-norm":
        denominator = denominator * agg["scale_factor"]
    if agg["mode"] == "seq-mean-token-mean":
        lengths = row_lengths(mask)
        padded = lengths + agg.get("len_eps", 0.0) + (lengths == 0)
        weights = weights * lengths / padded
    ratio = aggregation.aggregate(per_token, weights, np.asarray(denominator, float))
    # A fully masked batch is 0/0 for some peers; for others 0, as for us.
    if "token_eps" in agg and denominator == 0:
        return ratio.value()
    return ratio.numerator * (agg.get("dp_size", 1) / np.float64(denominator))
