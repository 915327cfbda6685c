"""Adapters of open-instruct, NeMo-RL, AReaL, prime-rl: whole losses by their keys."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.golden import peers
from tests.golden.case import Adapter, Case
from tests.golden.core import kl, losses, offpolicy, ratios, selection, weighted_losses
from tests.golden.policy_loss import advantages_of

UNBOUNDED = {"log_ratio_clamp": math.inf}


def open_instruct(case: Case) -> dict[str, Any]:
    """oi: the importance weights multiply the surrogate, not the KL."""
    x, params = peers.inputs(case), case.params
    mask, weights = x["mask"], x["is_weights"]
    log_ratio_of = lambda logp: ratios.token_log_ratio(logp, x["old_logp"], mask)

    def per_token(logp: Any) -> Any:
        if params["loss_type"] == "cispo":
            loss = weighted_losses.cispo_loss(
                logp,
                log_ratio_of(logp),
                x["advantages"],
                epsilon_high=params["clip_high"],
                **UNBOUNDED,
            )
        else:
            loss = losses.clipped_loss(
                log_ratio_of(logp),
                x["advantages"],
                epsilon_low=params["clip_low"],
                epsilon_high=params["clip_high"],
                **UNBOUNDED,
            )
        return loss * weights + params["beta"] * open_instruct_kl(case, logp)

    low, high = selection.clip_masks(
        log_ratio_of(x["logp"]),
        x["advantages"],
        epsilon_low=params["clip_low"],
        epsilon_high=params["clip_high"],
    )
    if params["loss_type"] == "cispo":
        clipped = np.exp(log_ratio_of(x["logp"])) > 1.0 + params["clip_high"]
    else:
        clipped = low | high
    computed = peers.loss_and_grad(
        lambda logp: peers.aggregate(params["agg"], per_token(logp), mask), x["logp"]
    )
    clipfrac = peers.masked_mean(clipped & (weights != 0), mask, 0.0)
    return computed | {"metric:clipfrac": clipfrac}


def open_instruct_kl(case: Case, logp: Any) -> Any:
    """Estimators 0..3: k1, k2, k3 and ratio * k1; the log-ratio stays within 40."""
    x, index = peers.inputs(case), case.params["kl_estimator"]
    if index is None:
        return 0.0
    term = kl.kl_estimate(
        logp,
        x["ref_logp"],
        estimator=("k1", "k2", "k3", "k1")[index],
        token_mask=x["mask"],
        input_clamp=40.0,
    )
    if index == 3:
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], x["mask"])
        return kl.importance_corrected_kl(term, log_ratio, **UNBOUNDED)
    return term


def nemo(case: Case) -> dict[str, Any]:
    """nemo: the divisor comes from outside; row means have 1e-8 on their count."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    weights = nemo_weights(case)

    def total(per_token: Any) -> Any:
        values = jnp.where(mask, per_token, 0.0)
        if params["token_level_loss"]:
            return values.sum() / params["global_valid_toks"]
        rows = values.sum(-1) / (mask.sum(-1) + 1e-8)
        return rows.sum() / params["global_valid_seqs"]

    def loss(logp: Any) -> Any:
        value = total(nemo_surrogate(case, logp) * weights)
        # A KL that goes into the reward is not in the loss.
        if params["use_kl_in_reward"]:
            return value
        penalty = params["reference_policy_kl_penalty"]
        return value + (penalty * total(nemo_kl(case, logp)) if penalty else 0.0)

    return peers.loss_and_grad(loss, x["logp"])


def nemo_surrogate(case: Case, logp: Any) -> Any:
    """PPO clip, CISPO, REINFORCE or a ratio forced to 1."""
    x, params = peers.inputs(case), case.params
    advantages, dual_clip = x["advantages"], params["ratio_clip_c"]
    if params["disable_ppo_ratio"] and not params["force_on_policy_ratio"]:
        loss = losses.reinforce_loss(logp, advantages)
        if dual_clip is None:
            return loss
        negative = advantages_of(x) < 0
        bound = -dual_clip * advantages_of(x)
        return jnp.where(negative, jnp.minimum(loss, bound), loss)
    old = jax.lax.stop_gradient(logp) if params["force_on_policy_ratio"] else None
    log_ratio = ratios.token_log_ratio(
        logp, x["old_logp"] if old is None else old, x["mask"]
    )
    bounds = {
        "epsilon_low": params["ratio_clip_min"],
        "epsilon_high": params["ratio_clip_max"],
    }
    if params["use_cispo"]:
        return weighted_losses.cispo_loss(
            logp, log_ratio, advantages, **bounds, **UNBOUNDED
        )
    if params["sequence_level_importance_ratios"]:
        lengths = peers.row_lengths(x["mask"])
        log_ratio = ratios.sequence_log_ratio(log_ratio, x["mask"])
        log_ratio = log_ratio * (lengths / (lengths + 1e-8))
    return losses.clipped_loss(
        log_ratio, advantages, dual_clip=dual_clip, **bounds, **UNBOUNDED
    )


def nemo_weights(case: Case) -> Any:
    """Weights of old against rollout log-probs; "tis" bounds, "icepop" zeroes."""
    x, params = peers.inputs(case), case.params
    if not params["use_importance_sampling_correction"]:
        return 1.0
    log_ratio = ratios.token_log_ratio(x["old_logp"], x["rollout_logp"], x["mask"])
    level = "sequence" if params["sequence_level_importance_ratios"] else "token"
    kind = params["truncated_importance_sampling_type"]
    low = params["truncated_importance_sampling_ratio_min"]
    high = params["truncated_importance_sampling_ratio"]
    bounds: dict[str, Any] = {}
    if kind in ("tis", "icepop"):
        outside = {"tis": "clamp", "icepop": "zero"}[kind]
        bounds = {"lower": low or 0.0, "upper": high, "outside": outside}
    weights = offpolicy.importance_weights(
        log_ratio, x["mask"], level=level, **bounds, **UNBOUNDED
    )
    if kind == "seq-mask-tis":
        # Rows are filtered by their geometric mean, the weights stay unbounded.
        return weights * offpolicy.rejection_mask(
            log_ratio, x["mask"], lower=low, upper=high
        )
    return weights


def nemo_kl(case: Case, logp: Any) -> Any:
    """The estimate times a differentiable ratio (value 1), then clamped."""
    x, params = peers.inputs(case), case.params
    approximate = params["use_on_policy_kl_approximation"]
    sampled = x["rollout_logp"] if approximate else jax.lax.stop_gradient(logp)
    term = kl.kl_estimate(
        logp,
        x["ref_logp"],
        estimator=params["reference_policy_kl_type"],
        token_mask=x["mask"],
        input_clamp=params["kl_input_clamp_value"],
    )
    log_ratio = ratios.token_log_ratio(logp, sampled, x["mask"])
    term = kl.importance_corrected_kl(term, log_ratio, **UNBOUNDED)
    bound = params["kl_output_clamp_value"]
    return term if bound is None else jnp.clip(term, -bound, bound)


def areal(case: Case) -> dict[str, Any]:
    """areal: after a rejection the divisor stays the ORIGINAL token count."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    kept, weights = areal_rejection(case)
    high = params.get("eps_clip_higher")

    def per_token(logp: Any) -> Any:
        advantages = x["advantages"]
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], kept)
        if params.get("importance_sampling_level") == "sequence":
            log_ratio = ratios.sequence_log_ratio(log_ratio, kept)
        loss = losses.clipped_loss(
            log_ratio,
            advantages,
            epsilon_low=params["eps_clip"],
            epsilon_high=params["eps_clip"] if high is None else high,
            dual_clip=params.get("c_clip"),
            **UNBOUNDED,
        )
        return loss * weights

    tokens = np.maximum(mask.sum(), 1)
    computed = peers.loss_and_grad(
        lambda logp: jnp.where(kept, per_token(logp), 0.0).sum() / tokens, x["logp"]
    )
    behaviour = np.broadcast_to(np.asarray(weights), mask.shape)
    return computed | {"behave_imp_weight": np.where(kept, behaviour, 0.0)}


def areal_rejection(case: Case) -> tuple[Any, Any]:
    """(kept tokens, behaviour weights) of AReaL's RejectionSamplingConfig."""
    x, config = peers.inputs(case), case.params.get("rejection_sampling")
    mask = x["mask"]
    if config is None:
        return mask, 1.0
    log_ratio = ratios.token_log_ratio(x["old_logp"], x["rollout_logp"], mask)
    by_row, ratio = config["level"] == "sequence", config["metric"] == "ratio"
    lower, upper = config["lower"], config["upper"]
    inside = areal_inside(config, log_ratio, mask)
    weights = np.broadcast_to(
        offpolicy.importance_weights(
            log_ratio,
            mask,
            # One weight for the row only where rows are judged by their ratio.
            level="sequence_mean" if by_row and ratio else "token",
            **UNBOUNDED,
        ),
        mask.shape,
    )
    if config["action"] == "mask":
        return mask & inside, weights
    bounded = np.clip(weights, lower if lower is not None else 0.0, upper)
    if by_row:
        bounded = np.where(inside, weights, bounded)
    return mask, bounded


def areal_inside(config: dict[str, Any], log_ratio: Any, mask: Any) -> Any:
    """Within bounds, by token or by row; KL metrics are of (old || rollout)."""
    level = "token"
    if config["level"] == "sequence":
        level = f"sequence_{config['agg']}"
    lower, upper = config["lower"], config["upper"]
    statistic = config["metric"].removeprefix("kl_")
    if statistic == "k1":
        # d itself: its bounds are those of e^d.
        statistic, upper = "ratio", math.exp(upper)
        lower = None if lower is None else math.exp(lower)
    return offpolicy.rejection_mask(
        -log_ratio if statistic == "k3" else log_ratio,
        mask,
        statistic=statistic,
        level=level,
        lower=lower,
        upper=upper,
    )


def prime(case: Case) -> dict[str, Any]:
    """prime: l = -A r on tokens in the trust region, + kl_tau d^2 on all."""
    x, params = peers.inputs(case), case.params
    mask = x["mask"]
    if params["kind"] == "ipo":
        # One threshold, whatever the signs of the move and of the advantage.
        moved = np.exp(x["logp"]) - np.exp(x["old_logp"])
        keep = np.abs(moved) <= params["mask_high"]
    else:
        keep = weighted_losses.dppo_mask(
            x["logp"],
            x["old_logp"],
            x["advantages"],
            threshold_low=params["mask_low"],
            threshold_high=params["mask_high"],
        )

    def loss(logp: Any) -> Any:
        log_ratio = ratios.token_log_ratio(logp, x["old_logp"], mask)
        surrogate = losses.ratio_loss(
            log_ratio, params["adv_tau"] * x["advantages"], **UNBOUNDED
        )
        pull = params["kl_tau"] * log_ratio**2
        return peers.aggregate(params["agg"], surrogate * keep + pull, mask)

    return peers.loss_and_grad(loss, x["logp"])


ADAPTERS: dict[str, Adapter] = {
    "oi": open_instruct,
    "nemo": nemo,
    "areal": areal,
    "prime": prime,
}
