"""Claims that lack something, and gains whose cause was planted."""

import numpy as np
import pytest

from rlvr_jax.analysis.claims import (
    BASELINES,
    CONFOUNDS,
    HYPOTHESES,
    MINIMUM_BAR,
    missing_design,
    missing_evidence,
    separate_causes,
)

CLAIM = {
    "model_families": ["Qwen2.5", "Llama-3.1"],
    "uncontaminated_benchmark": ["RandomCalculation"],
    "spurious_baseline": ["random", "format"],
    "same_budget": True,
    "label_noise": True,
    "relabelled": True,
}


def test_a_complete_claim_passes():
    """SPU-14, DIAG-25."""
    assert missing_evidence(CLAIM) == []
    # Labels have to be verified again in studies of noise alone.
    assert missing_evidence(CLAIM | {"label_noise": False, "relabelled": False}) == []


@pytest.mark.parametrize(
    ("change", "item"),
    [
        ({"model_families": ["Qwen2.5"]}, "model_families"),
        ({"model_families": ["Qwen2.5", "Qwen2.5"]}, "model_families"),
        ({"uncontaminated_benchmark": []}, "uncontaminated_benchmark"),
        ({"spurious_baseline": []}, "spurious_baseline"),
        ({"same_budget": False}, "spurious_baseline"),
        ({"relabelled": False}, "relabelled"),
    ],
)
def test_each_missing_item_fails(change, item):
    """SPU-14, DIAG-25: any one of the bar."""
    found = missing_evidence(CLAIM | change)
    assert found == [f"{item}: {MINIMUM_BAR[item]}"]


DESIGN = {
    "null_result": "pass@128 of the arm lies within the base's band",
    "falsifying_baseline": "random",
    "arms": list(CONFOUNDS),
}


def test_a_falsifiable_experiment_passes():
    """DIAG-12, DIAG-13."""
    for baseline in BASELINES:
        assert missing_design(DESIGN | {"falsifying_baseline": baseline}) == []


@pytest.mark.parametrize("arm", CONFOUNDS)
def test_each_confound_needs_an_arm(arm):
    """DIAG-13: base priors, contamination, verifier leniency, aggregation."""
    others = [name for name in CONFOUNDS if name != arm]
    found = missing_design(DESIGN | {"arms": others})
    assert [line.split(":")[0] for line in found] == [arm]


@pytest.mark.parametrize("item", ["null_result", "falsifying_baseline"])
def test_a_null_result_and_a_baseline_are_named(item):
    """DIAG-12: neither an empty word nor a baseline that cannot refute."""
    for value in ("", "   ", None, "a better prompt" if "baseline" in item else ""):
        found = missing_design(DESIGN | {item: value})
        assert [line.split(":")[0] for line in found] == [item]


GAIN = 0.21


def world(cause: str, rng: np.random.Generator) -> dict[str, float]:
    """What the experiments show if one cause makes the gain; noise of 2 points."""
    seen = {
        "gain": GAIN,
        "clip_off": 0.0 if cause == "clip bias" else GAIN,
        # A mode or a leak of one family does nothing for another one.
        "other_family": 0.0 if cause in ("latent mode", "contamination") else GAIN,
        "fresh": 0.0 if cause == "contamination" else GAIN,
        "relabelled": 0.0 if cause == "labels" else GAIN,
        "format": GAIN if cause == "format" else 0.0,
        "given_answer": 0.0 if cause == "format" else GAIN,
        "code_share": 0.3 if cause == "latent mode" else 0.0,
    }
    return {k: v + rng.normal(0, 0.02) * (k != "gain") for k, v in seen.items()}


@pytest.mark.parametrize("cause", HYPOTHESES)
def test_the_planted_cause_is_identified(cause):
    """SPU-15: 50 worlds per cause; the noise is 10 % of the gain, the margin 33 %."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = separate_causes(world(cause, rng))
        assert found.pop(cause) == "supported"
        assert set(found.values()) == {"ruled out"}


def test_what_was_not_run_is_not_decided():
    """SPU-15: no experiment, no verdict; half of a gain is open."""
    assert set(separate_causes({"gain": 0.2}).values()) == {"not tested"}
    found = separate_causes({"gain": 0.2, "clip_off": 0.1, "code_share": 0.0})
    assert found["clip bias"] == "open"
    assert found["latent mode"] == "ruled out"  # the mode did not rise
    assert separate_causes({"gain": 0.2, "code_share": 0.3})["latent mode"] == (
        "not tested"
    )
    with pytest.raises(ValueError, match="a gain to explain"):
        separate_causes({"gain": 0.0})
