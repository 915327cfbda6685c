"""From rewards to advantages: what each completion, or token, is paid for."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.config import Objective
from rlvr_jax.core import (
    advantages,
    baselines,
    gae,
    multi_reward,
    passk_advantages,
    returns,
    shaping,
    whitening,
)
from rlvr_jax.objective_rules import PER_TOKEN
from rlvr_jax.train.forward import flat
from rlvr_jax.types import Rollouts


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Signals:
    """What advantages are made of, over rows B; None where the method needs none."""

    group_id: Int[Array, "... B"]
    token_mask: Bool[Array, "... B T"]
    correct: Bool[Array, "... B"]
    kl_rewards: Float[Array, "... B T"] | None = None
    """-beta k1 per token, with the KL term in the reward."""
    values: Float[Array, "... B T"] | None = None
    greedy_rewards: Float[Array, "... B"] | None = None
    reward_parts: Float[Array, "... B R"] | None = None
    part_weights: Float[Array, "... R"] | None = None
    history: Float[Array, "... B W"] | None = None
    history_seen: Bool[Array, "... B W"] | None = None
    kept: Bool[Array, "... B"] | None = None
    """Rows of groups that the loss takes; statistics of a batch are theirs. None: all.
    """

    @property
    def kept_tokens(self) -> Bool[Array, "... B T"]:
        """Sampled tokens of the rows that count."""
        if self.kept is None:
            return self.token_mask
        return self.token_mask & self.kept[..., None]


def shaped_rewards(
    rewards: Float[Array, "P G"],
    correct: Float[Array, "P G"],
    rollouts: Rollouts,
    objective: Objective,
    max_completion_tokens: int,
) -> Float[Array, "P G"]:
    """Rewards with the terms that read lengths and endings."""
    shape, rewards = rewards.shape, flat(rewards)
    lengths, ended = flat(rollouts.completion_lengths), flat(rollouts.ended)
    if objective.length_reward_weight != 0:
        rewards += shaping.kimi_length_rewards(
            lengths,
            flat(correct) > 0,
            flat(rollouts.group_id),
            weight=objective.length_reward_weight,
        )
    if objective.overlong_buffer_tokens > 0:
        rewards += shaping.soft_overlong_penalty(
            lengths,
            max_completion_tokens=max_completion_tokens,
            buffer_tokens=objective.overlong_buffer_tokens,
            penalty=objective.overlong_penalty,
        )
    if objective.replace_unfinished:
        rewards = shaping.unfinished_rewards(
            rewards, ended, reward=objective.unfinished_reward
        )
    return rewards.reshape(shape)


def batch_advantages(
    rewards: Float[Array, " B"], signals: Signals, objective: Objective
) -> Float[Array, "B N"]:
    """Advantages over the whole batch of a step: N is 1, or T for those per token."""
    per_token = objective.advantage in PER_TOKEN
    if signals.kl_rewards is not None and not per_token:
        rewards = rewards + signals.kl_rewards.sum(axis=-1)
    found = ADVANTAGES[objective.advantage](rewards, signals, objective)
    return found if per_token else found[:, None]


def scaled_in_minibatch(
    centred: Float[Array, "P G N"],
    group_id: Int[Array, " B"],
    kept: Bool[Array, "P G"] | None,
    objective: Objective,
) -> Float[Array, "P G N"]:
    """scale_rewards="minibatch": divided by the std of the minibatch of one update.

    The std is that of the `kept` rows; None: all.
    """
    return advantages.group_advantages(
        flat(centred)[:, 0],
        group_id,
        scale="batch",
        ddof=objective.std_ddof,
        epsilon=objective.std_epsilon,
        row_mask=None if kept is None else flat(kept),
    ).reshape(centred.shape)


def token_rewards(rewards: Float[Array, " B"], signals: Signals) -> Float[Array, "B T"]:
    """The reward at the last token, and the KL penalty at each."""
    paid = returns.token_rewards(rewards, signals.token_mask)
    return paid if signals.kl_rewards is None else paid + signals.kl_rewards


def value_targets(
    rewards: Float[Array, " B"], signals: Signals, *, gamma: float, lam: float
) -> Float[Array, "B T"]:
    """What the critic learns; at lam = 1 the returns themselves."""
    return gae.value_targets(
        token_rewards(rewards, signals),
        _given(signals.values),
        signals.token_mask,
        gamma=gamma,
        lam=lam,
    )


def _grouped(baseline: str) -> Callable:
    def of(rewards, signals, objective):
        scale = objective.scale_rewards
        return advantages.group_advantages(
            rewards,
            signals.group_id,
            baseline=baseline,
            scale="none" if scale == "minibatch" else scale,
            ddof=objective.std_ddof,
            epsilon=objective.std_epsilon,
            row_mask=signals.kept,
        )

    return of


def _opo(rewards, signals, objective):
    del objective
    lengths = signals.token_mask.sum(axis=-1)
    return baselines.weighted_mean_advantages(rewards, signals.group_id, lengths)


def _gpg(rewards, signals, objective):
    del objective
    return baselines.gpg_advantages(rewards, signals.group_id, row_mask=signals.kept)


def _best_of_group(rewards, signals, objective):
    found = baselines.best_of_group_advantages(rewards, signals.group_id)
    if objective.scale_rewards == "none":
        return found
    std = advantages.group_std(rewards, signals.group_id, ddof=objective.std_ddof)
    return found / (std + objective.std_epsilon)


def _passk(rewards, signals, objective):
    del rewards  # a set is paid for holding a correct completion
    return passk_advantages.passk_advantages(
        signals.correct,
        signals.group_id,
        k=objective.passk_k,
        scale=objective.scale_rewards,
    )


def _remax(rewards, signals, objective):
    del objective
    return baselines.remax_advantages(rewards, _given(signals.greedy_rewards))


def _running_mean(rewards, signals, objective):
    del objective
    history, seen = _given(signals.history), _given(signals.history_seen)
    return baselines.running_mean_advantages(rewards, history, seen)


def _gdpo(rewards, signals, objective):
    parts, weights = _given(signals.reward_parts), _given(signals.part_weights)
    # What is not a part (lengths, KL) is normalised as one more reward.
    rest = rewards - multi_reward.summed_rewards(parts, weights)
    found = multi_reward.gdpo_advantages(
        jnp.concatenate([parts, rest[:, None]], axis=1),
        signals.group_id,
        jnp.append(weights, 1.0),
        ddof=objective.std_ddof,
        epsilon=objective.std_epsilon,
        scale=objective.scale_rewards,
    )
    return advantages.group_advantages(
        found,
        jnp.zeros_like(signals.group_id),
        epsilon=objective.std_epsilon,
        row_mask=signals.kept,
    )


def _reinforce_pp(rewards, signals, objective):
    return whitening.reinforce_pp_advantages(
        token_rewards(rewards, signals),
        signals.kept_tokens,
        gamma=objective.gamma,
        ddof=objective.std_ddof,
    )


def _reinforce_pp_baseline(rewards, signals, objective):
    # The group's mean is that of whole rewards, as in verl: KL terms are summed first.
    if signals.kl_rewards is not None:
        rewards = rewards + signals.kl_rewards.sum(axis=-1)
    return whitening.reinforce_pp_baseline_advantages(
        rewards, signals.group_id, signals.kept_tokens, ddof=objective.std_ddof
    )


def _gae(rewards, signals, objective):
    lam = objective.lam
    if objective.lam_alpha > 0:
        lengths = signals.token_mask.sum(axis=-1)
        lam = gae.length_adaptive_lambda(lengths, alpha=objective.lam_alpha)
    found = gae.gae(
        token_rewards(rewards, signals),
        _given(signals.values),
        signals.token_mask,
        gamma=objective.gamma,
        lam=lam,
    )
    if objective.scale_rewards == "none":
        return found
    return whitening.whiten(found, signals.kept_tokens, ddof=objective.std_ddof)


def _distillation(rewards, signals, objective):
    """beta (log pi_teacher - log pi) at each token, with no look at later ones."""
    del rewards, objective
    return _given(signals.kl_rewards)


ADVANTAGES: dict[str, Callable] = {
    "group": _grouped("mean"),
    "rloo": _grouped("leave_one_out"),
    "opo": _opo,
    "gpg": _gpg,
    "best_of_group": _best_of_group,
    "passk": _passk,
    "remax": _remax,
    "running_mean": _running_mean,
    "gdpo": _gdpo,
    "reinforce_pp": _reinforce_pp,
    "reinforce_pp_baseline": _reinforce_pp_baseline,
    "gae": _gae,
    "distillation": _distillation,
}
"""(rewards [B], signals, objective) -> [B], or [B, T] for those in PER_TOKEN."""


def _given(array: Array | None) -> Array:
    """The array; what the chosen advantage needs is there by construction."""
    if array is None:
        raise TypeError("credit: the chosen objective.advantage lacks an input")
    return array
