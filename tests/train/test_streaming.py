"""Groups that are verified one by one are judged as one step."""

import types

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from rlvr_jax.config import RewardConfig
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.passage import EngineStats
from rlvr_jax.rollout.scoring import Scorer
from rlvr_jax.train.streaming import stream
from tests.rollout.test_scoring import PROBLEMS, READS, TOKENIZER, Pool
from tests.train.test_collect import rollouts


class Written(Engine):
    """An engine that writes given texts."""

    def __init__(self, texts):
        limit = types.SimpleNamespace(max_completion_tokens=8)
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "sampling", limit)

    def __call__(self, weights, tokens, lengths, keys, on_finished):
        for number, text in enumerate(self.texts):
            on_finished(number, np.array([*TOKENIZER.encode(text), 1]), True)
        return rollouts([3, 1]), EngineStats()


def test_one_timeout_in_a_group_is_one_in_the_step():
    """1 of 4 completions of a group, 1 of 8 of the step: below the limit of 20%."""
    scorer = Scorer(TOKENIZER, PROBLEMS, RewardConfig(), READS, Pool(), (1,))
    texts = ["timeout", "3", "3", "x", "1", "1", "1", "x"]
    prompts, ones = np.zeros((2, 1), np.int32), np.ones(2, np.int32)
    keys = jnp.stack([jax.random.split(jax.random.key(0), 4)] * 2)
    streamed = stream(
        Written(texts), scorer, nnx.State({}), np.array([3, 1]), prompts, ones, keys
    )
    scores = streamed.scores
    np.testing.assert_array_equal(scores.correct, [[0, 1, 1, 0], [1, 1, 1, 0]])
    assert scores.texts == texts
    assert (scores.checks["answer"].count, scores.checks["answer"].failed) == (8, 1)
    assert scores.metrics["verifier/timeout"] == 1 / 8
