"""The noise section of a config at work: true scores in, paid scores out."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float32

from rlvr_jax.config import NoiseConfig
from rlvr_jax.verifiers import spurious
from rlvr_jax.verifiers.base import Status, Verdict
from rlvr_jax.verifiers.noise import Draws, Noise, matches, noisy_scores

_FORMAT = "format:boxed"


def needed_verifier(settings: NoiseConfig) -> str:
    """The verifier that `noise.pays` reads; "" for none."""
    if settings.pays in ("majority", "incorrect"):
        return spurious.KEY_VERIFIER
    return _FORMAT if settings.pays == "format" else ""


def paid_scores(
    settings: NoiseConfig,
    true: Float32[np.ndarray, "P G"],
    judged: Mapping[str, Mapping[int, Verdict]],
    texts: Sequence[str],
    ids: Sequence[str],
) -> Float32[np.ndarray, "P G"]:
    """What the answers are paid for, group by group: another rule, then the errors.

    Args:
      settings: which.
      true: scores of the row's own verifier.
      judged: verdicts by verifier and place; those of `needed_verifier` are read.
      texts: the P * G completions.
      ids: of the P problems.
    """
    noise = _noise(settings)
    if settings.pays == "verdict" and not noise.is_active:
        return true
    generations = true.shape[1]
    paid = np.empty_like(true)
    for row, problem in enumerate(ids):
        places = range(row * generations, (row + 1) * generations)
        group = [texts[i] for i in places]
        scores = _by_rule(settings, true[row].tolist(), judged, places, group, problem)
        paid[row] = noisy_scores(scores, group, problem, noise)
    return paid


def noise_metrics(
    settings: NoiseConfig,
    true: Float32[np.ndarray, "P G"],
    paid: Float32[np.ndarray, "P G"],
    texts: Sequence[str],
) -> dict[str, float]:
    """How often what is paid is not the verdict, and how the patterns are doing.

    `noise/paid_correct_share` verifies the labels again: the share of the paid
    completions that are right after all.

    `noise/pattern_advantage` is the mean of (true score - its group's mean) over the
    completions that a pattern matches: below 0, they are the worse ones, and what an
    accepted pattern pays is against the truth.
    """
    noise = _noise(settings)
    if settings.pays == "verdict" and not noise.is_active:
        return {}
    right = true >= 1
    changed = paid != true
    metrics = {
        "noise/changed_share": float(changed.mean()),
        "noise/false_positive_share": float((changed & ~right).mean()),
        "noise/false_negative_share": float((changed & right).mean()),
        "noise/paid_share": float((paid > 0).mean()),
    }
    if (paid > 0).any():
        metrics["noise/paid_correct_share"] = float(right[paid > 0].mean())
    if noise.accept_pattern or noise.reject_pattern:
        hit = np.array([matches(text, noise) for text in texts]).reshape(true.shape)
        metrics["noise/pattern_share"] = float(hit.mean())
        if hit.any():
            centred = true - true.mean(axis=1, keepdims=True)
            metrics["noise/pattern_advantage"] = float(centred[hit].mean())
    return metrics


def _noise(settings: NoiseConfig) -> Noise:
    return Noise(
        settings.false_positive_rate,
        settings.false_negative_rate,
        settings.group_flip_rate,
        settings.accept_pattern,
        settings.reject_pattern,
        settings.seed,
    )


def _by_rule(settings, true, judged, places, group, problem) -> list[float]:
    """The scores of one group under `noise.pays`."""
    if settings.pays == "verdict":
        return true
    if settings.pays == "random":
        return spurious.random_scores(
            group, problem, rate=settings.random_rate, seed=settings.seed
        )
    verdicts = [judged[needed_verifier(settings)][i] for i in places]
    if settings.pays == "format":
        return [verdict.score for verdict in verdicts]
    keys = [v.detail if v.status is Status.CORRECT else None for v in verdicts]
    if settings.pays == "majority":
        return spurious.majority_scores(keys)
    # One draw per problem: a label stays what it is for the whole run.
    drawn = Draws(settings.seed, problem, ()).uniform("label")
    mislabelled = drawn < settings.mislabelled_rate
    right = [score >= 1 and not mislabelled for score in true]
    return spurious.incorrect_scores(keys, right)
