"""Input dependence of policies that do, or do not, read their question."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.train.cross_questions import CrossQuestions
from rlvr_jax.types import Rollouts
from tests import bigram, tiny

P, K = 8, 2
LAST = np.arange(10, 10 + P)
"""Each question's last token, which is all that a bigram reads."""


def measured(embedding, head, completions, used=P):
    decoder = bigram.Bigram(nnx.Rngs(0))
    decoder.embedding[...], decoder.head[...] = jnp.array(embedding), jnp.array(head)
    graphdef, parameters = nnx.split(decoder)
    rollouts = Rollouts(
        prompt_tokens=jnp.tile(jnp.array(LAST)[:, None], (1, 2)),
        prompt_lengths=jnp.full(P, 2),
        completion_tokens=jnp.array(completions),
        completion_lengths=jnp.ones((P, K), int),
        ended=jnp.ones((P, K), bool),
        rollout_logprobs=jnp.zeros(completions.shape),
        group_id=jnp.tile(jnp.arange(P)[:, None], (1, K)),
    )
    plan = tiny.plan(graphdef, temperature=0.7, micro_batch_size=3)
    return CrossQuestions.of(plan, K)(parameters, rollouts, used)


def vectors(scale):
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(tiny.VOCAB, 8))
    return scale * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def echo():
    """Completions of one token that repeats the question's; what follows is padding."""
    first = np.tile(LAST[:, None], (1, K))
    return np.stack([first, np.full((P, K), 50)], axis=-1)


def test_a_template_says_nothing_about_its_question():
    """DIAG-06: logits that no question moves: MI 0, accuracy 1/P, entropy log V."""
    found = measured(np.zeros((tiny.VOCAB, 8)), vectors(1.0), echo())
    assert found["evaluation/mutual_information"] == pytest.approx(0, abs=1e-6)
    assert found["evaluation/retrieval_accuracy"] == pytest.approx(1 / P)
    assert found["evaluation/mutual_information_z"] == pytest.approx(0, abs=1e-3)


def test_a_policy_that_repeats_its_question_has_log_p_nats():
    """DIAG-06: near-certain copies of one token: accuracy 1, MI log P."""
    found = measured(vectors(30.0), vectors(1.0), echo())
    assert found["evaluation/retrieval_accuracy"] == 1.0
    assert found["evaluation/mutual_information"] == pytest.approx(np.log(P), abs=0.05)


@pytest.mark.parametrize("used", [P, 5])
def test_figures_are_those_of_numpy(used):
    """DIAG-06: expected from log-softmax in float64, over the questions that count."""
    embedding, head = vectors(2.0), vectors(1.0)
    logits = embedding[LAST[:used]] @ head.T
    logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    scores = logprobs[:, LAST[:used]].T  # [question of the completion, question]
    matched = np.diag(scores)
    marginal = np.log(np.exp(scores).mean(axis=1))
    found = measured(embedding, head, echo(), used)
    np.testing.assert_allclose(
        found["evaluation/mutual_information"], (matched - marginal).mean(), rtol=1e-4
    )
    own = scores.argmax(axis=1) == np.arange(used)
    assert found["evaluation/retrieval_accuracy"] == pytest.approx(own.mean())
    z = (matched - marginal) / (marginal.std() + 1e-3)
    np.testing.assert_allclose(
        found["evaluation/mutual_information_z"], z.mean(), rtol=1e-3
    )


def test_micro_batches_divide_over_the_devices():
    """Of 8 devices: 8 rows of one question do; of two questions with 4 rows each,
    neither 2 nor 4 does, and all rows are taken at once."""
    graphdef = tiny.policy()[0]
    plan = tiny.plan(graphdef, mesh_shape=(8, 1, 1), micro_batch_size=8)
    assert CrossQuestions.of(plan, 8).plan.batch.micro_batch_size == 8
    assert CrossQuestions.of(plan, 4).plan.batch.micro_batch_size == 0
