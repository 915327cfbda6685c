"""Before a gain is believed: what has to be shown, and which cause explains it."""

from collections.abc import Mapping
from typing import Any

MINIMUM_BAR = {
    "model_families": "at least two model families; one may be special",
    "uncontaminated_benchmark": "a benchmark that is decontaminated or newer than the "
    "models",
    "spurious_baseline": "a spurious reward (random, format) at the same budget",
    "relabelled": "labels verified again by an independent solver, in studies of noise",
}
"""What a claim that RL taught something needs (Seed A section 7)."""

FALSIFIABLE = {
    "null_result": "the result that would refute the claim, written down before",
    "falsifying_baseline": "an arm that would show it: random reward, majority reward "
    "or distillation at equal compute",
}
"""What an experiment states before it runs."""

CONFOUNDS = {
    "base_priors": "what the base does by itself: pass@k, templates",
    "contamination": "whether the problems were seen before",
    "verifier_leniency": "a stricter verifier on the same completions",
    "aggregation": "the same run with another loss aggregation",
}
"""Arms that separate a method from what else may have moved the score."""

BASELINES = ("random", "majority", "distillation")

HYPOTHESES = {
    "latent mode": "RL raises a mode that the base already has (code reasoning)",
    "clip bias": "the asymmetric clip sharpens the policy whatever is rewarded",
    "contamination": "the benchmark was in the pretraining data",
    "format": "what is learned is the form of the answer",
    "labels": "the labels called wrong are often right",
}

_SMALL, _LARGE = 1 / 3, 2 / 3


def missing_evidence(claim: Mapping[str, Any]) -> list[str]:
    """What a claim of a gain still lacks of `MINIMUM_BAR`.

    Args:
      claim: "model_families" and "uncontaminated_benchmark" (lists of names),
        "spurious_baseline" (names of arms with "same_budget": true beside), and, where
        "label_noise" is true, "relabelled": true.

    Returns:
      sentences, empty when nothing is missing.

    Example:
      >>> missing_evidence({"model_families": ["qwen", "llama"]})[0][:24]
      'uncontaminated_benchmark'
    """
    lacking = []
    if len(set(claim.get("model_families") or ())) < 2:
        lacking.append("model_families")
    if not claim.get("uncontaminated_benchmark"):
        lacking.append("uncontaminated_benchmark")
    if not (claim.get("spurious_baseline") and claim.get("same_budget")):
        lacking.append("spurious_baseline")
    if claim.get("label_noise") and not claim.get("relabelled"):
        lacking.append("relabelled")
    return [f"{name}: {MINIMUM_BAR[name]}" for name in lacking]


def missing_design(experiment: Mapping[str, Any]) -> list[str]:
    """What an experiment lacks of `FALSIFIABLE` and `CONFOUNDS`.

    Args:
      experiment: "null_result" (a sentence), "falsifying_baseline" (one of
        `BASELINES`), and "arms" (names of `CONFOUNDS` that it has).

    Returns:
      sentences, empty when nothing is missing.
    """
    lacking = []
    if not str(experiment.get("null_result") or "").strip():
        lacking.append(f"null_result: {FALSIFIABLE['null_result']}")
    if experiment.get("falsifying_baseline") not in BASELINES:
        lacking.append(f"falsifying_baseline: {FALSIFIABLE['falsifying_baseline']}")
    arms = set(experiment.get("arms") or ())
    return lacking + [
        f"{name}: {words}" for name, words in CONFOUNDS.items() if name not in arms
    ]


def separate_causes(observed: Mapping[str, float]) -> dict[str, str]:
    """Which of `HYPOTHESES` explain the gain of a spurious reward.

    An experiment takes one cause away; if the gain goes with it, that cause is
    supported. A third of the gain or less left is "gone", two thirds or more is
    "there", and between them the answer is "open".

    Args:
      observed: "gain" of the spurious arm, in accuracy, and as far as run: "clip_off",
        "other_family", "fresh" (problems), "relabelled" (gain against mended labels),
        "format" (gain of a format-only reward), "given_answer" (change of the accuracy
        among completions with an answer), "code_share" (change of the share that
        reasons in code).

    Returns:
      hypothesis -> "supported", "ruled out", "open" or "not tested".

    Raises:
      ValueError: no gain above 0, so there is nothing to explain.

    Example:
      >>> separate_causes({"gain": 0.2, "clip_off": 0.0, "fresh": 0.19})["clip bias"]
      'supported'
    """
    gain = observed.get("gain", 0.0)
    if gain <= 0:
        raise ValueError(f"separate_causes: needs a gain to explain, got {gain}.")

    def gone(name: str) -> float | None:
        return None if name not in observed else 1 - observed[name] / gain

    def there(name: str) -> float | None:
        return None if name not in observed else observed[name] / gain

    unmoved = gone("given_answer")
    verdicts = {
        # The mode has to rise, and to be missing elsewhere.
        "latent mode": _least(there("code_share"), gone("other_family")),
        "clip bias": _least(gone("clip_off")),
        "contamination": _least(gone("fresh")),
        "format": _least(there("format"), unmoved),
        "labels": _least(gone("relabelled")),
    }
    return {name: _verdict(strength) for name, strength in verdicts.items()}


def _least(*strengths: float | None) -> float | None:
    """All signs must be there: the weakest decides; None where one was not looked at.

    A sign that is plainly absent decides without the others.
    """
    known = [strength for strength in strengths if strength is not None]
    if known and min(known) <= _SMALL:
        return min(known)
    return min(known) if len(known) == len(strengths) else None


def _verdict(strength: float | None) -> str:
    if strength is None:
        return "not tested"
    if strength >= _LARGE:
        return "supported"
    return "ruled out" if strength <= _SMALL else "open"
