"""Adapters of the advantages formulas.

Arrays arrive as NumPy; `rows` names what a group-based case needs. Peers' own ways are
written here: what a group of one gets, what stands at masked positions, statistics of
raw rewards or of the other rows.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.advantages import group_advantages, group_std
from rlvr_jax.core.baselines import (
    best_of_group_advantages,
    gpg_advantages,
    remax_advantages,
    weighted_mean_advantages,
)
from rlvr_jax.core.gae import gae, length_adaptive_lambda, value_targets
from rlvr_jax.core.kl import kl_rewards
from rlvr_jax.core.multi_reward import gdpo_advantages, summed_rewards
from rlvr_jax.core.returns import rewards_to_go, token_rewards
from rlvr_jax.core.token_baselines import optimal_token_advantages
from rlvr_jax.core.whitening import reinforce_pp_advantages, whiten
from tests.golden.case import Adapter, Case


def group_ids(case: Case) -> jax.Array:
    """Group of each row, from its prompt index or from consecutive groups."""
    if "index" in case.inputs:
        labels = case.inputs["index"]
    else:
        rows = len(next(iter(case.inputs.values())))
        labels = np.arange(rows) // case.params["group_size"]
    return jnp.asarray(np.unique(labels, return_inverse=True)[1])


def scores(case: Case) -> jax.Array:
    """One reward per row. verl sums a row's token rewards, masked positions too."""
    if "rewards" in case.inputs:
        return jnp.asarray(case.inputs["rewards"])
    return jnp.asarray(case.inputs["token_level_rewards"].sum(-1))


def mask_of(case: Case) -> jax.Array:
    return jnp.asarray(case.inputs["mask"])


def per_token(case: Case, advantages: jax.Array) -> dict[str, Any]:
    """A row's advantage at each of its kept tokens, where the case has tokens."""
    if "mask" in case.inputs:
        advantages = advantages[:, None] * mask_of(case)
    return {"advantages": advantages, "returns": advantages}


def single_rows(case: Case, advantages: jax.Array) -> jax.Array:
    """What a peer gives a group of one, where we give 0 (`params.singleton`)."""
    rule = case.params.get("singleton", "zero")
    if rule == "zero":
        return advantages
    # "mean0_std1": mean 0 and std 1, to which verl still adds epsilon.
    scaled = rule == "mean0_std1" and case.params.get("scale") != "none"
    divisor = 1 + case.params["eps"] if scaled else 1
    ids = np.asarray(group_ids(case))
    alone = jnp.asarray(np.bincount(ids)[ids] == 1)
    return jnp.where(alone, scores(case) / divisor, advantages)


def group_norm(case: Case) -> dict[str, Any]:
    params, rewards, ids = case.params, scores(case), group_ids(case)
    scale = {"group_std": "group", "none": "none", "batch_std": "none"}[params["scale"]]
    advantages = group_advantages(
        rewards,
        ids,
        baseline={"mean": "mean", "loo": "leave_one_out"}[params["center"]],
        scale=scale,
        ddof=params.get("ddof", 0),
        epsilon=params.get("eps", 0.0),
    )
    if params["scale"] == "batch_std":
        # TRL divides by the std of the raw rewards, which holds the spread between
        # prompts as well; ours is that of the centred ones.
        advantages /= rewards.std(ddof=params["ddof"]) + params["eps"]
    return per_token(case, single_rows(case, advantages))


def opo(case: Case) -> dict[str, Any]:
    lengths = mask_of(case).sum(-1)
    advantages = weighted_mean_advantages(scores(case), group_ids(case), lengths)
    return per_token(case, single_rows(case, advantages))


def gpg(case: Case) -> dict[str, Any]:
    rewards, ids = scores(case), group_ids(case)
    # The factor is B over the rows in groups of unequal rewards (ours, the paper's), or
    # over the rows whose own reward is not 0 (verl's).
    live = jnp.count_nonzero(group_std(rewards, ids))
    centred = gpg_advantages(rewards, ids) * live / len(rewards)
    alpha = len(rewards) / jnp.maximum(jnp.count_nonzero(rewards), 1)
    advantages = alpha * single_rows(case, centred) / case.params["f_norm"]
    return per_token(case, advantages)


def passk_max(case: Case) -> dict[str, Any]:
    rewards, ids = scores(case), group_ids(case)
    advantages = best_of_group_advantages(rewards, ids)
    if case.params["normalize"]:
        std = group_std(rewards, ids, ddof=case.params["ddof"])
        advantages = advantages / (std + case.params["eps"])
    return per_token(case, advantages)


def rfpp_baseline(case: Case) -> dict[str, Any]:
    centred = group_advantages(scores(case), group_ids(case), scale="none")
    return whitened_rows(case, single_rows(case, centred))


def whitened_rows(case: Case, advantages: jax.Array) -> dict[str, Any]:
    """A row's advantage at each of its tokens, whitened over all of them."""
    mask = mask_of(case)
    tokens = jnp.broadcast_to(advantages[:, None], mask.shape)
    white = whiten(tokens, mask, ddof=1)
    return {"advantages": white, "returns": white}


def rfpp(case: Case) -> dict[str, Any]:
    rewards = jnp.asarray(case.inputs["token_level_rewards"])
    mask, gamma = mask_of(case), case.params["gamma"]
    return {
        "advantages": reinforce_pp_advantages(rewards, mask, gamma=gamma, ddof=1),
        "returns": rewards_to_go(rewards, mask, gamma=gamma),
    }


def remax(case: Case) -> dict[str, Any]:
    rewards = jnp.asarray(case.inputs["token_level_rewards"])
    baselines = jnp.asarray(case.inputs["reward_baselines"])
    # verl's returns count every position, and the baseline is taken from those of kept
    # tokens alone: a hole keeps its bare return.
    returns = rewards_to_go(rewards * mask_of(case), jnp.ones_like(rewards))
    by_column = jax.vmap(remax_advantages, in_axes=(1, 1), out_axes=1)
    return {
        "advantages": by_column(returns, baselines[:, None] * mask_of(case)),
        "returns": returns,
    }


def gdpo_single(case: Case) -> dict[str, Any]:
    advantages = group_advantages(
        scores(case),
        group_ids(case),
        ddof=case.params["ddof"],
        epsilon=case.params["eps"],
    )
    return whitened_rows(case, single_rows(case, advantages))


def gdpo_multi(case: Case) -> dict[str, Any]:
    names = sorted(name for name in case.inputs if name.startswith("reward"))
    rewards = jnp.stack([jnp.asarray(case.inputs[name]) for name in names], axis=1)
    advantages = gdpo_advantages(
        rewards,
        group_ids(case),
        jnp.asarray(case.params["weights"]),
        ddof=case.params["ddof"],
        epsilon=case.params["eps"],
    )
    return whitened_rows(case, advantages)


def optimal_token(align: str) -> Adapter:
    def adapter(case: Case) -> dict[str, Any]:
        mask, ids = mask_of(case), group_ids(case)
        rewards = jnp.asarray(case.inputs["token_level_rewards"])
        weights = case.inputs.get("is_weights")
        advantages = optimal_token_advantages(
            rewards,
            ids,
            jnp.asarray(case.inputs["old_logp"]),
            jnp.asarray(case.inputs["sum_pi_squared"]),
            mask,
            align=align,
            bare_tail=False,
            importance_weights=None if weights is None else jnp.asarray(weights),
            epsilon=case.params["eps"],
        )
        returns = rewards_to_go(rewards, mask)
        bare = bare_tokens(case, align)
        advantages = jnp.where(bare, returns, advantages) * mask
        # verl's returns carry over holes; ours are 0 there.
        return {"advantages": advantages, "returns": carried(returns, mask)}

    return adapter


def bare_tokens(case: Case, align: str) -> np.ndarray:
    """Tokens to which verl gives no baseline.

    Rows alone in their group, and, with handle_zero_tail, the longest row of a group
    from the second-longest's number of tokens on. That number is counted in kept tokens
    and, for align "position", used as a column: with holes the two are not the same.
    """
    mask, ids = np.asarray(mask_of(case)) > 0, np.asarray(group_ids(case))
    lengths = mask.sum(-1)
    place = np.cumsum(mask, -1) - 1 if align == "kept" else np.indices(mask.shape)[1]
    bare = np.zeros(mask.shape, bool)
    for group in np.unique(ids):
        rows = np.flatnonzero(ids == group)
        if align == "kept":
            rows = rows[lengths[rows] > 0]
        if len(rows) == 1:
            bare[rows] = True
        if len(rows) < 2 or not case.params["handle_zero_tail"]:
            continue
        *_, second, longest = rows[np.argsort(lengths[rows], kind="stable")]
        if lengths[longest] > lengths[second]:
            bare[longest] = place[longest] >= lengths[second]
    return bare


def carried(values: jax.Array, mask: jax.Array) -> np.ndarray:
    """At masked positions the value of the next kept one; 0 after the last."""
    filled = np.array(values)
    for t in reversed(range(filled.shape[1])):
        later = filled[:, t + 1] if t + 1 < filled.shape[1] else 0.0
        filled[:, t] = np.where(np.asarray(mask)[:, t] > 0, filled[:, t], later)
    return filled


def gae_of_peer(case: Case) -> dict[str, Any]:
    params = case.params
    rewards = jnp.asarray(case.inputs["token_level_rewards"])
    values = jnp.asarray(case.inputs["values"])
    options = dict(gamma=params["gamma"], lam=params["lam"])
    everything = jnp.ones_like(values)
    if params["mask_mode"] == "carry":
        return _carried_gae(rewards, values, mask_of(case), options)
    if params["mask_mode"] == "zero":
        # OpenRLHF: masked tokens are steps without value and reward, that discount.
        rewards, values = rewards * mask_of(case), values * mask_of(case)
    return {
        "advantages": gae(rewards, values, everything, **options),
        "returns": value_targets(rewards, values, everything, **options),
    }


def _carried_gae(rewards, values, mask, options) -> dict[str, Any]:
    """verl: whitened without masking afterwards, and returns at every position."""
    plain = carried(gae(rewards, values, mask, **options), mask)
    return {
        "advantages": whitened_everywhere(plain, mask, ddof=1),
        "returns": plain + np.asarray(values),
    }


def whitened_everywhere(values, mask, ddof: int = 0) -> np.ndarray:
    """Peers that do not mask after whitening: the same scale at masked positions."""
    values, kept = np.asarray(values), np.asarray(mask) > 0
    mean, variance = values[kept].mean(), values[kept].var(ddof=ddof)
    white = whiten(jnp.asarray(values), mask, ddof=ddof)
    return np.where(kept, white, (values - mean) / np.sqrt(variance + 1e-8))


def gae_packed(case: Case) -> dict[str, Any]:
    rewards = jnp.asarray(case.inputs["token_level_rewards"])
    values = jnp.asarray(case.inputs["values"])
    # open-instruct: a masked step is not skipped, it ends the episode.
    ends = jnp.asarray((case.inputs["dones"] > 0) | (case.inputs["mask"] == 0))
    everything = jnp.ones_like(values)
    options = dict(gamma=case.params["gamma"], lam=case.params["lam"])
    return {
        "advantages": gae(rewards, values, everything, episode_ends=ends, **options),
        "returns": value_targets(
            rewards, values, everything, episode_ends=ends, **options
        ),
    }


def gae_seq_reward(case: Case) -> dict[str, Any]:
    mask, values = mask_of(case), jnp.asarray(case.inputs["values"])
    rewards = token_rewards(scores(case), mask)
    options = dict(gamma=case.params["gamma"], lam=case.params["lam"])
    found = _carried_gae(rewards, values, mask, options)
    return {**found, "advantages": found["advantages"] * mask}


def vapo_gae(case: Case) -> dict[str, Any]:
    params, mask = case.params, mask_of(case)
    values = jnp.asarray(case.inputs["values"])
    rewards = token_rewards(scores(case), mask)
    lam = length_adaptive_lambda(mask.sum(-1), alpha=params["alpha"])
    advantages = gae(rewards, values, mask, gamma=params["gamma"], lam=lam)
    for_value = gae(
        rewards, values, mask, gamma=params["gamma"], lam=params["lam_value"]
    )
    return {
        "advantages": advantages,
        # Returns stand at every position, as the carried advantage plus V.
        "returns": carried(for_value, mask) + np.asarray(values),
    }


def trl_multi(case: Case) -> dict[str, Any]:
    params, ids = case.params, group_ids(case)
    rewards = jnp.asarray(case.inputs["rewards_per_func"])
    weights = jnp.asarray(params["weights"])
    applies = ~jnp.isnan(rewards)
    rows = applies.any(-1)
    options = dict(ddof=params["ddof"], epsilon=params["eps"])
    if params["aggregation"] == "normalize_then_sum":
        summed = gdpo_advantages(rewards, ids, weights, applies=applies, **options)
        batch = jnp.zeros_like(ids)
        return {"advantages": group_advantages(summed, batch, row_mask=rows, **options)}
    summed = summed_rewards(rewards, weights, applies=applies)
    scale = "none" if params["scale"] == "batch" else params["scale"]
    advantages = group_advantages(summed, ids, scale=scale, row_mask=rows, **options)
    if params["scale"] == "batch":
        kept = np.asarray(summed)[np.asarray(rows)]
        advantages /= kept.std(ddof=params["ddof"]) + params["eps"]
    return {"advantages": advantages}


def kl_penalty(case: Case, policy, reference, beta: float) -> jax.Array:
    """-beta (policy - reference) at each kept token."""
    return kl_rewards(
        jnp.asarray(policy), jnp.asarray(reference), mask_of(case), beta=beta
    )


def trl_rloo(case: Case) -> dict[str, Any]:
    params, rewards, ids = case.params, scores(case), group_ids(case)
    if params["reward_clip"] is not None:
        rewards = jnp.clip(rewards, *params["reward_clip"])
    if params["beta"]:
        old, reference = case.inputs["old_logp"], case.inputs["ref_logp"]
        rewards += kl_penalty(case, old, reference, params["beta"]).sum(-1)
    advantages = group_advantages(rewards, ids, baseline="leave_one_out", scale="none")
    if params["normalize"]:
        advantages = group_advantages(
            advantages, jnp.zeros_like(ids), ddof=1, epsilon=params["eps"]
        )
    return {"advantages": advantages}


def openrlhf_adv(case: Case) -> dict[str, Any]:
    params, rewards, ids = case.params, scores(case), group_ids(case)
    estimator, mask = params["estimator"], mask_of(case)
    if estimator != "reinforce":
        rewards = group_advantages(
            rewards,
            ids,
            baseline="leave_one_out" if estimator == "rloo" else "mean",
            scale="group" if estimator == "group_norm" else "none",
            ddof=1,
            epsilon=1e-9,
        )
    kl = case.inputs["kl"]
    tokens = token_rewards(rewards, mask)
    tokens += kl_penalty(case, kl, np.zeros_like(kl), params["kl_coef"])
    # Masked tokens without reward are steps that discount.
    returns = rewards_to_go(tokens, jnp.ones_like(mask), gamma=params["gamma"])
    white = estimator in ("reinforce", "reinforce_baseline")
    advantages = whitened_everywhere(returns, mask) if white else returns
    return {"advantages": advantages, "returns": returns}


def nemo_grpo(case: Case) -> dict[str, Any]:
    params, rewards, ids = case.params, scores(case), group_ids(case)
    alone = params["leave_one_out"]
    advantages = group_advantages(
        rewards,
        ids,
        baseline="leave_one_out" if alone else "mean",
        scale="none",
    )
    if params["normalize"]:
        std = std_of_others(rewards, ids) if alone else group_std(rewards, ids, ddof=1)
        # NeMo-RL leaves a row undivided where the std is 0.
        divided = advantages / (std + params["eps"])
        advantages = jnp.where(std > 0, divided, advantages)
    return {"advantages": advantages}


def std_of_others(rewards: jax.Array, ids: jax.Array) -> jax.Array:
    """The std of a row's group without the row itself; 0 for one other."""
    rows = jnp.arange(len(rewards))

    def without(row):
        return group_std(rewards, ids, ddof=1, row_mask=rows != row)[row]

    return jax.vmap(without)(rows)


def nemo_rfpp(case: Case) -> dict[str, Any]:
    rewards, mask = scores(case), mask_of(case)
    if case.params["minus_baseline"]:
        rewards = group_advantages(rewards, group_ids(case), scale="none")
    tokens = np.broadcast_to(np.asarray(rewards)[:, None], mask.shape)
    return {"advantages": whitened_everywhere(tokens, mask)}


def slime_rfpp(case: Case) -> dict[str, Any]:
    mask, params = mask_of(case), case.params
    kl = case.inputs["kl"]
    tokens = token_rewards(scores(case), mask)
    tokens += kl_penalty(case, kl, np.zeros_like(kl), params["kl_coef"])
    # Masked tokens are steps that discount.
    everything = jnp.ones_like(mask)
    return {"returns": rewards_to_go(tokens, everything, gamma=params["gamma"])}


ADAPTERS: dict[str, Adapter] = {
    "group_norm": group_norm,
    "opo": opo,
    "gpg": gpg,
    "passk_max": passk_max,
    "rfpp_baseline": rfpp_baseline,
    "rfpp": rfpp,
    "remax": remax,
    "gdpo_single": gdpo_single,
    "gdpo_multi": gdpo_multi,
    "otb": optimal_token("position"),
    "tir_otb": optimal_token("kept"),
    "gae": gae_of_peer,
    "gae_packed": gae_packed,
    "gae_seq_reward": gae_seq_reward,
    "vapo_gae": vapo_gae,
    "trl_multi": trl_multi,
    "trl_rloo": trl_rloo,
    "openrlhf_adv": openrlhf_adv,
    "nemo_grpo": nemo_grpo,
    "nemo_rfpp": nemo_rfpp,
    "slime_rfpp": slime_rfpp,
}
