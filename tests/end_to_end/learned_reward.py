"""A reward model as a verifier of one's own: it scores texts, and checks nothing."""

import json
import math
import pathlib

from rlvr_jax.verifiers.base import Sample

WEIGHTS = pathlib.Path(__file__).with_name("weights.json")


def features(text: str) -> list[float]:
    """What the model sees of an answer: no sum among it."""
    digits = sum(character.isdigit() for character in text)
    return [float(digits > 0), digits / 4, len(text) / 4]


def score(sample: Sample) -> float:
    """sigmoid(w . features), learned from comparisons; in (0, 1)."""
    weights = json.loads(WEIGHTS.read_text())
    found = features(sample.completion)
    return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, found, strict=True))))
