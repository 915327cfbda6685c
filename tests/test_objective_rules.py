"""What each surrogate and advantage reads, and combinations that cannot be."""

import dataclasses

import pytest

from rlvr_jax.config import Config, Objective
from rlvr_jax.objective_rules import ADVANTAGE_READS, SCALES, SURROGATE_READS
from rlvr_jax.train.disclosure import disclosure
from rlvr_jax.validate import ConfigError, validate

OTHER = {
    "epsilon_low": 0.1,
    "epsilon_high": 0.1,
    "dual_clip": 3.0,
    "old_policy": "rollout",
    "ratio_level": "sequence",
    "ratio_max": 7.0,
    "band_positive": (0.1, 3.0),
    "band_negative": (0.1, 3.0),
    "band_entropy": 0.3,
    "tau_positive": 2.0,
    "tau_negative": 2.0,
    "pull": 0.5,
    "dppo_divergence": "kl",
    "dppo_threshold_low": 0.3,
    "dppo_threshold_high": 0.3,
    "covariance_fraction": 0.1,
    "covariance_min": 0.5,
    "covariance_max": 9.0,
    "covariance_kl": 2.0,
    "std_ddof": 1,
    "std_epsilon": 1e-3,
    "passk_k": 2,
    "baseline_window": 4,
    "gamma": 0.9,
    "lam": 0.9,
    "lam_alpha": 0.1,
    "lam_critic": 0.9,
    "value_clip": 0.5,
    "bootstrap_truncated": True,
}


def refused(**settings):
    """The message of the ConfigError, or ""."""
    try:
        validate(Config(objective=Objective(**settings)))
    except ConfigError as error:
        return str(error)
    return ""


def base_of(kind, choice):
    if kind == "advantage":
        return {"advantage": choice, "scale_rewards": SCALES[choice][0]}
    if choice in ("gmpo", "mirror_descent"):
        return {"surrogate": choice, "loss_aggregation": "sequence_mean"}
    return {"surrogate": choice}


CASES = [
    (kind, choice, name)
    for kind, reads in (("surrogate", SURROGATE_READS), ("advantage", ADVANTAGE_READS))
    for choice in reads
    for name in sorted({n for names in reads.values() for n in names})
]


@pytest.mark.parametrize(("kind", "choice", "name"), CASES)
def test_a_setting_is_accepted_where_it_is_read_and_nowhere_else(kind, choice, name):
    reads = {"surrogate": SURROGATE_READS, "advantage": ADVANTAGE_READS}[kind]
    message = refused(**base_of(kind, choice), **{name: OTHER[name]})
    if name in reads[choice]:
        assert message == ""
    else:
        assert f"objective.{name}={OTHER[name]!r} would be ignored" in message


def test_every_setting_has_another_value_to_try():
    named = {name for _, _, name in CASES}
    assert named == set(OTHER)
    defaults = Objective()
    assert all(getattr(defaults, name) != value for name, value in OTHER.items())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"advantage": "opo"}, "goes with objective.scale_rewards of none"),
        ({"advantage": "passk", "passk_k": 9}, "exceeds rollout.num_generations=8"),
        ({"surrogate": "gmpo"}, "set objective.loss_aggregation='sequence_mean'"),
        (
            {
                "surrogate": "gmpo",
                "loss_aggregation": "sequence_mean",
                "advantage": "gae",
                "scale_rewards": "none",
            },
            "is per token",
        ),
        (
            {
                "ratio_level": "sequence",
                "advantage": "reinforce_pp",
                "scale_rewards": "none",
            },
            "set 'sequence_token'",
        ),
        ({"dual_clip": 1.1}, "must exceed 1 + objective.epsilon_high = 1.28"),
        ({"token_band": (2.0, 0.5)}, "objective.token_band"),
        (
            {
                "beta": 0.1,
                "reference_update": "reset",
                "reset_after_evaluations": 2,
            },
            "set evaluation.every_steps",
        ),
        ({"gamma": 1.5, "advantage": "gae", "scale_rewards": "none"}, "in [0, 1]"),
        ({"std_ddof": 2}, "objective.std_ddof=2 must be 0"),
        (
            {"old_policy": "rollout", "importance_correction": "clamp"},
            "correct for the sampler a second time",
        ),
        (
            {
                "advantage": "gae",
                "scale_rewards": "none",
                "bootstrap_truncated": True,
                "replace_unfinished": True,
            },
            "both give a completion that did not end another reward",
        ),
        (
            {
                "advantage": "passk",
                "beta": 0.1,
                "kl_estimator": "k1",
                "kl_placement": "reward",
            },
            "set objective.kl_placement='loss'",
        ),
        (
            {"advantage": "passk", "overlong_buffer_tokens": 8},
            "objective.overlong_buffer_tokens=8 would be ignored",
        ),
        (
            {"advantage": "passk", "length_reward_weight": 0.5},
            "objective.length_reward_weight=0.5 would be ignored",
        ),
        (
            {"advantage": "passk", "replace_unfinished": True},
            "objective.replace_unfinished=True would be ignored",
        ),
    ],
)
def test_what_cannot_be_says_what_to_change(settings, words):
    assert words in refused(**settings)


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("reward", "correct", 10.0),
        ("reward", "wrong", -1.0),
        ("reward", "parts", "answer, 0.1*ended"),
        ("noise", "false_positive_rate", 0.1),
        ("noise", "pays", "random"),
    ],
)
def test_what_a_verdict_pays_is_refused_where_sets_are_paid(section, name, value):
    """Advantage "passk" reads verdicts: what makes a reward would change nothing."""
    config = Config(objective=Objective(advantage="passk"))
    validate(config)
    setattr(getattr(config, section), name, value)
    with pytest.raises(ConfigError, match=f"{section}.{name}=.* would be ignored"):
        validate(config)


NAIVE = {
    "epsilon_high": 0.2,
    "overlong_filter": False,
    "loss_aggregation": "sequence_mean",
    "beta": 0.04,
}
FIXES = {
    "clip-higher": {"objective.epsilon_high": 0.28},
    "dynamic sampling": {"curriculum.filter": "dynamic"},
    "token-level loss": {"objective.loss_aggregation": "token_mean"},
    "no KL": {"objective.beta": 0.0},
    "length control: penalty": {"objective.overlong_buffer_tokens": 64},
    "length control: filter": {"objective.overlong_filter": True},
    "value calibration": {"critic.pretraining_steps": 50},
    "staging": {"curriculum.stages": '[{"until": 5, "keep": {"level": [1]}}, {}]'},
}


@pytest.mark.parametrize("fix", FIXES)
def test_the_fixes_that_recur_are_switches_of_their_own(fix):
    """REC-29: on a naive GRPO run (a critic's, for its own fix) each can be switched
    alone, is accepted, and is said in the plan."""
    critic = fix == "value calibration"
    base = {"advantage": "gae", "scale_rewards": "none"} if critic else {}

    def config(changes):
        made = Config(objective=Objective(**NAIVE, **base))
        for name, value in changes.items():
            section, _, field = name.partition(".")
            assert getattr(getattr(made, section), field) != value
            setattr(getattr(made, section), field, value)
        return made

    changed = config(FIXES[fix])
    validate(changed)
    said, before = disclosure(changed), disclosure(config({}))
    assert {label for label in said if said[label] != before[label]}


@pytest.mark.parametrize("advantage", ["gae", "remax", "running_mean", "reinforce_pp"])
def test_one_completion_per_prompt_is_enough_without_a_group(advantage):
    """SAO and REINFORCE++ take one; a group baseline needs two."""
    config = Config()
    config.rollout.num_generations = 1
    config.objective = Objective(advantage=advantage, scale_rewards="none")
    validate(config)
    config.objective = dataclasses.replace(config.objective, advantage="group")
    with pytest.raises(ConfigError, match="num_generations >= 2"):
        validate(config)
