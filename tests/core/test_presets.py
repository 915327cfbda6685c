"""Rows of presets.py against what their papers and released runs published.

docs/papers.md names the source of each value; here stand the numbers that are known
from elsewhere, so that a change of a row or of a default is noticed.
"""

import dataclasses

import pytest

from rlvr_jax.config import Config, Objective, RolloutConfig
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.validate import validate

NO_KL = {"beta": 0.0}
GROUP = {"advantage": "group", "scale_rewards": "group"}

# (preset, what was published). The ids of rows stand beside them.
PUBLISHED = [
    # CLIP-27: a critic, one clip for both sides, per token, k1 in the reward.
    (
        "ppo",
        {
            "advantage": "gae",
            "surrogate": "clip",
            "ratio_level": "token",
            "epsilon_low": 0.2,
            "epsilon_high": 0.2,
            "loss_aggregation": "token_mean",
            "beta": 0.02,
            "kl_estimator": "k1",
            "kl_placement": "reward",
        },
    ),
    # OBJ-04: Tulu 3.
    (
        "tulu3",
        {
            "advantage": "gae",
            "beta": 0.05,
            "kl_placement": "reward",
            "replace_unfinished": True,
            "unfinished_reward": -10.0,
        },
    ),
    # REC-37, PG-37: VC-PPO decouples lambda, VAPO makes it depend on the length.
    ("vc_ppo", {"advantage": "gae", "lam": 0.95, "lam_critic": 1.0} | NO_KL),
    (
        "vapo",
        {
            "advantage": "gae",
            "lam_alpha": 0.05,
            "lam_critic": 1.0,
            "epsilon_low": 0.2,
            "epsilon_high": 0.28,
            "loss_aggregation": "token_mean",
            "imitation_coefficient": 0.1,
        }
        | NO_KL,
    ),
    # PG-30: SAO, reasoning.
    (
        "sao",
        {
            "advantage": "gae",
            "lam_alpha": 1.5,
            "lam_critic": 1.0,
            "surrogate": "dis",
            "old_policy": "rollout",
            "epsilon_low": 0.3,
            "epsilon_high": 5.0,
        }
        | NO_KL,
    ),
    ("rloo", {"advantage": "rloo", "beta": 0.03, "kl_placement": "reward"}),
    # PG-32, REC-28: DeepSeekMath.
    ("grpo", GROUP | {"loss_aggregation": "sequence_mean", "beta": 0.04}),
    # REC-02: R1-Zero. REC-07: the clip tells R1's first RL stage from it.
    (
        "r1_zero",
        GROUP
        | {
            "beta": 0.001,
            "kl_estimator": "k3",
            "reference_update": "copy",
            "reference_every_steps": 400,
        },
    ),
    ("r1", GROUP | {"beta": 0.001, "epsilon_high": 10.0, "reference_update": "copy"}),
    # AGG-14: Dr. GRPO.
    ("dr_grpo", {"scale_rewards": "none", "loss_aggregation": "constant"} | NO_KL),
    # REC-25, CLIP-06: DAPO.
    (
        "dapo",
        GROUP
        | NO_KL
        | {
            "epsilon_low": 0.2,
            "epsilon_high": 0.28,
            "loss_aggregation": "token_mean",
            "overlong_filter": True,
        },
    ),
    ("gspo", {"epsilon_low": 3e-4, "epsilon_high": 4e-4} | NO_KL),
    ("luspo", {"epsilon_low": 2e-3, "epsilon_high": 2.5e-3}),
    # REC-15: no lower bound; the upper one is unpublished.
    ("minimax_m1", GROUP | NO_KL | {"surrogate": "cispo", "epsilon_low": 1.0}),
    # SFT-12: on-policy distillation; coefficient 1, discount 0.
    (
        "opd",
        {"advantage": "distillation", "beta": 1.0, "kl_placement": "reward"},
    ),
    # DATA-12: Kimi K3; the band is unpublished.
    (
        "kimi_k3",
        {"surrogate": "dis", "old_policy": "rollout", "scale_rewards": "none"} | NO_KL,
    ),
    # REC-23: ScaleRL.
    (
        "scalerl",
        {
            "surrogate": "cispo_capped",
            "ratio_max": 5.0,
            "scale_rewards": "batch",
            "loss_aggregation": "prompt_mean",
        }
        | NO_KL,
    ),
    ("sapo", {"tau_positive": 1.0, "tau_negative": 1.05}),
    ("gmpo", {"epsilon_low": 0.4, "epsilon_high": 0.4}),
    # REC-16: Magistral; the upper bound lies in 0.26 to 0.28.
    (
        "magistral",
        {
            "scale_rewards": "minibatch",
            "loss_aggregation": "prompt_mean",
            "epsilon_high": 0.28,
        }
        | NO_KL,
    ),
    # REC-18: Olmo 3.
    (
        "olmo3",
        {
            "scale_rewards": "none",
            "loss_aggregation": "token_mean",
            "epsilon_low": 0.2,
            "epsilon_high": 0.272,
            "importance_correction": "clamp",
            "importance_upper": 2.0,
            "overlong_filter": False,
        }
        | NO_KL,
    ),
    # REC-21: DeepSeek-V3.2; beta and the threshold are unpublished.
    ("deepseek_v32", {"scale_rewards": "none", "kl_estimator": "k3_corrected"}),
    # REC-22: ProRL.
    (
        "prorl",
        {"epsilon_low": 0.2, "epsilon_high": 0.4, "reference_update": "reset"},
    ),
    # REC-10: Kimi k1.5; tau and the weight of the length term are unpublished.
    ("kimi_k15", {"surrogate": "mirror_descent", "scale_rewards": "none"} | NO_KL),
    (
        "mispo",
        {
            "advantage": "gae",
            "gamma": 1.0,
            "lam": 1.0,
            "lam_critic": 1.0,
            "token_band": (0.5, 2.0),
            "sequence_band": (0.996, 1.001),
        },
    ),
    ("clip_cov", {"covariance_fraction": 2e-4, "covariance_max": 5.0}),
    ("kl_cov", {"covariance_fraction": 2e-4, "covariance_kl": 1.0}),
    ("top_entropy", {"top_entropy_fraction": 0.2, "epsilon_high": 0.28}),
    ("dppo", {"dppo_threshold_low": 0.15, "dppo_threshold_high": 0.15}),
    ("intellect2", {"dual_clip": 4.0, "epsilon_high": 0.2, "beta": 0.001}),
    ("skywork_or1", {"entropy_target": 0.2, "epsilon_high": 0.2} | NO_KL),
]


def resolved(name):
    return dataclasses.asdict(Objective(name=name, **PRESETS[name]))


@pytest.mark.parametrize(("name", "values"), PUBLISHED)
def test_published_values(name, values):
    """CLIP-27, REC-37 and others: see the comments of the table."""
    found = resolved(name)
    assert {setting: found[setting] for setting in values} == values


@pytest.mark.parametrize("name", PRESETS)
def test_a_row_names_what_differs_and_fits_together(name):
    """No row repeats a default, and each can be run as it stands with G = 4."""
    defaults = dataclasses.asdict(Objective())
    assert [key for key, value in PRESETS[name].items() if defaults[key] == value] == []
    validate(
        Config(
            rollout=RolloutConfig(num_generations=4),
            objective=Objective(name=name, **PRESETS[name]),
        )
    )


def test_names_of_one_method_have_one_row():
    assert PRESETS["deepseekmath"] == PRESETS["grpo"]
    assert PRESETS["minimax_m1"] == PRESETS["cispo"]


def test_a_reference_of_r1_zero_is_copied_26_times():
    """REC-02: 10,400 steps."""
    assert 10_400 // resolved("r1_zero")["reference_every_steps"] == 26


def test_r1_zero_and_the_first_stage_of_r1_are_two_objectives():
    """REC-07: they share all but the clip."""
    zero, one = resolved("r1_zero"), resolved("r1")
    differing = {key for key in zero if zero[key] != one[key]}
    assert differing == {"name", "epsilon_low", "epsilon_high"}
