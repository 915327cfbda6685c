"""pass@k of held-out problems, with a sampler and verdicts that are known."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.passk import mean_interval, pass_at_k
from rlvr_jax.data.prompts import EncodedPrompts
from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.train import evaluation as module
from rlvr_jax.train.batches import PromptBatches
from rlvr_jax.train.evaluation import EVALUATION_STREAM, Evaluation, as_metrics
from tests import tiny

CORRECT = np.array([0, 1, 3, 6, 2])
"""Of 6 completions of problem i."""
N, SIZE = 6, 2


class Stubs:
    """A sampler whose lengths name the problem, and a scorer that knows CORRECT."""

    def __init__(self):
        self.keys, self.rows = [], []

    def sample(self, graphdef, parameters, tokens, lengths, keys, *, sampling):
        self.keys.append(keys)
        problem = jnp.broadcast_to(tokens[:, -1:] - 10, keys.shape)
        return types.SimpleNamespace(
            completion_tokens=jnp.zeros((*keys.shape, 3), jnp.int32),
            completion_lengths=problem + 1,
            ended=problem != 3,
        )

    def score(self, indices, tokens, lengths, ended):
        before = {i for row in self.rows for i in row}
        seen = [i in before for i in indices]
        self.rows.append(indices.tolist())
        # A problem that fills a batch up does better than before: nobody may count it.
        counts = np.where(seen, N, CORRECT[indices])
        solved = np.arange(N) < counts[:, None]
        return types.SimpleNamespace(correct=solved.astype(np.float32))

    def strict(self, indices, tokens, lengths, ended):
        """Accepts one completion less of each problem."""
        solved = np.arange(N) < CORRECT[indices][:, None] - 1
        return types.SimpleNamespace(correct=solved.astype(np.float32))


def evaluate(monkeypatch, seed=0, strict=False):
    stubs = Stubs()
    monkeypatch.setattr(module, "sample", stubs.sample)
    # Stubs in place of what the fields' types name.
    evaluation = object.__new__(Evaluation)
    problems = [Problem(str(i), "q", "a", "exact", {}) for i in range(len(CORRECT))]
    tokens = [[10 + i] for i in range(len(CORRECT))]
    mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    fields = {
        "graphdef": None,
        "prompts": EncodedPrompts(problems, tokens, 0),
        "batches": PromptBatches(tokens, SIZE, 4, 0, N, mesh),
        "scorer": stubs.score,
        "sampling": Sampling(N, 3, (1,)),
        "seed": seed,
        "strict": stubs.strict if strict else None,
    }
    for name, value in fields.items():
        object.__setattr__(evaluation, name, value)
    return evaluation(tiny.policy()[1]), stubs


def test_pass_at_k_counts_every_problem_once(monkeypatch):
    """5 problems in batches of 2: the sixth place is filled up and not counted."""
    (scores, metrics), stubs = evaluate(monkeypatch)
    assert stubs.rows == [[0, 1], [2, 3], [4, 0]]
    assert list(scores) == ["pass@1", "pass@2", "pass@4", "pass@6"]
    for k in (1, 2, 4, 6):
        expected = mean_interval(pass_at_k(N, CORRECT, k))
        assert scores[f"pass@{k}"] == pytest.approx(expected, abs=1e-12)
    # By hand: (0 + 1 + 3 + 6 + 2) / 30, and 4 of 5 problems solved at least once.
    assert scores["pass@1"][0] == pytest.approx(0.4)
    assert scores["pass@6"][0] == pytest.approx(0.8)
    # Lengths 1 to 5; problem 3 is cut.
    assert metrics == {
        "evaluation/truncated_share": pytest.approx(0.2),
        "evaluation/length_mean": pytest.approx(3.0),
    }


def test_every_evaluation_draws_the_same_numbers(monkeypatch):
    """So that scores before and after differ by the policy alone."""
    first, one = evaluate(monkeypatch)
    second, two = evaluate(monkeypatch)
    assert first == second
    _, other = evaluate(monkeypatch, seed=1)

    def data(stubs):
        return [np.asarray(jax.random.key_data(keys)) for keys in stubs.keys]

    for a, b, c in zip(data(one), data(two), data(other), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
    expected = module.row_keys(0, EVALUATION_STREAM, jnp.array([2, 3]), N)
    np.testing.assert_array_equal(data(one)[1], jax.random.key_data(expected))


def test_a_stricter_verifier_side_by_side(monkeypatch):
    """Of 12 accepted completions of 30 it rejects one for each of 4 solved problems."""
    (scores, metrics), _ = evaluate(monkeypatch, strict=True)
    (plain, _), _ = evaluate(monkeypatch)
    assert {name: scores[name] for name in plain} == plain
    assert scores["strict_pass@1"][0] == pytest.approx(8 / 30)
    assert scores["strict_pass@6"][0] == pytest.approx(3 / 5)
    assert metrics["evaluation/strict_gap"] == pytest.approx(4 / 30)
    assert metrics["evaluation/strict_rejects"] == pytest.approx(4 / 12)


def test_scores_as_flat_metrics():
    assert as_metrics({"pass@1": (0.5, 0.25, 0.75), "pass@8": (1.0, 0.9, 1.0)}) == {
        "evaluation/pass@1": 0.5,
        "evaluation/pass@1_low": 0.25,
        "evaluation/pass@1_high": 0.75,
        "evaluation/pass@8": 1.0,
        "evaluation/pass@8_low": 0.9,
        "evaluation/pass@8_high": 1.0,
    }
