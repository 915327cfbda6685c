"""Settings that were changed but that nothing would read: each is an error."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from rlvr_jax import objective_rules
from rlvr_jax.config import Config, CurriculumConfig, DataConfig
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.objective_config import Objective

NEW_MODEL = (
    "hidden_size",
    "intermediate_size",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "num_experts",
    "num_experts_per_token",
    "rope_theta",
)


_OF_THOUGHTS = ("budget", "least_thinking", "answer_tokens")
_PARTIAL = ("pause_share", "waiting_batches", "max_group_age", "overdue")
_PAID = ("correct", "wrong", "min_score", "parts", "format_weight")
_SERVED_JUDGE = (
    "model",
    "api_key_env",
    "timeout_s",
    "retries",
    "price_prompt",
    "price_completion",
)


def setting(config: Config, name: str) -> Any:
    """The value of a dotted name."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def ignored(config: Config) -> Iterator[str]:
    """Settings that were changed but that nothing would read."""
    model, data, reward = config.model, config.data, config.reward
    warmup = config.warmup
    rules = [
        (bool(model.path), [f"model.{n}" for n in NEW_MODEL], "model.path is set"),
        (not model.path, ["model.architecture"], "model.path is ''"),
        (model.dtype == "float32", ["model.head_dtype"], "model.dtype is 'float32'"),
        (
            config.objective.beta == 0,
            ["model.reference_path"],
            "objective.beta is 0",
        ),
        (
            not model.path and model.num_experts == 0,
            ["model.num_experts_per_token", "rollout.replay_routing"],
            "model.num_experts is 0",
        ),
        (
            not _has_source(data, "task:", "gym:"),
            ["data.task_options"],
            "neither data.train nor data.evaluation is a task:",
        ),
        (
            not _has_source(data, "hub:"),
            ["data.subset"],
            "neither data.train nor data.evaluation is a hub:",
        ),
        (
            config.rollout.engine != "slots",
            [
                "rollout.slots",
                "rollout.token_budget",
                *_others(config.control, "control", ""),
            ],
            f"rollout.engine is {config.rollout.engine!r}",
        ),
        (
            config.rollout.engine == "slots",
            ["rollout.prompts_at_once", "reward.execution"],
            "rollout.engine is 'slots'",
        ),
        (
            config.rollout.token_budget == 0,
            [f"rollout.{n}" for n in _PARTIAL],
            "rollout.token_budget is 0",
        ),
        (
            config.control.budget == 0,
            ["control.budget_text", "control.budget_spread"],
            "control.budget is 0",
        ),
        (
            config.control.least_thinking == 0,
            ["control.wait", "control.max_waits"],
            "control.least_thinking is 0",
        ),
        (
            not any(getattr(config.control, name) for name in _OF_THOUGHTS),
            ["control.think_end"],
            "no setting of control is about thoughts",
        ),
        (
            config.evaluation.every_steps == 0,
            ["checkpoint.keep_best"],
            "evaluation.every_steps is 0",
        ),
        (model.lora_rank == 0, ["model.lora_alpha"], "model.lora_rank is 0"),
        (data.template == "chat", ["data.few_shot"], "data.template is 'chat'"),
        (not reward.format, ["reward.format_weight"], "reward.format is empty"),
        (
            not data.decontaminate,
            ["data.decontaminate_words", "data.decontaminate_share"],
            "data.decontaminate is ''",
        ),
        *_unread_rules(config.curriculum),
        *objective_rules.unread(config.objective),
        (
            config.objective.advantage in objective_rules.WITHOUT_REWARDS,
            [f"reward.{n}" for n in _PAID] + _others(config.noise, "noise", "seed"),
            f"objective.advantage={config.objective.advantage!r} reads no rewards",
        ),
        (
            config.objective.advantage != "gae",
            [f"critic.{field.name}" for field in dataclasses.fields(config.critic)],
            f"objective.advantage={config.objective.advantage!r} has no critic",
        ),
        (
            config.noise.pays != "random",
            ["noise.random_rate"],
            f"noise.pays is {config.noise.pays!r}",
        ),
        (
            config.noise.pays != "incorrect",
            ["noise.mislabelled_rate"],
            f"noise.pays is {config.noise.pays!r}",
        ),
        (
            not _draws(config),
            ["noise.seed"],
            "no setting of noise draws anything",
        ),
        (
            not config.judge.url,
            [f"judge.{n}" for n in _SERVED_JUDGE],
            "judge.url is ''",
        ),
        (not config.judge.path, ["judge.max_prompt_tokens"], "judge.path is ''"),
        (
            not (config.judge.url or config.judge.path),
            ["judge.max_tokens", "judge.concurrency"],
            "judge.url and judge.path are ''",
        ),
        (
            not config.audit.verifier,
            _others(config.audit, "audit", "verifier"),
            "audit.verifier is ''",
        ),
        (
            warmup.steps == 0,
            _others(warmup, "warmup", "steps"),
            "warmup.steps is 0",
        ),
        (
            config.evaluation.prompts == 0,
            _others(config.evaluation, "evaluation", "prompts"),
            "evaluation.prompts is 0",
        ),
        (
            config.logging.completions_every_steps == 0,
            ["logging.completions_shown"],
            "logging.completions_every_steps is 0",
        ),
    ]
    preset = PRESETS.get(config.objective.name, {})
    defaults = Config(objective=Objective(**preset))
    for applies, names, reason in rules:
        for name in names if applies else ():
            if setting(config, name) != setting(defaults, name):
                yield (
                    f"{name}={setting(config, name)!r} would be ignored, since "
                    f"{reason}. Leave it out or change that."
                )


def _has_source(data: DataConfig, *kinds: str) -> bool:
    settings = (data.train, data.evaluation, data.decontaminate)
    sources = (part.strip() for names in settings for part in names.split(","))
    return any(source.startswith(kinds) for source in sources)


def _unread_rules(curriculum: CurriculumConfig) -> list[tuple[bool, list[str], str]]:
    """Settings of the sampling rules that the chosen ones do not read."""
    refills = curriculum.filter in ("dynamic", "active")
    window = (curriculum.min_pass_rate, curriculum.max_pass_rate) != (0, 1)
    rates = window or curriculum.drop_pass_rate > 0 or curriculum.draw == "priority"
    of_rates = ("pass_rate_of", "prior_count", "pass_rate_field")
    return [
        (
            curriculum.filter == "none",
            ["curriculum.judged_on"],
            "curriculum.filter is 'none'",
        ),
        (
            not refills,
            ["curriculum.max_generation_batches", "curriculum.when_short"],
            f"curriculum.filter={curriculum.filter!r} samples one batch",
        ),
        (
            not rates,
            [f"curriculum.{name}" for name in of_rates],
            "no rule of curriculum reads pass rates",
        ),
        (
            not window,
            ["curriculum.revisit_after_steps"],
            "min_pass_rate and max_pass_rate leave out no problem",
        ),
    ]


def _draws(config: Config) -> bool:
    noise = config.noise
    rates = (
        noise.false_positive_rate,
        noise.false_negative_rate,
        noise.group_flip_rate,
        noise.mislabelled_rate,
    )
    return noise.pays == "random" or any(rates)


def _others(section: Any, name: str, but: str) -> list[str]:
    """The settings of a section but one."""
    fields = (field.name for field in dataclasses.fields(section))
    return [f"{name}.{field}" for field in fields if field != but]
