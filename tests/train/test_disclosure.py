"""The plan says every choice of the objective: none hides behind a method's name."""

import dataclasses

import pytest

from rlvr_jax.config import (
    BatchConfig,
    Config,
    CriticConfig,
    CurriculumConfig,
    Objective,
)
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train.disclosure import disclosure
from rlvr_jax.validate import ConfigError, validate

GAE = {"advantage": "gae", "scale_rewards": "none"}
CORRECTED = {"importance_correction": "clamp"}
# Field -> (settings under which it is read, another value, what is then said).
CHOICES = {
    "name": ({}, "mine", "preset mine"),
    "overlong_buffer_tokens": ({}, 48, "over the last 48 tokens"),
    "overlong_penalty": ({"overlong_buffer_tokens": 9}, 0.6, "penalty up to 0.6"),
    "length_reward_weight": ({}, 0.3, "0.3 x length within the group"),
    "replace_unfinished": ({}, True, "-10 in place of it where not ended"),
    "unfinished_reward": ({"replace_unfinished": True}, -3.0, "-3 in place"),
    "advantage": ({}, "rloo", "mean of the others"),
    "passk_k": ({"advantage": "passk"}, 3, "pass@3"),
    "baseline_window": (
        {"advantage": "running_mean", "scale_rewards": "none"},
        5,
        "last 5 rewards",
    ),
    "scale_rewards": ({}, "none", "not scaled"),
    "std_ddof": ({}, 1, "ddof 1"),
    "std_epsilon": ({}, 1e-4, "+ 0.0001"),
    "gamma": (GAE, 0.9, "gamma 0.9"),
    "lam": (GAE, 0.8, "lambda 0.8"),
    "lam_alpha": (GAE, 0.05, "lambda 1 - 1/(0.05 length)"),
    "lam_critic": (GAE, 0.7, "(critic 0.7)"),
    "bootstrap_truncated": (GAE, True, "critic's value of their last state"),
    "value_clip": (GAE, 0.5, "value clip 0.5"),
    "old_policy": ({}, "rollout", "the sampler's own log-probs"),
    "ratio_level": ({}, "sequence", "clip: sequence ratio"),
    "surrogate": ({}, "reinforce", "reinforce"),
    "epsilon_low": ({}, 0.15, "epsilon_low 0.15"),
    "epsilon_high": ({}, 0.35, "epsilon_high 0.35"),
    "dual_clip": ({}, 3.0, "dual_clip 3.0"),
    "ratio_max": ({"surrogate": "cispo_capped"}, 4.0, "ratio_max 4.0"),
    "band_positive": (
        {"surrogate": "sign_bands"},
        (0.4, 3.0),
        "band_positive (0.4, 3.0)",
    ),
    "band_negative": (
        {"surrogate": "sign_bands"},
        (0.4, 3.0),
        "band_negative (0.4, 3.0)",
    ),
    "band_entropy": ({"surrogate": "sign_bands"}, 0.3, "band_entropy 0.3"),
    "band_step": (
        {"surrogate": "sign_bands", "band_entropy": 0.3},
        0.07,
        "band_step 0.07",
    ),
    "tau_positive": ({"surrogate": "sapo"}, 2.0, "tau_positive 2.0"),
    "tau_negative": ({"surrogate": "sapo"}, 2.0, "tau_negative 2.0"),
    "pull": ({"surrogate": "dro"}, 0.5, "pull 0.5"),
    "dppo_divergence": ({"surrogate": "dppo"}, "kl", "dppo_divergence kl"),
    "dppo_threshold_low": ({"surrogate": "dppo"}, 0.2, "threshold_low 0.2"),
    "dppo_threshold_high": ({"surrogate": "dppo"}, 0.2, "threshold_high 0.2"),
    "covariance_fraction": ({"surrogate": "kl_cov"}, 0.02, "covariance_fraction 0.02"),
    "covariance_min": ({"surrogate": "clip_cov"}, 2.0, "covariance_min 2.0"),
    "covariance_max": ({"surrogate": "clip_cov"}, 6.0, "covariance_max 6.0"),
    "covariance_kl": ({"surrogate": "kl_cov"}, 2.0, "covariance_kl 2.0"),
    "importance_correction": ({}, "zero", "zero outside [0, 2]"),
    "importance_level": (CORRECTED, "sequence", "sequence weight"),
    "importance_lower": (CORRECTED, 0.5, "[0.5, 2]"),
    "importance_upper": (CORRECTED, 4.0, "[0, 4]"),
    "token_band": ({}, (0.5, 2.0), "tokens kept within [0.5, 2]"),
    "sequence_band": ({}, (0.9, 1.1), "completions kept within [0.9, 1.1]"),
    "negative_mask_threshold": ({}, 0.5, "dropped above 0.5"),
    "loss_aggregation": ({}, "prompt_mean", "prompt_mean"),
    "overlong_filter": ({}, False, "stay in the loss"),
    "top_entropy_fraction": ({}, 0.2, "the 20% of highest entropy"),
    "beta": ({}, 0.07, "0.07 x k3 in the loss"),
    "kl_estimator": ({"beta": 0.1}, "k2", "x k2 in the"),
    "kl_placement": ({"beta": 0.1}, "reward", "in the reward"),
    "reference_update": ({"beta": 0.1}, "reset", "optimizer reset every 400 steps"),
    "reference_every_steps": (
        {"beta": 0.1, "reference_update": "copy"},
        50,
        "copied every 50 steps",
    ),
    "reset_after_evaluations": (
        {"beta": 0.1, "reference_update": "reset"},
        3,
        "reset after 3 evaluations without a new best",
    ),
    "reference_decay": (
        {"beta": 0.1, "reference_update": "ema"},
        0.9,
        "moving average, decay 0.9\n",
    ),
    "entropy_coefficient": ({}, 0.003, "bonus 0.003"),
    "entropy_target": ({}, 0.2, "below 0.2 nats"),
    "entropy_step": ({"entropy_target": 0.2}, 0.01, "climbing by 0.01"),
    "imitation_coefficient": ({}, 0.1, "0.1 x -log-likelihood of correct ones"),
}


def said(objective, **parts):
    config = Config(
        objective=objective, batch=BatchConfig(minibatches_per_step=2), **parts
    )
    return "\n".join(disclosure(config).values())


ITEMS = {
    "group size": ("rollout.num_generations", "group"),
    "std normalisation": ("objective.scale_rewards", "advantage"),
    "aggregation": ("objective.loss_aggregation", "aggregation"),
    "KL estimator": ("objective.kl_estimator", "KL"),
    "KL placement": ("objective.kl_placement", "KL"),
    "clip range": ("objective.epsilon_high", "surrogate"),
    "gradient steps per batch": ("batch.minibatches_per_step", "updates per rollout"),
    "zero-advantage filtering": ("curriculum.filter", "groups of one outcome"),
    "truncated responses": ("objective.overlong_filter", "cut completions"),
}
"""What a run "with GRPO" has to say (eight items; KL is two settings)."""


@pytest.mark.parametrize("item", ITEMS)
def test_a_run_that_leaves_an_item_out_is_rejected(item):
    """DIAG-11: each item has its line in the plan; a run without it does not start."""
    name, label = ITEMS[item]
    config = Config(objective=Objective(beta=0.1))
    validate(config)
    assert disclosure(config)[label]
    section, _, field = name.partition(".")
    setattr(getattr(config, section), field, None)
    with pytest.raises(ConfigError, match=f"{name} is not set"):
        validate(config)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("none", "not filtered"),
        ("mask", "leave the loss; judged on correct"),
        ("dynamic", "refilled (whole batches)"),
        ("active", "refilled (as many as are missing)"),
    ],
)
def test_zero_advantage_filtering_is_said_under_every_rule(rule, words):
    """DIAG-11: also where there is none."""
    config = Config(curriculum=CurriculumConfig(filter=rule))
    assert words in disclosure(config)["groups of one outcome"]


def test_no_field_of_the_objective_is_left_out():
    """A new field needs words in the plan, and a line above."""
    assert set(CHOICES) == {field.name for field in dataclasses.fields(Objective)}


@pytest.mark.parametrize("field", CHOICES)
def test_every_choice_of_the_objective_is_said(field):
    """DIAG-11: no run goes under a method's name alone."""
    base, value, words = CHOICES[field]
    assert words in said(Objective(**(base | {field: value})))
    assert words not in said(Objective(**base))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("learning_rate", 3e-5, "learning rate 3e-05"),
        ("updates_per_minibatch", 2, "2 updates per minibatch"),
        ("pretraining_steps", 7, "7 steps alone"),
        ("freeze_attention", True, "attention frozen"),
        ("path", "models/rm", "starts from models/rm"),
    ],
)
def test_every_choice_of_the_critic_is_said(field, value, words):
    """DIAG-11: nor under "PPO" alone."""
    objective = Objective(**GAE)
    assert words in said(objective, critic=CriticConfig(**{field: value}))
    assert words not in said(objective)


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_can_be_told_from_the_name(name):
    """Every preset has words for all of its row (none raises, none is empty)."""
    found = disclosure(Config(objective=Objective(name=name, **PRESETS[name])))
    assert all(found.values())


def test_one_update_has_no_old_policy():
    """With a single update the ratio is 1, whatever the clip."""
    assert "ratio 1" in disclosure(Config())["old policy"]
