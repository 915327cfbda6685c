"""Which settings of an objective go together, and which of them nothing would read."""

from collections.abc import Iterator

from rlvr_jax.config import Config, Objective

# What is read by which choice of the objective.
_BOUNDS = ("epsilon_low", "epsilon_high")
_LEVEL = ("old_policy", "ratio_level")
SURROGATE_READS: dict[str, tuple[str, ...]] = {
    "clip": (*_BOUNDS, *_LEVEL, "dual_clip"),
    "ratio": _LEVEL,
    "reinforce": (),
    "cispo": (*_BOUNDS, *_LEVEL),
    "cispo_capped": ("ratio_max", *_LEVEL),
    "dis": (*_BOUNDS, *_LEVEL),
    "sign_bands": ("band_positive", "band_negative", "band_entropy", *_LEVEL),
    "sapo": ("tau_positive", "tau_negative", *_LEVEL),
    "gmpo": (*_BOUNDS, "old_policy"),
    "dppo": (
        "dppo_divergence",
        "dppo_threshold_low",
        "dppo_threshold_high",
        "ratio_max",
        "old_policy",
    ),
    "vespo": ("old_policy",),
    "dro": ("pull", "old_policy"),
    "mirror_descent": ("pull", "old_policy"),
    "clip_cov": (
        *_BOUNDS,
        "dual_clip",
        "old_policy",
        "covariance_fraction",
        "covariance_min",
        "covariance_max",
    ),
    "kl_cov": ("old_policy", "covariance_fraction", "covariance_kl"),
}
"""Surrogate -> the settings that change it."""
ONE_LOSS_PER_COMPLETION = ("gmpo", "mirror_descent")

_STD = ("std_ddof", "std_epsilon")
ADVANTAGE_READS: dict[str, tuple[str, ...]] = {
    "group": _STD,
    "rloo": _STD,
    "best_of_group": _STD,
    "gdpo": _STD,
    "passk": ("passk_k",),
    "running_mean": ("baseline_window",),
    "reinforce_pp": ("gamma", "std_ddof"),
    "reinforce_pp_baseline": ("std_ddof",),
    "gae": (
        "gamma",
        "lam",
        "lam_alpha",
        "lam_critic",
        "bootstrap_truncated",
        "value_clip",
        "std_ddof",
    ),
}
_BY_STD = ("group", "rloo", "best_of_group", "gdpo", "gae")
SCALES: dict[str, tuple[str, ...]] = {
    "group": ("group", "batch", "minibatch", "none"),
    "rloo": ("group", "batch", "minibatch", "none"),
    "best_of_group": ("group", "none"),
    "passk": ("group", "none"),
    "gdpo": ("group", "none"),
    "gae": ("batch", "none"),
    "opo": ("none",),
    "gpg": ("none",),
    "remax": ("none",),
    "running_mean": ("none",),
    "reinforce_pp": ("none",),
    "reinforce_pp_baseline": ("none",),
    "distillation": ("none",),
}
"""Advantage -> what it can be divided by."""
PER_TOKEN = ("reinforce_pp", "reinforce_pp_baseline", "gae", "distillation")
SHAPING = ("overlong_buffer_tokens", "length_reward_weight", "replace_unfinished")
"""Settings that add to the verifiers' rewards, or replace them."""
WITHOUT_REWARDS = ("passk", "distillation")
"""Advantages of verdicts alone, or of log-probs: what a reward is made of is lost."""
WITHOUT_GROUP = ("remax", "running_mean", "reinforce_pp", "gae", "distillation")
"""Advantages that one completion per prompt is enough for."""


def faults(config: Config) -> Iterator[str]:
    """What cannot be: one sentence each, with the setting to change."""
    objective, rollout = config.objective, config.rollout
    advantage, generations = objective.advantage, rollout.num_generations
    if generations < 2 and advantage not in WITHOUT_GROUP:
        yield (
            f"objective.advantage={advantage!r} compares completions of one prompt and "
            f"needs rollout.num_generations >= 2, got {generations}."
        )
    scales = SCALES.get(advantage, ())
    if scales and objective.scale_rewards not in scales:
        yield (
            f"objective.advantage={advantage!r} goes with objective.scale_rewards of "
            f"{', '.join(scales)}; got {objective.scale_rewards!r}."
        )
    if advantage == "passk" and objective.passk_k > generations:
        yield (
            f"objective.passk_k={objective.passk_k} exceeds "
            f"rollout.num_generations={generations}."
        )
    corrected = (
        objective.old_policy == "rollout"
        or objective.importance_correction != "none"
        or max(*objective.token_band, *objective.sequence_band) > 0
    )
    for name in ("staleness", "token_budget"):
        if getattr(rollout, name) > 0 and not corrected:
            yield (
                f"rollout.{name}={getattr(rollout, name)} trains on samples of an "
                "older policy; let the objective correct for it: set "
                "objective.importance_correction='clamp' or "
                "objective.old_policy='rollout'."
            )
    yield from _combinations(objective)
    yield from _divergence(objective)
    for name in ("gamma", "lam", "lam_critic", "reference_decay", "epsilon_low"):
        if getattr(objective, name) > 1:
            yield f"objective.{name}={getattr(objective, name)} must be in [0, 1]."
    evaluation = config.evaluation
    watched = evaluation.every_steps > 0 and evaluation.prompts > 0
    if objective.reset_after_evaluations > 0 and not watched:
        yield (
            f"objective.reset_after_evaluations={objective.reset_after_evaluations} "
            "watches evaluations between steps; set evaluation.every_steps and "
            "evaluation.prompts."
        )
    if objective.overlong_buffer_tokens > rollout.max_completion_tokens:
        yield (
            f"objective.overlong_buffer_tokens={objective.overlong_buffer_tokens} "
            "exceeds rollout.max_completion_tokens="
            f"{rollout.max_completion_tokens}."
        )


def _combinations(objective: Objective) -> Iterator[str]:
    """Surrogates that ask for a kind of advantage or aggregation."""
    surrogate, per_token = objective.surrogate, objective.advantage in PER_TOKEN
    if surrogate in ONE_LOSS_PER_COMPLETION:
        if per_token:
            yield (
                f"objective.surrogate={surrogate!r} has one loss per completion, but "
                f"objective.advantage={objective.advantage!r} is per token."
            )
        if objective.loss_aggregation != "sequence_mean":
            yield (
                f"objective.surrogate={surrogate!r} has one loss per completion: set "
                "objective.loss_aggregation='sequence_mean', got "
                f"{objective.loss_aggregation!r}."
            )
    if per_token and objective.ratio_level == "sequence":
        yield (
            "objective.ratio_level='sequence' has one ratio per completion, but "
            f"objective.advantage={objective.advantage!r} is per token: set "
            "'sequence_token'."
        )
    bound = 1 + objective.epsilon_high
    if 0 < objective.dual_clip <= bound:
        yield (
            f"objective.dual_clip={objective.dual_clip} must exceed 1 + "
            f"objective.epsilon_high = {bound:g}; 0 switches it off."
        )
    if objective.old_policy == "rollout" and objective.importance_correction != "none":
        yield (
            "objective.old_policy='rollout' has the sampler's log-probs in the ratio; "
            f"objective.importance_correction={objective.importance_correction!r} "
            "would correct for the sampler a second time: set one of the two."
        )
    if objective.bootstrap_truncated and objective.replace_unfinished:
        yield (
            "objective.bootstrap_truncated and objective.replace_unfinished both give "
            "a completion that did not end another reward: set one of the two."
        )
    for name in ("token_band", "sequence_band", "band_positive", "band_negative"):
        low, high = getattr(objective, name)
        if not 0 <= low <= high:
            yield f"objective.{name}={(low, high)} must be (low, high), 0 <= low."


def _divergence(objective: Objective) -> Iterator[str]:
    in_reward = objective.beta > 0 and objective.kl_placement == "reward"
    if objective.advantage == "distillation" and not in_reward:
        yield (
            "objective.advantage='distillation' is the log-ratio to the reference: set "
            "objective.beta above 0 and objective.kl_placement='reward'."
        )
    if objective.beta == 0:
        return
    if objective.kl_placement == "reward" and objective.advantage == "passk":
        yield (
            "objective.advantage='passk' pays sets of completions for holding a "
            "correct one, and reads no reward: set objective.kl_placement='loss'."
        )
    if objective.kl_placement == "loss" and objective.kl_estimator == "k1":
        yield (
            "objective.kl_estimator='k1' in the loss has an expected gradient of "
            "zero: it adds noise and no pull to the reference. Use 'k3' or 'k2', "
            "or objective.kl_placement='reward'."
        )
    if objective.kl_placement == "reward" and objective.kl_estimator != "k1":
        yield (
            "objective.kl_placement='reward' takes kl_estimator='k1', whose sum "
            f"over a completion is its log-ratio; got {objective.kl_estimator!r}."
        )


def unread(objective: Objective) -> list[tuple[bool, list[str], str]]:
    """Rules (applies, settings, reason): where one applies, nothing reads them."""
    return [
        (
            True,
            _unread(SURROGATE_READS, objective.surrogate),
            f"objective.surrogate={objective.surrogate!r} does not read it",
        ),
        (
            True,
            _unread(ADVANTAGE_READS, objective.advantage),
            f"objective.advantage={objective.advantage!r} does not read it",
        ),
        (
            objective.advantage in WITHOUT_REWARDS,
            [f"objective.{name}" for name in SHAPING],
            f"objective.advantage={objective.advantage!r} reads no rewards",
        ),
        (
            objective.lam_alpha > 0,
            ["objective.lam"],
            "objective.lam_alpha makes lambda depend on the length",
        ),
        (
            objective.importance_correction == "none",
            [f"objective.importance_{n}" for n in ("level", "lower", "upper")],
            "objective.importance_correction is 'none'",
        ),
        (
            objective.reference_update not in ("copy", "reset"),
            ["objective.reference_every_steps"],
            f"objective.reference_update is {objective.reference_update!r}",
        ),
        (
            objective.reference_update != "reset",
            ["objective.reset_after_evaluations"],
            f"objective.reference_update is {objective.reference_update!r}",
        ),
        (
            objective.reset_after_evaluations > 0,
            ["objective.reference_every_steps"],
            "objective.reset_after_evaluations decides when",
        ),
        (
            objective.reference_update != "ema",
            ["objective.reference_decay"],
            f"objective.reference_update is {objective.reference_update!r}",
        ),
        (
            not objective.replace_unfinished,
            ["objective.unfinished_reward"],
            "objective.replace_unfinished is False",
        ),
        (
            objective.entropy_target == 0,
            ["objective.entropy_step"],
            "objective.entropy_target is 0",
        ),
        (
            objective.band_entropy == 0,
            ["objective.band_step"],
            "objective.band_entropy is 0",
        ),
        (
            objective.beta == 0,
            [
                f"objective.{n}"
                for n in ("kl_estimator", "kl_placement", "reference_update")
            ],
            "objective.beta is 0",
        ),
        (
            objective.overlong_buffer_tokens == 0,
            ["objective.overlong_penalty"],
            "objective.overlong_buffer_tokens is 0",
        ),
        (
            objective.scale_rewards == "none" and objective.advantage in _BY_STD,
            ["objective.std_ddof", "objective.std_epsilon"],
            "objective.scale_rewards is 'none'",
        ),
    ]


def _unread(reads: dict[str, tuple[str, ...]], choice: str) -> list[str]:
    """Settings that some other choice reads and this one does not."""
    every = {name for names in reads.values() for name in names}
    return [f"objective.{name}" for name in sorted(every - set(reads.get(choice, ())))]
