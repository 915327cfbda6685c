"""Every rule of validate.py: what it refuses, what it says, what it lets through."""

import dataclasses

import pytest

from rlvr_jax.config import Config
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.ignored import setting
from rlvr_jax.objective_config import Objective
from rlvr_jax.validate import AT_LEAST, CHOICES, ConfigError, validate


def changed(**settings):
    """The defaults with dotted settings changed (`__` for the dot)."""
    return with_settings({n.replace("__", "."): v for n, v in settings.items()})


def with_settings(settings):
    config = Config()
    for name, value in settings.items():
        section, _, field = name.rpartition(".")
        target = setting(config, section) if section else config
        assert hasattr(target, field)
        setattr(target, field, value)
    return config


def all_faults(config):
    """The lines of the error, or none."""
    try:
        validate(config)
    except ConfigError as error:
        return str(error).split("\n")
    return []


def faults(**settings):
    return all_faults(changed(**settings))


def test_the_defaults_and_every_preset_pass():
    validate(Config())
    for preset in PRESETS.values():
        validate(changed(**{f"objective__{n}": v for n, v in preset.items()}))


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name):
    choices = ", ".join(CHOICES[name])
    expected = f"config: {name}='sideways' is none of {choices}."
    assert expected in all_faults(with_settings({name: "sideways"}))


def test_the_default_of_every_choice_is_one():
    for name, choices in CHOICES.items():
        assert setting(Config(), name) in choices


@pytest.mark.parametrize("name", AT_LEAST)
def test_lower_limits(name):
    """The limit itself passes this rule, whatever others say; less does not."""
    least = AT_LEAST[name]
    too_small = least - 1 if isinstance(least, int) else least / 2
    expected = f"config: {name}={too_small} must be at least {least:g}."
    assert expected in all_faults(with_settings({name: too_small}))
    at_limit = all_faults(with_settings({name: least}))
    assert not any("must be at least" in fault for fault in at_limit)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"rollout__top_p": 0.0},
            "rollout.top_p and evaluation.top_p must be in (0, 1]; 1 keeps all.",
        ),
        (
            {"evaluation__top_p": 1.1},
            "rollout.top_p and evaluation.top_p must be in (0, 1]; 1 keeps all.",
        ),
        (
            {"rollout__min_p": 1.0},
            "rollout.min_p=1.0 must be in [0, 1); 0 keeps all.",
        ),
        (
            {"rollout__min_p": -0.1},
            "rollout.min_p=-0.1 must be in [0, 1); 0 keeps all.",
        ),
        (
            {"rollout__temperature": 0.0},
            "rollout.temperature=0.0 must be above 0: equal completions teach nothing.",
        ),
        (
            {"reward__max_failure_rate": 1.5},
            "reward.max_failure_rate is a share, in [0, 1].",
        ),
        (
            {"reward__min_score": -0.5},
            "reward.min_score is a share, in [0, 1].",
        ),
        (
            {"noise__group_flip_rate": 1.5},
            "noise.group_flip_rate is a share, in [0, 1].",
        ),
        (
            {"mesh__rollout_shape": (1, 8)},
            "mesh.rollout_shape=(1, 8) must have three sizes (data, fsdp, tensor), or "
            "be () for those of mesh.shape.",
        ),
        (
            {"noise__accept_pattern": "("},
            "noise.accept_pattern is no regular expression: missing ), unterminated "
            "subpattern at position 0.",
        ),
        (
            {"judge__url": "http://localhost:8000/v1"},
            "judge.url needs judge.model, the name that the server knows it by.",
        ),
        (
            {"judge__url": "http://a/v1", "judge__model": "m", "judge__path": "b"},
            "judge.url and judge.path are two judges; give one.",
        ),
        (
            {"judge__path": "somewhere", "reward__execution": "callback"},
            "judge.path runs a model, which cannot be done inside another program: set "
            "reward.execution='pool'.",
        ),
        (
            {"objective__epsilon_low": 1.2},
            "objective.epsilon_low=1.2 must be in [0, 1].",
        ),
        (
            {"objective__epsilon_high": -0.1},
            "objective.epsilon_high=-0.1 must be at least 0.",
        ),
        (
            {
                "objective__overlong_buffer_tokens": 65,
                "rollout__max_completion_tokens": 64,
            },
            "objective.overlong_buffer_tokens=65 exceeds "
            "rollout.max_completion_tokens=64.",
        ),
        (
            {"rollout__num_generations": 1},
            "objective.advantage='group' compares completions of one prompt and needs "
            "rollout.num_generations >= 2, got 1.",
        ),
    ],
)
def test_ranges(settings, message):
    assert faults(**settings) == [f"config: {message}"]


def test_limits_of_ranges_that_pass():
    validate(
        changed(rollout__top_p=1.0, rollout__min_p=0.0, reward__max_failure_rate=1)
    )
    validate(changed(rollout__top_p=0.01, rollout__min_p=0.99))
    validate(changed(objective__epsilon_low=0.0, objective__epsilon_high=0.0))
    validate(changed(objective__epsilon_low=1.0, reward__max_failure_rate=0))
    validate(
        changed(objective__overlong_buffer_tokens=64, rollout__max_completion_tokens=64)
    )


@pytest.mark.parametrize(
    ("prompts", "minibatches", "suggested"),
    [(10, 4, 8), (11, 4, 12), (3, 8, 8), (7, 2, 8)],
)
def test_prompts_divide_into_minibatches(prompts, minibatches, suggested):
    found = faults(
        batch__prompts_per_step=prompts, batch__minibatches_per_step=minibatches
    )
    assert found == [
        f"config: batch.prompts_per_step={prompts} is not a multiple of "
        f"batch.minibatches_per_step={minibatches}; try {suggested} prompts."
    ]
    validate(
        changed(
            batch__prompts_per_step=suggested, batch__minibatches_per_step=minibatches
        )
    )


def test_micro_batches_are_whole_groups_or_parts_of_one():
    """2 prompts of 6 a minibatch: 1, 2, 3 divide 6; 6 and 12 divide the 12 rows."""
    sizes = {"batch__prompts_per_step": 4, "batch__minibatches_per_step": 2}
    sizes["rollout__num_generations"] = 6
    fitting = {0, 1, 2, 3, 6, 12}
    for size in range(26):
        if size in fitting:
            validate(changed(**sizes, batch__micro_batch_size=size))
            continue
        assert faults(**sizes, batch__micro_batch_size=size) == [
            f"config: batch.micro_batch_size={size} completions must divide "
            "rollout.num_generations=6 or be a multiple of it that divides a minibatch "
            "of 12; possible: 1, 2, 3, 6, 12 (or 0 for a whole minibatch)."
        ]


def test_packing_is_of_whole_groups():
    sizes = {"rollout__num_generations": 6, "batch__packing": True}
    for size in (0, 6, 12):
        validate(changed(**sizes, batch__micro_batch_size=size))
    assert faults(**sizes, batch__micro_batch_size=3) == [
        "config: batch.packing lays out whole groups, and batch.micro_batch_size=3 "
        "cuts groups of rollout.num_generations=6: set a multiple of 6, 0 (a whole "
        "minibatch), or batch.packing=False."
    ]


def test_k1_in_the_loss_is_refused_with_its_reason():
    """E[grad k1] = E[grad log pi] = 0, so only its noise would reach the policy."""
    found = faults(objective__beta=0.1, objective__kl_estimator="k1")
    assert len(found) == 1
    assert found[0].startswith("config: objective.kl_estimator='k1' in the loss")
    assert "expected gradient of zero" in found[0]
    assert "Use 'k3' or 'k2', or objective.kl_placement='reward'." in found[0]
    for estimator in ("k2", "k3"):
        validate(changed(objective__beta=0.1, objective__kl_estimator=estimator))


def test_only_k1_belongs_into_the_reward():
    reward = {"objective__beta": 0.1, "objective__kl_placement": "reward"}
    for estimator in ("k2", "k3"):
        (found,) = faults(**reward, objective__kl_estimator=estimator)
        assert "objective.kl_placement='reward' takes kl_estimator='k1'" in found
        assert found.endswith(f"got {estimator!r}.")
    validate(changed(**reward, objective__kl_estimator="k1"))


PARTIAL = {
    "rollout__engine": "slots",
    "rollout__token_budget": 64,
    "objective__importance_correction": "clamp",
}


def test_partial_rollouts_ask_for_what_they_need():
    """DATA-07: slots, a correction for stale tokens, one length, time to wait."""
    validate(changed(**PARTIAL))
    (found,) = faults(**PARTIAL | {"rollout__engine": "batch"})
    assert found.startswith("config: rollout.token_budget=64 would be ignored")
    (found,) = faults(**PARTIAL | {"objective__importance_correction": "none"})
    assert found == (
        "config: rollout.token_budget=64 trains on samples of an older policy; let "
        "the objective correct for it: set objective.importance_correction='clamp' or "
        "objective.old_policy='rollout'."
    )
    (found,) = faults(**PARTIAL, rollout__waiting_batches=5)
    assert "rollout.max_group_age=4 is less than rollout.waiting_batches=5" in found
    (found,) = faults(**PARTIAL, rollout__pause_share=0.0)
    assert "rollout.pause_share=0.0 must be in (0, 1]" in found
    stages = '[{"until": 9, "max_completion_tokens": 64}, {}]'
    (found,) = faults(**PARTIAL, curriculum__stages=stages)
    assert "leave max_completion_tokens out of curriculum.stages" in found
    assert "rollout.token_budget=64" in found


# What is ignored, its changed value, and under which settings; "" by default.
CRITIC = {"objective.advantage": "gae", "objective.scale_rewards": "none"}
IGNORED = [
    ("model.hidden_size", 64, {"model.path": "somewhere"}, "model.path is set"),
    ("model.intermediate_size", 64, {"model.path": "somewhere"}, "model.path is set"),
    ("model.num_layers", 2, {"model.path": "somewhere"}, "model.path is set"),
    ("model.num_heads", 2, {"model.path": "somewhere"}, "model.path is set"),
    ("model.num_kv_heads", 1, {"model.path": "somewhere"}, "model.path is set"),
    ("model.rope_theta", 5e5, {"model.path": "somewhere"}, "model.path is set"),
    ("model.num_experts", 4, {"model.path": "somewhere"}, "model.path is set"),
    ("model.num_experts_per_token", 1, {}, "model.num_experts is 0"),
    ("rollout.replay_routing", False, {}, "model.num_experts is 0"),
    ("rollout.pause_share", 0.5, {}, "rollout.token_budget is 0"),
    ("rollout.waiting_batches", 2, {}, "rollout.token_budget is 0"),
    ("rollout.max_group_age", 2, {}, "rollout.token_budget is 0"),
    ("rollout.overdue", "drop", {}, "rollout.token_budget is 0"),
    ("model.head_dtype", "model", {}, "model.dtype is 'float32'"),
    ("data.task_options", '{"max_operand": 3}', {}, "is a task:"),
    ("data.subset", "main", {}, "is a hub:"),
    ("data.few_shot", 2, {}, "data.template is 'chat'"),
    ("reward.format_weight", 0.5, {}, "reward.format is empty"),
    ("noise.random_rate", 0.2, {}, "noise.pays is 'verdict'"),
    ("noise.mislabelled_rate", 0.2, {}, "noise.pays is 'verdict'"),
    ("noise.seed", 3, {}, "no setting of noise draws anything"),
    ("judge.retries", 10, {}, "judge.url is ''"),
    ("judge.max_tokens", 10, {}, "judge.url and judge.path are ''"),
    ("judge.max_prompt_tokens", 10, {}, "judge.path is ''"),
    ("audit.share", 0.5, {}, "audit.verifier is ''"),
    *(
        (name, value, {"objective.surrogate": "reinforce"}, "does not read it")
        for name, value in (
            ("objective.epsilon_low", 0.1),
            ("objective.epsilon_high", 0.1),
            ("objective.ratio_level", "sequence"),
        )
    ),
    ("critic.learning_rate", 1e-4, {}, "has no critic"),
    ("critic.path", "models/rm", {}, "has no critic"),
    ("objective.lam", 0.9, CRITIC | {"objective.lam_alpha": 0.1}, "on the length"),
    ("objective.importance_level", "sequence", {}, "correction is 'none'"),
    ("objective.importance_upper", 4.0, {}, "correction is 'none'"),
    ("objective.reference_update", "copy", {}, "objective.beta is 0"),
    (
        "objective.reference_every_steps",
        9,
        {"objective.beta": 0.1},
        "reference_update is 'never'",
    ),
    (
        "objective.reference_decay",
        0.5,
        {"objective.beta": 0.1},
        "reference_update is 'never'",
    ),
    ("objective.unfinished_reward", -1.0, {}, "replace_unfinished is False"),
    ("objective.entropy_step", 0.1, {}, "objective.entropy_target is 0"),
    ("objective.kl_estimator", "k2", {}, "objective.beta is 0"),
    ("objective.kl_placement", "reward", {}, "objective.beta is 0"),
    ("objective.overlong_penalty", 2.0, {}, "objective.overlong_buffer_tokens is 0"),
    *(
        (name, value, {"objective.scale_rewards": "none"}, "scale_rewards is 'none'")
        for name, value in (("objective.std_ddof", 1), ("objective.std_epsilon", 1e-4))
    ),
    ("data.decontaminate_words", 8, {}, "data.decontaminate is ''"),
    ("data.decontaminate_share", 0.5, {}, "data.decontaminate is ''"),
    ("curriculum.judged_on", "reward", {}, "curriculum.filter is 'none'"),
    *(
        (name, value, {"curriculum.filter": "mask"}, "'mask' samples one batch")
        for name, value in (
            ("curriculum.max_generation_batches", 3),
            ("curriculum.when_short", "error"),
        )
    ),
    *(
        (name, value, {}, "no rule of curriculum reads pass rates")
        for name, value in (
            ("curriculum.pass_rate_of", "all"),
            ("curriculum.prior_count", 2.0),
            ("curriculum.pass_rate_field", "rate"),
        )
    ),
    (
        "curriculum.revisit_after_steps",
        5,
        {"curriculum.drop_pass_rate": 0.9},
        "leave out no problem",
    ),
    ("warmup.batch_size", 8, {}, "warmup.steps is 0"),
    ("warmup.learning_rate", 1e-4, {}, "warmup.steps is 0"),
    *(
        (f"evaluation.{name}", value, {"evaluation.prompts": 0}, "prompts is 0")
        for name, value in (
            ("every_steps", 5),
            ("num_generations", 4),
            ("temperature", 0.5),
            ("top_p", 0.5),
            ("input_dependence", True),
            ("strict_verifier", "exact"),
        )
    ),
    (
        "logging.completions_shown",
        1,
        {"logging.completions_every_steps": 0},
        "logging.completions_every_steps is 0",
    ),
]
READ = {
    "critic.learning_rate": CRITIC,
    "critic.path": CRITIC,
    "objective.lam": CRITIC,
    "objective.importance_level": {"objective.importance_correction": "zero"},
    "objective.importance_upper": {"objective.importance_correction": "zero"},
    "objective.reference_update": {"objective.beta": 0.1},
    "objective.reference_every_steps": {
        "objective.beta": 0.1,
        "objective.reference_update": "copy",
    },
    "objective.reference_decay": {
        "objective.beta": 0.1,
        "objective.reference_update": "ema",
    },
    "objective.unfinished_reward": {"objective.replace_unfinished": True},
    "objective.entropy_step": {"objective.entropy_target": 0.1},
    "data.task_options": {"data.train": "task:arithmetic"},
    "data.decontaminate_words": {"data.decontaminate": "packaged:gsm8k"},
    "data.decontaminate_share": {"data.decontaminate": "packaged:gsm8k"},
    "curriculum.judged_on": {"curriculum.filter": "mask"},
    "curriculum.max_generation_batches": {"curriculum.filter": "dynamic"},
    "curriculum.when_short": {"curriculum.filter": "active"},
    "curriculum.pass_rate_of": {"curriculum.draw": "priority"},
    "curriculum.prior_count": {"curriculum.draw": "priority"},
    "curriculum.pass_rate_field": {"curriculum.max_pass_rate": 0.8},
    "curriculum.revisit_after_steps": {"curriculum.min_pass_rate": 0.2},
    "model.num_experts_per_token": {"model.num_experts": 4},
    "rollout.replay_routing": {"model.path": "somewhere"},
    **{
        f"rollout.{name}": {n.replace("__", "."): v for n, v in PARTIAL.items()}
        for name in ("pause_share", "waiting_batches", "max_group_age", "overdue")
    },
    "model.head_dtype": {"model.dtype": "bfloat16"},
    "data.subset": {"data.evaluation": "hub:openai/gsm8k"},
    "data.few_shot": {"data.template": "raw"},
    "reward.format_weight": {"reward.format": "boxed"},
    "noise.random_rate": {"noise.pays": "random"},
    "noise.mislabelled_rate": {"noise.pays": "incorrect"},
    "noise.seed": {"noise.group_flip_rate": 0.1},
    "judge.retries": {"judge.url": "http://localhost:8000/v1", "judge.model": "m"},
    "judge.max_tokens": {"judge.path": "somewhere"},
    "judge.max_prompt_tokens": {"judge.path": "somewhere"},
    "audit.share": {"audit.verifier": "math"},
    "objective.kl_estimator": {"objective.beta": 0.1},
    "objective.kl_placement": {"objective.beta": 0.1, "objective.kl_estimator": "k1"},
    "objective.overlong_penalty": {"objective.overlong_buffer_tokens": 8},
    "warmup.batch_size": {"warmup.steps": 1},
    "warmup.learning_rate": {"warmup.steps": 1},
    "warmup.loss": {"warmup.steps": 1},
    "model.reference_path": {"objective.beta": 0.1},
}
"""For what the defaults ignore: settings under which it is read."""


@pytest.mark.parametrize(
    ("name", "value", "others", "reason"), IGNORED, ids=[row[0] for row in IGNORED]
)
def test_a_setting_that_nothing_reads_is_refused(name, value, others, reason):
    (fault,) = all_faults(with_settings(others | {name: value}))
    assert fault.startswith(f"config: {name}={value!r} would be ignored, since ")
    assert fault.endswith(f"{reason}. Leave it out or change that.")
    validate(with_settings(others))
    validate(with_settings(READ.get(name, {}) | {name: value}))


def test_the_ignored_settings_of_the_table_are_all_there_are():
    """Each rule of the module appears above: every evaluation field does, at least."""
    names = {row[0] for row in IGNORED}
    fields = {f"evaluation.{f.name}" for f in dataclasses.fields(Config().evaluation)}
    assert fields - {"evaluation.prompts"} <= names


def test_several_faults_come_in_one_message():
    found = faults(
        steps=-1,
        model__dtype="float16",
        rollout__num_generations=1,
        batch__prompts_per_step=7,
        batch__minibatches_per_step=2,
        warmup__batch_size=3,
    )
    starts = (
        "model.dtype='float16'",
        "steps=-1",
        "batch.prompts_per_step=7",
        "objective.advantage='group'",
        "warmup.batch_size=3",
    )
    assert len(found) == len(starts)
    for line, start in zip(found, starts, strict=True):
        assert line.startswith(f"config: {start}")


def test_sizes_below_one_do_not_hide_behind_a_division():
    found = faults(batch__minibatches_per_step=0, rollout__num_generations=0)
    assert "config: batch.minibatches_per_step=0 must be at least 1." in found
    assert "config: rollout.num_generations=0 must be at least 1." in found


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"advantage": "gae", "scale_rewards": "none"}, "advantage='gae'"),
        ({"surrogate": "kl_cov"}, "surrogate='kl_cov'"),
        ({"scale_rewards": "minibatch"}, "scale_rewards='minibatch'"),
        ({"top_entropy_fraction": 0.2}, "top_entropy_fraction"),
        ({"entropy_target": 0.2}, "entropy_target"),
        (
            {"beta": 0.1, "kl_estimator": "k1", "kl_placement": "reward"},
            "kl_placement='reward'",
        ),
    ],
)
def test_bundles_of_what_they_do_not_hold_are_refused(settings, words):
    config = Config(objective=Objective(**settings))
    validate(config)
    config.replay.save_every = 2
    with pytest.raises(ConfigError, match=f"{words}.*Set replay.save_every=0"):
        validate(config)
    config = Config()
    config.replay.save_every = 2
    validate(config)
    config.batch.minibatches_per_step = 2
    with pytest.raises(ConfigError, match="2 updates per step"):
        validate(config)
