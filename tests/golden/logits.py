"""Adapters of log-probs and entropies from logits."""

from typing import Any

import jax
import jax.numpy as jnp

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import logprobs as core


def logprob(case: Case) -> dict[str, Any]:
    """logp: log softmax(logits / T) at the label."""
    x, temperature = peers.inputs(case), case.params["temperature"]

    def at_label(logits: Any) -> Any:
        return core.logprobs_from_logits(logits, x["labels"], temperature=temperature)

    weighted = lambda logits: (at_label(logits) * x["grad_weight"]).sum()
    return {
        "logp": at_label(x["logits"]),
        "grad_logits": jax.grad(weighted)(x["logits"]),
    }


def entropy(case: Case) -> dict[str, Any]:
    """entropy: of softmax(logits / T), in nats."""
    x, temperature = peers.inputs(case), case.params["temperature"]

    def of(logits: Any) -> Any:
        return core.entropy_from_logits(logits, temperature=temperature)

    weighted = lambda logits: (of(logits) * x["grad_weight"]).sum()
    return {
        "entropy": of(x["logits"]),
        "grad_logits": jax.grad(weighted)(x["logits"]),
    }


def slime(case: Case) -> dict[str, Any]:
    """slime_lp: log-prob within the sampler's kept set, entropy over the vocabulary."""
    x = peers.inputs(case)
    kept = x.get("keep_mask")

    def both(logits: Any) -> tuple[Any, Any]:
        if kept is None:
            inside = logits
        else:
            # The label always counts as kept.
            label = jax.nn.one_hot(x["labels"], logits.shape[-1], dtype=bool)
            allowed = (kept > 0).reshape(logits.shape) | label
            inside = jnp.where(allowed, logits, -jnp.inf)
        return (
            core.logprobs_from_logits(inside, x["labels"]),
            core.entropy_from_logits(logits),
        )

    def weighted(logits: Any) -> Any:
        logp, nats = both(logits)
        return (logp * x["grad_weight"] + nats * x["grad_weight_entropy"]).sum()

    logp, nats = both(x["logits"])
    gradient = jax.grad(weighted)(x["logits"])
    return {"logp": logp, "entropy": nats, "grad_logits": gradient}


def entropy_loss(case: Case) -> dict[str, Any]:
    """entropy_loss: the aggregated entropy."""
    x = peers.inputs(case)
    nats = core.entropy_from_logits(x["logits"])
    return {"loss": peers.aggregate(case.params["agg"], nats, x["mask"])}


ADAPTERS: dict[str, Adapter] = {
    "logp": logprob,
    "entropy": entropy,
    "slime_lp": slime,
    "entropy_loss": entropy_loss,
}
