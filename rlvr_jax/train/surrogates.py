"""The loss per token of each surrogate, from what a micro-batch knows."""

import dataclasses
from collections.abc import Callable
from typing import TypedDict

import jax
from jaxtyping import Array, Bool, Float

from rlvr_jax.config import Objective
from rlvr_jax.core import losses, selection, sequence_losses, weighted_losses
from rlvr_jax.core.entropy import shifted_bands


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Terms:
    """What a surrogate may read."""

    policy_logprobs: Float[Array, "... B T"]
    old_logprobs: Float[Array, "... B T"]
    log_ratio: Float[Array, "... B _"]
    """At the objective's level: per token, or one per completion."""
    token_log_ratio: Float[Array, "... B T"]
    advantages: Float[Array, "..."]
    """[B], or [B, T]."""
    token_mask: Float[Array, "... B T"]
    selected: Bool[Array, "... B T"] | None
    """Tokens that a rule over the whole minibatch chose (train/selected.py)."""
    band_shift: Float[Array, "..."] | None = None
    """Of the bands of "sign_bands"; None while these stay."""


class _Bounds(TypedDict):
    """Of the ratio: 1 - epsilon_low to 1 + epsilon_high."""

    epsilon_low: float
    epsilon_high: float


def _bounds(objective: Objective) -> _Bounds:
    return {
        "epsilon_low": objective.epsilon_low,
        "epsilon_high": objective.epsilon_high,
    }


def _clip(terms: Terms, objective: Objective):
    return losses.clipped_loss(
        terms.log_ratio,
        terms.advantages,
        **_bounds(objective),
        dual_clip=objective.dual_clip or None,
    )


def _ratio(terms: Terms, objective: Objective):
    del objective
    return losses.ratio_loss(terms.log_ratio, terms.advantages)


def _reinforce(terms: Terms, objective: Objective):
    del objective
    return losses.reinforce_loss(terms.policy_logprobs, terms.advantages)


def _cispo(terms: Terms, objective: Objective):
    return weighted_losses.cispo_loss(
        terms.policy_logprobs, terms.log_ratio, terms.advantages, **_bounds(objective)
    )


def _cispo_capped(terms: Terms, objective: Objective):
    return weighted_losses.cispo_capped_loss(
        terms.policy_logprobs,
        terms.log_ratio,
        terms.advantages,
        ratio_max=objective.ratio_max,
    )


def _dis(terms: Terms, objective: Objective):
    return weighted_losses.dis_loss(
        terms.policy_logprobs, terms.log_ratio, terms.advantages, **_bounds(objective)
    )


def _sign_bands(terms: Terms, objective: Objective):
    positive, negative = objective.band_positive, objective.band_negative
    if terms.band_shift is not None:
        positive, negative = shifted_bands(positive, negative, terms.band_shift)
    return weighted_losses.sign_banded_loss(
        terms.policy_logprobs,
        terms.log_ratio,
        terms.advantages,
        band_positive=tuple(positive),
        band_negative=tuple(negative),
    )


def _sapo(terms: Terms, objective: Objective):
    return losses.sapo_loss(
        terms.log_ratio,
        terms.advantages,
        tau_positive=objective.tau_positive,
        tau_negative=objective.tau_negative,
    )


def _gmpo(terms: Terms, objective: Objective):
    return losses.gmpo_loss(
        terms.token_log_ratio,
        terms.advantages,
        terms.token_mask,
        **_bounds(objective),
    )


def _dppo(terms: Terms, objective: Objective):
    return weighted_losses.dppo_loss(
        terms.policy_logprobs,
        terms.old_logprobs,
        terms.advantages,
        terms.token_mask,
        divergence=objective.dppo_divergence,
        threshold_low=objective.dppo_threshold_low,
        threshold_high=objective.dppo_threshold_high,
        ratio_max=objective.ratio_max,
    )


def _vespo(terms: Terms, objective: Objective):
    del objective
    weights = weighted_losses.vespo_weights(
        terms.token_log_ratio, terms.advantages, terms.token_mask
    )
    return losses.reinforce_loss(terms.policy_logprobs, terms.advantages, weights)


def _dro(terms: Terms, objective: Objective):
    return losses.dro_loss(
        terms.policy_logprobs,
        terms.token_log_ratio,
        terms.advantages,
        beta=objective.pull,
    )


def _mirror_descent(terms: Terms, objective: Objective):
    per_row = sequence_losses.mirror_descent_loss(
        terms.policy_logprobs,
        terms.old_logprobs,
        terms.advantages,
        terms.token_mask,
        tau=objective.pull,
    )
    return per_row.reshape(-1, 1)


def _clip_cov(terms: Terms, objective: Objective):
    return _clip(terms, objective)  # `selected` takes tokens out of the weights


def _kl_cov(terms: Terms, objective: Objective):
    assert terms.selected is not None
    return selection.kl_cov_loss(
        terms.token_log_ratio,
        terms.advantages,
        terms.selected,
        kl_coefficient=objective.covariance_kl,
    )


SURROGATES: dict[str, Callable[[Terms, Objective], Array]] = {
    "clip": _clip,
    "ratio": _ratio,
    "reinforce": _reinforce,
    "cispo": _cispo,
    "cispo_capped": _cispo_capped,
    "dis": _dis,
    "sign_bands": _sign_bands,
    "sapo": _sapo,
    "gmpo": _gmpo,
    "dppo": _dppo,
    "vespo": _vespo,
    "dro": _dro,
    "mirror_descent": _mirror_descent,
    "clip_cov": _clip_cov,
    "kl_cov": _kl_cov,
}
"""-> loss per token [B, T], or [B, 1] where a completion has one loss."""
