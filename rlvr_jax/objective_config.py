"""The settings of an objective, and of the critic that one kind of it has."""

import dataclasses


@dataclasses.dataclass
class Objective:
    """advantage x ratio level x surrogate x aggregation x KL x masks x entropy.

    `--config.objective=dapo` puts a preset (rlvr_jax/core/presets.py) in place; flags
    after it change single fields. A changed setting that the chosen ones do not read
    is an error.
    """

    name: str = "dapo"
    """The preset that this objective started from; read by reports only."""

    # Rewards: what is added to, or put in place of, the verifier's reward.
    overlong_buffer_tokens: int = 0
    """Soft overlong penalty: ramps from 0 at max_completion_tokens - this to
    -overlong_penalty at the limit; 0 switches it off."""
    overlong_penalty: float = 1.0
    length_reward_weight: float = 0.0
    """Kimi k1.5: times 0.5 at the shortest of the group to -0.5 at the longest; a wrong
    answer gains nothing by being short."""
    replace_unfinished: bool = False
    """A completion that did not end earns `unfinished_reward`, whatever it says."""
    unfinished_reward: float = -10.0
    """Tulu 3."""

    # Advantages.
    advantage: str = "group"
    """Reward less the "group" mean, "rloo" mean of the others, "opo" length-weighted
    mean, "remax" greedy answer, "running_mean" of the prompt's past; "gpg", "passk",
    "best_of_group"; "gdpo" (each reward part by itself); "reinforce_pp",
    "reinforce_pp_baseline" (whitened per token); "gae" (a critic); "distillation" (no
    reward: beta times the log-ratio of model.reference_path, the teacher, to the
    policy at each token)."""
    passk_k: int = 4
    """Completions of a set that is paid once if one of them is correct."""
    baseline_window: int = 8
    """Rewards of a prompt that "running_mean" averages (SAO's ablation)."""
    scale_rewards: str = "group"
    """What centred rewards are divided by: "group" (std of the group), "batch" (std of
    all of the step), "minibatch" (of one update), "none" (Dr. GRPO)."""
    std_ddof: int = 0
    """0: population std, as published; 1: as TRL and verl compute it."""
    std_epsilon: float = 1e-6
    gamma: float = 1.0
    """Discount per token of "reinforce_pp" and "gae"."""
    lam: float = 0.95
    """GAE's lambda for the policy, where lam_alpha is 0."""
    lam_alpha: float = 0.0
    """Length-adaptive lambda 1 - 1 / (alpha length): VAPO 0.05, SAO 1.5; 0: off."""
    lam_critic: float = 1.0
    """Lambda of the critic's targets (VC-PPO: 1)."""
    bootstrap_truncated: bool = False
    """A completion cut at the limit ends in the critic's value of its last state in
    place of its reward, as one that would go on (Step 3.5 Flash)."""
    value_clip: float = 0.2
    """Largest move of a value per step; 0 for no bound."""

    # Ratio and surrogate.
    old_policy: str = "trainer"
    """Denominator of the ratio: "trainer" (recomputed at the start of the step) or
    "rollout" (the sampler's own log-probs: SAO)."""
    ratio_level: str = "token"
    """"token", "sequence" (GSPO: geometric mean over the completion) or
    "sequence_token" (its value, each token's own gradient)."""
    surrogate: str = "clip"
    """Per-token loss from ratio and advantage: "clip" (PPO), "ratio" (no clip),
    "reinforce" (no ratio), "cispo", "cispo_capped", "dis", "sign_bands", "sapo",
    "gmpo", "dppo", "vespo", "dro", "mirror_descent", "clip_cov", "kl_cov"."""
    epsilon_low: float = 0.2
    epsilon_high: float = 0.28
    dual_clip: float = 0.0
    """Largest ratio that counts against a negative advantage (3; INTELLECT-2: 4)."""
    ratio_max: float = 5.0
    """Largest weight of "cispo_capped" (ScaleRL 4 to 8) and "dppo" (20)."""
    band_positive: tuple[float, float] = (0.5, 2.0)
    """"sign_bands": ratios outside are dropped, for advantages above 0 and below."""
    band_negative: tuple[float, float] = (0.5, 2.0)
    band_entropy: float = 0.0
    """In nats: while entropy is below, the band for advantages above 0 widens per step
    and the other narrows; above, the other way round (MiMo-V2.6); 0: both stay."""
    band_step: float = 0.01
    """Change per step of the logarithm of a band's width in log ratios."""
    tau_positive: float = 1.0
    """Sharpness of SAPO's gate for advantages above 0."""
    tau_negative: float = 1.05
    pull: float = 0.1
    """Towards the old policy: tau of "mirror_descent" (reward per nat), beta of
    "dro"."""
    dppo_divergence: str = "tv"
    """"tv" (probabilities) or "kl" (nats)."""
    dppo_threshold_low: float = 0.15
    dppo_threshold_high: float = 0.15
    covariance_fraction: float = 2e-4
    """Share of a minibatch's tokens that "clip_cov" or "kl_cov" holds back."""
    covariance_min: float = 1.0
    """Band in which "clip_cov" picks."""
    covariance_max: float = 5.0
    covariance_kl: float = 1.0
    """Strength of the KL penalty on the tokens of "kl_cov"."""

    # Corrections for a sampler that is not the trainer's old policy.
    importance_correction: str = "none"
    """pi_old / sampler as a weight: "none", "clamp" to the bounds (TIS) or "zero"
    outside them (masked importance sampling, IcePop)."""
    importance_level: str = "token"
    """"token", "sequence" (product) or "sequence_mean" (geometric mean)."""
    importance_lower: float = 0.0
    importance_upper: float = 2.0
    token_band: tuple[float, float] = (0.0, 0.0)
    """MIS-PO: tokens whose pi_old / sampler is outside leave the loss; (0, 0): off."""
    sequence_band: tuple[float, float] = (0.0, 0.0)
    """The same for completions, by the geometric mean of their ratios."""
    negative_mask_threshold: float = 0.0
    """DeepSeek-V3.2: completions with a negative advantage whose mean log(sampler /
    policy) exceeds this, in nats, are not pushed down; 0: off."""

    # Which tokens count, and how much.
    loss_aggregation: str = "token_mean"
    """"sequence_mean" (GRPO), "token_mean" (DAPO), "constant" (Dr. GRPO),
    "prompt_mean" (ScaleRL; token mean within a prompt's completions), "sequence_sum"
    (LUSPO), "token_sum"."""
    overlong_filter: bool = True
    """Completions cut at the limit leave the loss; their reward stays in the group."""
    top_entropy_fraction: float = 1.0
    """Share of a minibatch's tokens, those of highest entropy, that get a gradient
    (0.2 in the 80/20 paper); 1: all."""

    # KL to a reference.
    beta: float = 0.0
    """KL coefficient; 0 loads no reference model."""
    kl_estimator: str = "k3"
    """"k1", "k2", "k3", "abs", "k3_corrected" (DeepSeek-V3.2: times the ratio) or
    "k3_straight" (value of k3, gradient of k2)."""
    kl_placement: str = "loss"
    """"loss" (GRPO) or "reward" (PPO-RLHF, RLOO; k1 only belongs here)."""
    reference_update: str = "never"
    """"copy" the policy every reference_every_steps (R1-Zero), "reset" (copy, and a new
    optimizer state: ProRL) or "ema" (every step)."""
    reference_every_steps: int = 400
    reset_after_evaluations: int = 0
    """Of "reset": done after so many evaluations in a row without a new best pass@1
    (ProRL), in place of every so many steps; 0: by steps."""
    reference_decay: float = 0.99
    """Of "ema": reference = decay x reference + (1 - decay) x policy."""

    # Entropy and imitation.
    entropy_coefficient: float = 0.0
    """Entropy bonus per token, subtracted from the loss."""
    entropy_target: float = 0.0
    """In nats: while entropy is below, the coefficient climbs by entropy_step per step
    (Skywork-OR1); 0 keeps it fixed."""
    entropy_step: float = 0.005
    imitation_coefficient: float = 0.0
    """Of the negative log-likelihood of correct completions (VAPO 0.1)."""


@dataclasses.dataclass
class CriticConfig:
    """The value model of objective.advantage="gae": a decoder like the policy's with a
    head of one number."""

    path: str = ""
    """A reward model to start from (PPO, Tulu 3, VAPO), of the policy's architecture: a
    directory of `launch.reward_model`, or any of transformers' classifiers of one
    label. "": a copy of the policy, with a head that values all at 0."""
    learning_rate: float = 1e-5
    updates_per_minibatch: int = 1
    """SAO: 2."""
    pretraining_steps: int = 0
    """Steps at the start that train the critic alone (VC-PPO, VAPO 50)."""
    freeze_attention: bool = False
    """Train only what is not attention (SAO)."""
