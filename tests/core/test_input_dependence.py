"""RAGEN-2's two extremes: a template, and reasoning that names its question."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.input_dependence import input_dependence

pytestmark = pytest.mark.usefixtures("x64")


def test_a_template_says_nothing_about_its_question():
    """DIAG-06: the same score under every question: MI 0, accuracy 1/P."""
    rng = np.random.default_rng(0)
    scores = np.repeat(rng.normal(-50, 5, (8, 4, 1)), 8, axis=2)
    found = input_dependence(jnp.array(scores), jnp.full((8, 4), 30))
    np.testing.assert_allclose(found.mutual_information, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.retrieval_accuracy, 1 / 8)
    np.testing.assert_allclose(found.z_score, 0.0, atol=1e-9)


def test_a_reasoning_that_names_its_question_has_log_p_nats():
    """DIAG-06: impossible under any other question: MI -> log P / |Z|, accuracy 1."""
    questions, length = 8, 10
    scores = np.full((questions, 3, questions), -1e6)
    for i in range(questions):
        scores[i, :, i] = -20.0
    found = input_dependence(jnp.array(scores), jnp.full((questions, 3), length))
    expected = np.log(questions) / length
    np.testing.assert_allclose(found.mutual_information, expected, rtol=1e-9)
    np.testing.assert_allclose(found.retrieval_accuracy, 1.0)


def test_the_figures_are_their_formulas():
    rng = np.random.default_rng(1)
    scores, lengths = rng.normal(-9, 2, (4, 3, 4)), rng.integers(1, 9, (4, 3))
    found = input_dependence(jnp.array(scores), jnp.array(lengths))
    matched, marginal, hits = [], [], []
    for i in range(4):
        for k in range(3):
            row = scores[i, k]
            matched.append(row[i] / lengths[i, k])
            marginal.append(np.log(np.exp(row).mean()) / lengths[i, k])
            hits.append(row.argmax() == i)
    gap = np.array(matched) - np.array(marginal)
    np.testing.assert_allclose(found.mutual_information, gap.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.retrieval_accuracy, np.mean(hits))
    z = (gap / (np.std(marginal) + 1e-3)).mean()
    np.testing.assert_allclose(found.z_score, z, rtol=1e-12)
