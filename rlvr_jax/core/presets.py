"""Published methods as rows of settings: what `--config.objective=NAME` puts in place.

A row names what differs from the defaults of `config.Objective`, which are DAPO's;
docs/papers.md gives the source of each value.
"""

from typing import Any

_PPO_CLIP = {"epsilon_high": 0.2, "overlong_filter": False}
_GRPO = {**_PPO_CLIP, "loss_aggregation": "sequence_mean"}
_CRITIC = {"advantage": "gae", "overlong_filter": False}
_IN_REWARD = {"kl_estimator": "k1", "kl_placement": "reward"}
_GSPO = {
    "ratio_level": "sequence",
    "epsilon_low": 3e-4,
    "epsilon_high": 4e-4,
    "loss_aggregation": "sequence_mean",
    "overlong_filter": False,
}
_CISPO = {
    "surrogate": "cispo",
    "epsilon_low": 1.0,
    "epsilon_high": 4.0,
    "overlong_filter": False,
}

PRESETS: dict[str, dict[str, Any]] = {
    # InstructGPT's form of PPO, https://arxiv.org/abs/2203.02155
    "ppo": {
        **_CRITIC,
        **_IN_REWARD,
        "scale_rewards": "batch",
        "epsilon_high": 0.2,
        "lam_critic": 0.95,
        "beta": 0.02,
    },
    # Tulu 3, https://arxiv.org/abs/2411.15124
    "tulu3": {
        **_CRITIC,
        **_IN_REWARD,
        "scale_rewards": "batch",
        "epsilon_high": 0.2,
        "lam_critic": 0.95,
        "beta": 0.05,
        "replace_unfinished": True,
    },
    # VC-PPO, https://arxiv.org/abs/2503.01491
    "vc_ppo": {**_CRITIC, "scale_rewards": "none", "epsilon_high": 0.2},
    # VAPO, https://arxiv.org/abs/2504.05118
    "vapo": {
        **_CRITIC,
        "scale_rewards": "none",
        "lam_alpha": 0.05,
        "imitation_coefficient": 0.1,
    },
    # SAO, https://arxiv.org/abs/2607.07508
    "sao": {
        **_CRITIC,
        "scale_rewards": "none",
        "lam_alpha": 1.5,
        "old_policy": "rollout",
        "surrogate": "dis",
        "epsilon_low": 0.3,
        "epsilon_high": 5.0,
    },
    # Back to Basics, https://arxiv.org/abs/2402.14740
    "rloo": {
        **_IN_REWARD,
        "advantage": "rloo",
        "scale_rewards": "none",
        "surrogate": "reinforce",
        "loss_aggregation": "constant",
        "beta": 0.03,
        "overlong_filter": False,
    },
    # ReMax, https://arxiv.org/abs/2310.10505
    "remax": {
        **_IN_REWARD,
        "advantage": "remax",
        "scale_rewards": "none",
        "surrogate": "reinforce",
        "loss_aggregation": "constant",
        "beta": 0.05,
        "overlong_filter": False,
    },
    # REINFORCE++, https://arxiv.org/abs/2501.03262
    "reinforce_pp": {
        **_PPO_CLIP,
        **_IN_REWARD,
        "advantage": "reinforce_pp",
        "scale_rewards": "none",
        "beta": 0.01,
    },
    "reinforce_pp_baseline": {
        **_PPO_CLIP,
        "advantage": "reinforce_pp_baseline",
        "scale_rewards": "none",
        "beta": 1e-5,
        "kl_estimator": "k2",
    },
    # DeepSeekMath, https://arxiv.org/abs/2402.03300
    "grpo": {**_GRPO, "beta": 0.04},
    "deepseekmath": {**_GRPO, "beta": 0.04},
    # DeepSeek-R1, https://arxiv.org/abs/2501.12948
    "r1_zero": {**_GRPO, "beta": 0.001, "reference_update": "copy"},
    "r1": {
        **_GRPO,
        "epsilon_low": 1.0,
        "epsilon_high": 10.0,
        "beta": 0.001,
        "reference_update": "copy",
    },
    # Dr. GRPO, https://arxiv.org/abs/2503.20783
    "dr_grpo": {**_PPO_CLIP, "scale_rewards": "none", "loss_aggregation": "constant"},
    # DAPO, https://arxiv.org/abs/2503.14476. Its soft overlong reward needs a length:
    # set objective.overlong_buffer_tokens (4,096 of 20,480 there).
    "dapo": {},
    # OPO, https://arxiv.org/abs/2505.23585
    "opo": {
        "advantage": "opo",
        "scale_rewards": "none",
        "surrogate": "reinforce",
        "overlong_filter": False,
    },
    # GPG, https://arxiv.org/abs/2504.02546
    "gpg": {
        "advantage": "gpg",
        "scale_rewards": "none",
        "surrogate": "reinforce",
        "overlong_filter": False,
    },
    # Pass@k training, https://arxiv.org/abs/2508.10751
    "passk": {"advantage": "passk", "overlong_filter": False},
    # GDPO, https://arxiv.org/abs/2601.05242
    "gdpo": {**_GRPO, "advantage": "gdpo"},
    # GSPO, https://arxiv.org/abs/2507.18071
    "gspo": _GSPO,
    "gspo_token": {**_GSPO, "ratio_level": "sequence_token"},
    # LUSPO, https://arxiv.org/abs/2602.05261
    "luspo": {
        **_GSPO,
        "epsilon_low": 2e-3,
        "epsilon_high": 2.5e-3,
        "loss_aggregation": "sequence_sum",
    },
    # MiniMax-M1, https://arxiv.org/abs/2506.13585
    "cispo": _CISPO,
    "minimax_m1": _CISPO,
    # ScaleRL, https://arxiv.org/abs/2510.13786
    "scalerl": {
        "scale_rewards": "batch",
        "surrogate": "cispo_capped",
        "loss_aggregation": "prompt_mean",
        "overlong_filter": False,
    },
    # SAPO, https://arxiv.org/abs/2511.20347
    "sapo": {
        "surrogate": "sapo",
        "loss_aggregation": "sequence_mean",
        "overlong_filter": False,
    },
    # GMPO, https://arxiv.org/abs/2507.20673
    "gmpo": {
        "surrogate": "gmpo",
        "epsilon_low": 0.4,
        "epsilon_high": 0.4,
        "loss_aggregation": "sequence_mean",
        "overlong_filter": False,
    },
    # Magistral, https://arxiv.org/abs/2506.10910
    "magistral": {
        "scale_rewards": "minibatch",
        "loss_aggregation": "prompt_mean",
        "overlong_filter": False,
    },
    # Olmo 3, https://arxiv.org/abs/2512.13961
    "olmo3": {
        "scale_rewards": "none",
        "epsilon_high": 0.272,
        "importance_correction": "clamp",
        "overlong_filter": False,
    },
    # DeepSeek-V3.2, https://arxiv.org/abs/2512.02556
    "deepseek_v32": {
        **_GRPO,
        "scale_rewards": "none",
        "beta": 0.001,
        "kl_estimator": "k3_corrected",
        "negative_mask_threshold": 0.5,
    },
    # ProRL, https://arxiv.org/abs/2505.24864
    "prorl": {
        "epsilon_high": 0.4,
        "beta": 1e-4,
        "reference_update": "reset",
        "overlong_filter": False,
    },
    # Kimi k1.5, https://arxiv.org/abs/2501.12599
    "kimi_k15": {
        "scale_rewards": "none",
        "surrogate": "mirror_descent",
        "loss_aggregation": "sequence_mean",
        "overlong_filter": False,
    },
    # Kimi K3: a band whatever the sign, over the sampler's log-probs.
    "kimi_k3": {
        "scale_rewards": "none",
        "old_policy": "rollout",
        "surrogate": "dis",
        "epsilon_low": 0.5,
        "epsilon_high": 1.0,
        "overlong_filter": False,
    },
    # MiMo-V2.6: bands by the advantage's sign, over the sampler's log-probs.
    "mimo": {
        "old_policy": "rollout",
        "surrogate": "sign_bands",
        "loss_aggregation": "prompt_mean",
        "overlong_filter": False,
    },
    # Step 3.5 Flash, https://arxiv.org/abs/2602.10604
    "mispo": {
        **_CRITIC,
        "scale_rewards": "none",
        "lam": 1.0,
        "bootstrap_truncated": True,
        "surrogate": "reinforce",
        "token_band": (0.5, 2.0),
        "sequence_band": (0.996, 1.001),
    },
    # On-policy distillation, https://thinkingmachines.ai/blog/on-policy-distillation
    "opd": {
        **_IN_REWARD,
        "advantage": "distillation",
        "scale_rewards": "none",
        "surrogate": "ratio",
        "beta": 1.0,
        "overlong_filter": False,
    },
    # RGRA, https://arxiv.org/abs/2603.18756
    "rgra": {
        "surrogate": "reinforce",
        "loss_aggregation": "sequence_mean",
        "beta": 0.04,
        "overlong_filter": False,
    },
    # Entropy mechanism, https://arxiv.org/abs/2505.22617
    "clip_cov": {
        "surrogate": "clip_cov",
        "epsilon_low": 1.0,
        "epsilon_high": 1.0,
        "overlong_filter": False,
    },
    "kl_cov": {"surrogate": "kl_cov", "overlong_filter": False},
    # Beyond the 80/20 rule, https://arxiv.org/abs/2506.01939
    "top_entropy": {"top_entropy_fraction": 0.2},
    # DPPO, https://arxiv.org/abs/2602.04879
    "dppo": {
        "scale_rewards": "none",
        "old_policy": "rollout",
        "surrogate": "dppo",
        "ratio_max": 20.0,
        "loss_aggregation": "constant",
        "overlong_filter": False,
    },
    # INTELLECT-2, https://arxiv.org/abs/2505.07291
    "intellect2": {**_PPO_CLIP, "dual_clip": 4.0, "beta": 0.001},
    # Skywork-OR1, https://arxiv.org/abs/2505.22312
    "skywork_or1": {**_PPO_CLIP, "entropy_target": 0.2},
}
