"""All that "we use GRPO" leaves open: the objective of a run in words."""

from rlvr_jax.config import Config, CurriculumConfig, Objective
from rlvr_jax.objective_rules import ADVANTAGE_READS, SURROGATE_READS

_BASELINES = {
    "group": "reward - group mean",
    "rloo": "reward - mean of the others",
    "opo": "reward - length-weighted group mean",
    "gpg": "reward - group mean, scaled up for unanimous groups",
    "best_of_group": "best reward - second best, for the best alone",
    "remax": "reward - reward of the greedy answer",
    "gdpo": "each reward part - its group mean",
    "reinforce_pp": "return per token, whitened over the batch",
    "reinforce_pp_baseline": "reward - group mean, whitened over the batch's tokens",
    "gae": "generalised advantage estimation with a critic",
    "distillation": "log-ratio of the reference to the policy, no reward",
}


def disclosure(config: Config) -> dict[str, str]:
    """Label -> value, for the plan and the report."""
    objective, batch = config.objective, config.batch
    found = {
        "from": f"preset {objective.name}",
        "group": f"{config.rollout.num_generations} completions per prompt",
        "prompts": _prompts(config.curriculum),
        "groups of one outcome": _unanimous(config.curriculum),
        "reward shaping": _shaping(objective),
        "advantage": _advantage(objective),
        "old policy": _old_policy(config),
        "surrogate": _surrogate(objective),
        "off-policy correction": _corrections(objective),
        "aggregation": objective.loss_aggregation,
        "KL": _divergence(objective),
        "cut completions": _cut(objective),
        "entropy": _entropy(objective),
        "updates per rollout": f"{batch.minibatches_per_step} minibatches x "
        f"{batch.epochs_per_step} epochs",
    }
    if objective.top_entropy_fraction < 1:
        found["tokens"] = f"the {objective.top_entropy_fraction:.0%} of highest entropy"
    if objective.imitation_coefficient:
        found["imitation"] = (
            f"{objective.imitation_coefficient:g} x -log-likelihood of correct ones"
        )
    if objective.advantage == "gae":
        found["critic"] = _critic(config)
    return found


def _prompts(c: CurriculumConfig) -> str:
    """The rules of the draw."""
    parts = []
    if c.draw == "priority":
        parts.append("drawn with chance ~ 1 - pass rate")
    if c.drop_pass_rate:
        parts.append(f"dropped for good from pass rate {c.drop_pass_rate:g} on")
    if (c.min_pass_rate, c.max_pass_rate) != (0, 1):
        window = f"[{c.min_pass_rate:g}, {c.max_pass_rate:g}]"
        parts.append(f"pass rate within {window}")
    if c.stages != "[]":
        parts.append(f"stages {c.stages}")
    return "; ".join(parts) or "all, each once per epoch"


def _unanimous(c: CurriculumConfig) -> str:
    """What happens to groups that have nothing to compare."""
    if c.filter == "none":
        return "not filtered, they count in the denominator"
    if c.filter == "mask":
        words = "leave the loss"
    else:
        refill = {"dynamic": "whole batches", "active": "as many as are missing"}
        short = {"mask": "then filled up outside the loss", "error": "then an error"}
        words = (
            f"replaced, {c.filter} sampling: refilled ({refill[c.filter]}) until every "
            f"group is informative, at most {c.max_generation_batches} batches, "
            f"{short[c.when_short]}"
        )
    return f"{words}; judged on {c.judged_on}"


def _shaping(o: Objective) -> str:
    parts = []
    if o.overlong_buffer_tokens:
        parts.append(
            f"penalty up to {o.overlong_penalty:g} over the last "
            f"{o.overlong_buffer_tokens} tokens"
        )
    if o.length_reward_weight:
        parts.append(f"{o.length_reward_weight:g} x length within the group")
    if o.replace_unfinished:
        parts.append(f"{o.unfinished_reward:g} in place of it where not ended")
    return "; ".join(parts) or "none"


def _advantage(o: Objective) -> str:
    if o.advantage == "running_mean":
        baseline = f"reward - mean of the prompt's last {o.baseline_window} rewards"
    elif o.advantage == "passk":
        baseline = f"pass@{o.passk_k} credit - its group mean"
    else:
        baseline = _BASELINES[o.advantage]
    over = {"group": "the group", "batch": "the batch", "minibatch": "the minibatch"}
    if o.scale_rewards == "none":
        return f"{baseline}, not scaled"
    std = f"divided by the std of {over[o.scale_rewards]}"
    if "std_ddof" in ADVANTAGE_READS.get(o.advantage, ()):
        std += f" (ddof {o.std_ddof}, + {o.std_epsilon:g})"
    return f"{baseline}, {std}"


def _old_policy(config: Config) -> str:
    o = config.objective
    if o.old_policy == "rollout" and "old_policy" in SURROGATE_READS[o.surrogate]:
        return "the sampler's own log-probs"
    if config.batch.updates_per_step == 1:
        return "the policy itself: one update per rollout, ratio 1"
    return "the policy at the start of the step, recomputed by the trainer"


def _surrogate(o: Objective) -> str:
    settings = ", ".join(
        f"{name} {getattr(o, name)}"
        for name in SURROGATE_READS[o.surrogate]
        if name not in ("old_policy", "ratio_level")
    )
    if o.surrogate == "sign_bands" and o.band_entropy:
        settings += f", band_step {o.band_step:g}"
    level = ""
    if "ratio_level" in SURROGATE_READS[o.surrogate]:
        level = f"{o.ratio_level} ratio, "
    return f"{o.surrogate}: {level}{settings}".rstrip(":, ")


def _corrections(o: Objective) -> str:
    parts = []
    if o.importance_correction != "none":
        bounds = f"[{o.importance_lower:g}, {o.importance_upper:g}]"
        outside = {"clamp": "clamped to", "zero": "zero outside"}
        parts.append(
            f"{o.importance_level} weight {outside[o.importance_correction]} {bounds}"
        )
    for name, what in (("token_band", "tokens"), ("sequence_band", "completions")):
        low, high = getattr(o, name)
        if high > 0:
            parts.append(f"{what} kept within [{low:g}, {high:g}]")
    if o.negative_mask_threshold:
        parts.append(
            f"stale negative completions dropped above {o.negative_mask_threshold:g}"
        )
    return "; ".join(parts) or "none"


def _divergence(o: Objective) -> str:
    if o.beta == 0:
        return "none, no reference model"
    updates = {
        "never": "",
        "copy": f"; reference copied every {o.reference_every_steps} steps",
        "reset": f"; reference and optimizer reset {_when_reset(o)}",
        "ema": f"; reference a moving average, decay {o.reference_decay:g}",
    }[o.reference_update]
    return f"{o.beta:g} x {o.kl_estimator} in the {o.kl_placement}{updates}"


def _cut(o: Objective) -> str:
    words = "stay in the loss"
    if o.overlong_filter:
        words = "leave the loss, stay in the group"
    if o.bootstrap_truncated and o.advantage == "gae":
        words += "; paid the critic's value of their last state"
    return words


def _when_reset(o: Objective) -> str:
    if o.reset_after_evaluations:
        return f"after {o.reset_after_evaluations} evaluations without a new best"
    return f"every {o.reference_every_steps} steps"


def _entropy(o: Objective) -> str:
    if o.entropy_target:
        return (
            f"bonus from {o.entropy_coefficient:g}, climbing by {o.entropy_step:g} "
            f"below {o.entropy_target:g} nats"
        )
    return f"bonus {o.entropy_coefficient:g}" if o.entropy_coefficient else "no bonus"


def _critic(config: Config) -> str:
    o, c = config.objective, config.critic
    lam = f"1 - 1/({o.lam_alpha:g} length)" if o.lam_alpha else f"{o.lam:g}"
    start = f"starts from {c.path}" if c.path else "starts from the policy, at 0"
    return (
        f"{start}, gamma {o.gamma:g}, lambda {lam} (critic {o.lam_critic:g}), value "
        f"clip {o.value_clip:g}, learning rate {c.learning_rate:g}, "
        f"{c.updates_per_minibatch} updates per minibatch, {c.pretraining_steps} "
        "steps alone" + (", attention frozen" if c.freeze_attention else "")
    )
