"""Adapters of reward shaping, pass@k and the critic's loss."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.critic import value_clip_fraction, value_loss
from rlvr_jax.core.passk import pass_at_k
from rlvr_jax.core.shaping import soft_overlong_penalty, unfinished_rewards
from tests.golden import peers
from tests.golden.case import Adapter, Case


def overlong(case: Case) -> dict[str, Any]:
    params, lengths = case.params, jnp.asarray(case.inputs["lengths"])
    limit, buffer, size = params["max_len"], params["buffer"], params["factor"]
    if params["floor"] is None:
        # verl and AReaL let the ramp go on below -factor: the same slope over a buffer
        # that reaches past the longest completion.
        times = 1 + int(lengths.max()) // buffer
        limit += (times - 1) * buffer
        buffer, size = times * buffer, times * size
    penalty = soft_overlong_penalty(
        lengths, max_completion_tokens=limit, buffer_tokens=buffer, penalty=size
    )
    return {"shaped": penalty + case.inputs.get("rewards", 0.0)}


def stop_properly(case: Case) -> dict[str, Any]:
    rewards, coef = jnp.asarray(case.inputs["rewards"]), case.params["coef"]
    ended = jnp.asarray(case.inputs["truncated"] == 0)
    # OpenRLHF: a coefficient of at least 0 scales the reward, below 0 it is the reward.
    cut = rewards * coef if coef >= 0 else coef
    return {"shaped": unfinished_rewards(rewards, ended, reward=cut)}


def human_eval(case: Case) -> dict[str, Any]:
    counts, k = case.inputs["c"][:, None], case.inputs["k"][None]
    return {"pass_at_k": pass_at_k(case.params["n"], counts, k)}


def varying_samples(case: Case) -> dict[str, Any]:
    return {
        "pass_at_k": pass_at_k(case.inputs["n"], case.inputs["c"], case.params["k"])
    }


def open_instruct(case: Case) -> dict[str, Any]:
    """Means over prompts; without "_unbiased", of any of the first K samples."""
    correct = case.inputs["correct"] > 0
    samples = correct.shape[1]
    found = {}
    for name in case.expected:
        k, *unbiased = name.removeprefix("eval/pass_at_").split("_")
        if unbiased:
            found[name] = pass_at_k(samples, correct.sum(1), int(k)).mean()
        elif int(k) == 1:
            found[name] = correct.mean()
        else:
            found[name] = correct[:, : int(k)].any(1).mean()
    return found


def critic_loss(case: Case) -> dict[str, Any]:
    params, x = case.params, peers.inputs(case)
    old, targets, mask = x["old_values"], x["returns"], x["mask"]

    def loss(values):
        per_token = value_loss(values, old, targets, clip=params["clip"])
        # Ours holds the factor 1/2 of the published loss; `coef` is a peer's whole one.
        return peers.aggregate(params["agg"], per_token, mask) * params["coef"] / 0.5

    value, gradient = jax.value_and_grad(loss)(x["values"])
    found = {"loss": value, "grad_values": np.where(mask, gradient, 0)}
    if params["clip"] is not None:
        fraction = value_clip_fraction(
            x["values"], old, targets, mask, clip=params["clip"]
        )
        found["metric:clipfrac"] = fraction.value()
    return found


ADAPTERS: dict[str, Adapter] = {
    "overlong": overlong,
    "stop_properly": stop_properly,
    "pass_at_k": human_eval,
    "pass_at_k_varying": varying_samples,
    "oi_pass_at_k": open_instruct,
    "value_loss": critic_loss,
}
