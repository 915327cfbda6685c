"""Checks of the settings before anything is loaded: one error that lists all faults."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from rlvr_jax import objective_rules
from rlvr_jax.config import Config
from rlvr_jax.errors import UserError
from rlvr_jax.ignored import ignored, setting

CHOICES: dict[str, tuple[str, ...]] = {
    "model.dtype": ("float32", "bfloat16"),
    "model.head_dtype": ("float32", "model"),
    "model.attention": ("auto", "dense", "splash"),
    "model.logprob_kernel": ("auto", "chunked", "fused"),
    "model.remat": ("layer", "dots", "none", "groups"),
    "data.template": ("chat", "raw"),
    "data.too_long": ("drop", "error"),
    "curriculum.filter": ("none", "mask", "dynamic", "active"),
    "curriculum.judged_on": ("correct", "reward"),
    "curriculum.when_short": ("mask", "error"),
    "curriculum.draw": ("order", "priority"),
    "curriculum.pass_rate_of": ("latest", "all"),
    "rollout.engine": ("batch", "slots"),
    "rollout.overdue": ("finish", "drop"),
    "reward.execution": ("pool", "callback"),
    "noise.pays": ("verdict", "random", "format", "majority", "incorrect"),
    "objective.advantage": tuple(objective_rules.SCALES),
    "objective.scale_rewards": ("group", "batch", "minibatch", "none"),
    "objective.old_policy": ("trainer", "rollout"),
    "objective.ratio_level": ("token", "sequence", "sequence_token"),
    "objective.surrogate": tuple(objective_rules.SURROGATE_READS),
    "objective.dppo_divergence": ("tv", "kl"),
    "objective.importance_correction": ("none", "clamp", "zero"),
    "objective.importance_level": ("token", "sequence", "sequence_mean"),
    "objective.loss_aggregation": (
        "sequence_mean",
        "token_mean",
        "constant",
        "prompt_mean",
        "sequence_sum",
        "token_sum",
    ),
    "objective.kl_estimator": ("k1", "k2", "k3", "abs", "k3_corrected", "k3_straight"),
    "objective.kl_placement": ("loss", "reward"),
    "objective.reference_update": ("never", "copy", "reset", "ema"),
    "warmup.loss": ("likelihood", "rectified"),
    "optimizer.moment_dtype": ("float32", "bfloat16"),
    "optimizer.schedule": ("constant", "linear", "cosine"),
}

AT_LEAST: dict[str, float] = {
    "steps": 0,
    "model.num_layers": 1,
    "model.num_heads": 1,
    "model.num_kv_heads": 1,
    "model.num_experts": 0,
    "model.num_experts_per_token": 1,
    "model.lora_rank": 0,
    "data.few_shot": 0,
    "data.max_prompt_tokens": 1,
    "data.decontaminate_words": 1,
    "curriculum.max_generation_batches": 1,
    "curriculum.revisit_after_steps": 0,
    "curriculum.prior_count": 0,
    "rollout.num_generations": 1,
    "rollout.max_completion_tokens": 1,
    "rollout.prompts_at_once": 0,
    "rollout.top_k": 0,
    "rollout.slots": 1,
    "rollout.staleness": 0,
    "rollout.token_budget": 0,
    "rollout.waiting_batches": 1,
    "rollout.max_group_age": 1,
    "control.budget": 0,
    "control.budget_spread": 0,
    "control.answer_tokens": 0,
    "control.certain_tokens": 0,
    "control.least_thinking": 0,
    "control.max_waits": 1,
    "reward.workers": 0,
    "reward.timeout_s": 0.01,
    "reward.check_references": 0,
    "judge.max_tokens": 1,
    "judge.max_prompt_tokens": 1,
    "judge.concurrency": 1,
    "judge.timeout_s": 0.01,
    "judge.retries": 0,
    "judge.price_prompt": 0,
    "judge.price_completion": 0,
    "audit.max_gap": 0,
    "audit.window": 2,
    "objective.std_ddof": 0,
    "objective.std_epsilon": 0,
    "objective.passk_k": 1,
    "objective.baseline_window": 1,
    "objective.gamma": 0,
    "objective.lam": 0,
    "objective.lam_alpha": 0,
    "objective.lam_critic": 0,
    "objective.value_clip": 0,
    "objective.epsilon_low": 0,
    "objective.epsilon_high": 0,
    "objective.dual_clip": 0,
    "objective.ratio_max": 0,
    "objective.band_entropy": 0,
    "objective.band_step": 0,
    "objective.tau_positive": 0,
    "objective.tau_negative": 0,
    "objective.pull": 0,
    "objective.covariance_fraction": 0,
    "objective.importance_lower": 0,
    "objective.importance_upper": 0,
    "objective.negative_mask_threshold": 0,
    "objective.top_entropy_fraction": 0,
    "objective.beta": 0,
    "objective.reference_every_steps": 1,
    "objective.reset_after_evaluations": 0,
    "objective.overlong_buffer_tokens": 0,
    "objective.entropy_target": 0,
    "objective.imitation_coefficient": 0,
    "critic.learning_rate": 0,
    "critic.updates_per_minibatch": 1,
    "critic.pretraining_steps": 0,
    "optimizer.adam_b1": 0,
    "optimizer.adam_b2": 0,
    "optimizer.learning_rate": 0,
    "optimizer.warmup_steps": 0,
    "optimizer.max_grad_norm": 0,
    "optimizer.max_nonfinite_steps": 0,
    "replay.save_every": 0,
    "batch.prompts_per_step": 1,
    "batch.minibatches_per_step": 1,
    "batch.epochs_per_step": 1,
    "batch.micro_batch_size": 0,
    "batch.logprob_chunk_tokens": 1,
    "warmup.steps": 0,
    "warmup.batch_size": 1,
    "evaluation.every_steps": 0,
    "evaluation.prompts": 0,
    "evaluation.num_generations": 1,
    "evaluation.temperature": 0,
    "checkpoint.every_steps": 0,
    "checkpoint.keep": 1,
    "checkpoint.keep_best": 0,
    "checkpoint.keep_every_steps": 0,
    "logging.completions_every_steps": 0,
    "logging.completions_shown": 0,
    "logging.slow_step_factor": 0,
}

_SHARES = (
    "data.decontaminate_share",
    "curriculum.drop_pass_rate",
    "curriculum.min_pass_rate",
    "curriculum.max_pass_rate",
    "reward.max_failure_rate",
    "reward.min_score",
    "noise.random_rate",
    "noise.mislabelled_rate",
    "noise.false_positive_rate",
    "noise.false_negative_rate",
    "noise.group_flip_rate",
    "audit.share",
)


class ConfigError(UserError):
    """Settings that cannot run; the message lists each fault and what to change."""


def validate(config: Config) -> None:
    """Raises a ConfigError that names every fault, or returns."""
    missing = [f"{name} is not set; give it a value." for name in _missing(config)]
    faults = missing or [
        *_ranges(config),
        *_forms(config),
        *_combinations(config),
        *_batch(config),
        *_partial(config),
        *_replay(config),
        *objective_rules.faults(config),
        *ignored(config),
    ]
    if faults:
        raise ConfigError("\n".join(f"config: {fault}" for fault in faults))


def _missing(section: Any, prefix: str = "") -> Iterator[str]:
    """Settings without a value: what a run does would not be said anywhere."""
    for field in dataclasses.fields(section):
        value, name = getattr(section, field.name), f"{prefix}{field.name}"
        if value is None:
            yield name
        elif dataclasses.is_dataclass(value):
            yield from _missing(value, f"{name}.")


def _ranges(config: Config) -> Iterator[str]:
    for name, choices in CHOICES.items():
        if setting(config, name) not in choices:
            yield f"{name}={setting(config, name)!r} is none of {', '.join(choices)}."
    for name, least in AT_LEAST.items():
        if setting(config, name) < least:
            yield f"{name}={setting(config, name)} must be at least {least:g}."
    rollout = config.rollout
    if not 0 < rollout.top_p <= 1 or not 0 < config.evaluation.top_p <= 1:
        yield "rollout.top_p and evaluation.top_p must be in (0, 1]; 1 keeps all."
    if not 0 <= rollout.min_p < 1:
        yield f"rollout.min_p={rollout.min_p} must be in [0, 1); 0 keeps all."
    if rollout.temperature <= 0:
        yield (
            f"rollout.temperature={rollout.temperature} must be above 0: equal "
            "completions teach nothing."
        )
    if config.objective.std_ddof > 1:
        yield (
            f"objective.std_ddof={config.objective.std_ddof} must be 0 (the std of "
            "what is there) or 1 (the estimate of TRL and verl)."
        )
    for name in _SHARES:
        if not 0 <= setting(config, name) <= 1:
            yield f"{name} is a share, in [0, 1]."
    low, high = config.curriculum.min_pass_rate, config.curriculum.max_pass_rate
    if low > high:
        yield (
            f"curriculum.min_pass_rate={low} must not exceed "
            f"curriculum.max_pass_rate={high}."
        )


def _forms(config: Config) -> Iterator[str]:
    """Paths, patterns and shapes that are not of their form."""
    paths = (
        "run_dir",
        "model.path",
        "model.reference_path",
        "judge.path",
        "critic.path",
    )
    for name in paths:
        if "://" in setting(config, name):
            yield (
                f"{name}={setting(config, name)!r} must be a folder that is mounted "
                "here: only data is read from buckets (docs/pods.md says how to mount "
                "one)."
            )
    for name in ("noise.accept_pattern", "noise.reject_pattern"):
        try:
            re.compile(setting(config, name))
        except re.error as error:
            yield f"{name} is no regular expression: {error}."
    if len(config.mesh.rollout_shape) not in (0, 3):
        yield (
            f"mesh.rollout_shape={config.mesh.rollout_shape} must have three sizes "
            "(data, fsdp, tensor), or be () for those of mesh.shape."
        )


def _combinations(config: Config) -> Iterator[str]:
    """Settings that do not go together."""
    rollout = config.rollout
    if config.curriculum.filter != "none" and rollout.num_generations < 2:
        yield (
            f"curriculum.filter={config.curriculum.filter!r} compares the completions "
            "of a prompt: set rollout.num_generations to 2 or more."
        )
    if config.model.reference_path and config.objective.reference_update != "never":
        yield (
            "model.reference_path would be replaced by the policy: set "
            "objective.reference_update='never', or leave the path out."
        )
    if config.model.attention == "splash" and config.batch.packing:
        yield (
            "model.attention='splash' cannot tell completions of one row apart: leave "
            "it at 'auto', or batch.packing at False."
        )
    truncates = rollout.top_p < 1 or rollout.top_k > 0 or rollout.min_p > 0
    if config.model.logprob_kernel == "fused" and truncates:
        yield (
            "model.logprob_kernel='fused' does not read the kept sets of "
            "rollout.top_p, top_k and min_p: leave it at 'auto', or sample without."
        )
    if config.judge.url and config.judge.path:
        yield "judge.url and judge.path are two judges; give one."
    if config.judge.path and config.reward.execution == "callback":
        yield (
            "judge.path runs a model, which cannot be done inside another program: "
            "set reward.execution='pool'."
        )
    if config.judge.url and not config.judge.model:
        yield "judge.url needs judge.model, the name that the server knows it by."


def _batch(config: Config) -> Iterator[str]:
    batch, generations = config.batch, config.rollout.num_generations
    prompts, minibatches = batch.prompts_per_step, batch.minibatches_per_step
    if minibatches < 1 or generations < 1:
        return
    if prompts % minibatches:
        yield (
            f"batch.prompts_per_step={prompts} is not a multiple of "
            f"batch.minibatches_per_step={minibatches}; try "
            f"{_nearest_multiple(prompts, minibatches)} prompts."
        )
        return
    at_once = config.rollout.prompts_at_once
    if at_once > 0 and prompts % at_once:
        yield (
            f"rollout.prompts_at_once={at_once} does not divide "
            f"batch.prompts_per_step={prompts}; try "
            f"{max(n for n in range(1, at_once + 1) if prompts % n == 0)}, or 0 (all)."
        )
    size, rows = batch.micro_batch_size, prompts // minibatches * generations
    if size > 0:
        whole_groups = size % generations == 0 and rows % size == 0
        part_of_group = generations % size == 0
        if not (whole_groups or part_of_group):
            fitting = [
                n
                for n in range(1, rows + 1)
                if generations % n == 0 or (n % generations == 0 and rows % n == 0)
            ]
            yield (
                f"batch.micro_batch_size={size} completions must divide "
                f"rollout.num_generations={generations} or be a multiple of it that "
                f"divides a minibatch of {rows}; possible: "
                f"{', '.join(map(str, fitting))} (or 0 for a whole minibatch)."
            )
    if batch.packing and size % generations:
        yield (
            f"batch.packing lays out whole groups, and batch.micro_batch_size={size} "
            f"cuts groups of rollout.num_generations={generations}: set a multiple of "
            f"{generations}, 0 (a whole minibatch), or batch.packing=False."
        )


def _partial(config: Config) -> Iterator[str]:
    """Completions that take several steps (rollout.token_budget)."""
    rollout, stages = config.rollout, config.curriculum.stages
    if rollout.token_budget <= 0:
        return
    if not 0 < rollout.pause_share <= 1:
        yield f"rollout.pause_share={rollout.pause_share} must be in (0, 1]; 1: never."
    if rollout.max_group_age < rollout.waiting_batches:
        yield (
            f"rollout.max_group_age={rollout.max_group_age} is less than "
            f"rollout.waiting_batches={rollout.waiting_batches}: so many batches would "
            "grow older while they wait. Raise the one or lower the other."
        )
    if "max_completion_tokens" in stages:
        yield (
            f"rollout.token_budget={rollout.token_budget} keeps completions over "
            "several steps, which must not change their room: leave "
            "max_completion_tokens out of curriculum.stages, or set "
            "rollout.token_budget=0."
        )


def _replay(config: Config) -> Iterator[str]:
    """What an update is made of that a bundle (replay.save_every) does not hold."""
    if config.replay.save_every <= 0:
        return
    objective, batch = config.objective, config.batch
    missing = {
        f"objective.advantage={objective.advantage!r}": objective.advantage
        in ("gae", "gdpo", "remax", "running_mean", "distillation"),
        f"objective.surrogate={objective.surrogate!r}": objective.surrogate
        in ("clip_cov", "kl_cov"),
        "objective.top_entropy_fraction below 1": objective.top_entropy_fraction < 1,
        "objective.kl_placement='reward'": objective.beta > 0
        and objective.kl_placement == "reward",
        "objective.scale_rewards='minibatch'": objective.scale_rewards == "minibatch",
        "objective.band_entropy": objective.band_entropy > 0,
        "objective.entropy_target": objective.entropy_target > 0,
        f"{batch.updates_per_step} updates per step": batch.updates_per_step > 1,
    }
    for what in [name for name, applies in missing.items() if applies]:
        yield (
            f"replay.save_every={config.replay.save_every}: a bundle does not hold all "
            f"that an update is made of with {what}. Set replay.save_every=0."
        )


def _nearest_multiple(number: int, divisor: int) -> int:
    return max(divisor, round(number / divisor) * divisor)
