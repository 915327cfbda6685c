"""Countdown paid as TinyZero pays it, by parts of the reward."""

import numpy as np
import pytest

from rlvr_jax.config import RewardConfig
from rlvr_jax.rollout.rewards import part_values, parts_of
from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.registry import resolve

PARTS = "0.9*answer if format:answer_tag, 0.1*format:answer_tag"
REFERENCE = {"target": 24, "numbers": [2, 3, 4]}


@pytest.mark.parametrize(
    ("completion", "reward"),
    [
        ("2 * 3 = 6, times 4.\n<answer>2 * 3 * 4</answer>", 1.0),
        ("<answer>2 * 3 + 4</answer>", 0.1),  # another value
        ("<answer>4 * 6</answer>", 0.1),  # another number
        ("<answer>twenty-four</answer>", 0.1),  # no expression
        ("2 * 3 * 4", 0.0),  # right, but not in the tag
        ("", 0.0),
    ],
)
def test_one_for_right_a_tenth_for_a_tag_nothing_else(completion, reward):
    """DATA-19: 1.0 / 0.1 / 0, the published scores (FORMULAS F-61)."""
    scores, passed = {}, {}
    for name, verifier in (
        ("answer", "countdown"),
        ("format:answer_tag", "format:answer_tag"),
    ):
        verdict = apply(resolve(verifier), Sample(verifier, completion, REFERENCE))
        scores[name] = np.full((1, 1), verdict.score, np.float32)
        passed[name] = np.full((1, 1), verdict.status is Status.CORRECT)
    everywhere = np.ones((1, 1), bool)
    paid = sum(
        part.weight * part_values(part, scores, passed, everywhere)
        for part in parts_of(RewardConfig(parts=PARTS))
    )
    np.testing.assert_allclose(paid, reward, atol=1e-7)
