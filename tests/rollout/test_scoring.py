"""From tokens to rewards: what is decoded, what verdicts pay, when a run stops."""

import numpy as np
import pytest

from rlvr_jax.config import RewardConfig
from rlvr_jax.data.char_tokenizer import CharTokenizer
from rlvr_jax.data.rows import Problem
from rlvr_jax.rollout.scoring import Scorer, VerifierFailure
from rlvr_jax.verifiers.base import Status, Verdict
from rlvr_jax.verifiers.pool import VerifierPool

TOKENIZER = CharTokenizer()
PROBLEMS = [
    Problem(str(i), f"question {i}", str(i), "exact", {"level": i}) for i in range(5)
]
READS = {"exact": "answer", "format:boxed": "completion"}


class Pool(VerifierPool):
    """Without processes. "half" is worth 0.5, "crash" is a crash, and so on."""

    def __init__(self):
        self.samples = []

    def verify(self, samples):
        self.samples += samples
        return [self._judge(sample) for sample in samples]

    @staticmethod
    def _judge(sample):
        text = sample.completion
        if sample.verifier.startswith("format:"):
            paid = "[" in text
            return Verdict(Status.CORRECT if paid else Status.WRONG, float(paid))
        if text in ("crash", "timeout", "unparseable"):
            return Verdict(Status(text), 0.0, f"{text} of {sample.answer}")
        if text == "half":
            return Verdict(Status.WRONG, 0.5)
        right = text.strip("[]") == sample.answer
        return Verdict(Status.CORRECT if right else Status.WRONG, float(right))


def score(texts, indices, *, cut=(), pool=None, **reward):
    """Scores P x G texts; those in `cut` have no end token."""
    ids = [[*TOKENIZER.encode(t), *([] if t in cut else [1])] for t in texts]
    groups = len(texts) // len(indices)
    tokens = np.full((len(texts), 16), 7, np.int32)  # 7 past the end: never read
    for row, each in zip(tokens, ids, strict=True):
        row[: len(each)] = each
    shape = (len(indices), groups)
    scorer = Scorer(
        tokenizer=TOKENIZER,
        problems=PROBLEMS,
        reward=RewardConfig(**reward),
        reads=READS,
        pool=pool or Pool(),
    )
    return scorer(
        np.array(indices),
        tokens.reshape(*shape, -1),
        np.array([len(each) for each in ids], np.int32).reshape(shape),
        np.array([t not in cut for t in texts]).reshape(shape),
    )


def test_each_completion_is_judged_against_its_own_problem():
    """Row by row: problem 3 for the first two, problem 1 for the last two."""
    pool = Pool()
    scores = score(["3", "1", "1", "3"], [3, 1], pool=pool)
    np.testing.assert_array_equal(scores.rewards, [[1, 0], [1, 0]])
    np.testing.assert_array_equal(scores.correct, [[1, 0], [1, 0]])
    assert scores.rewards.dtype == scores.correct.dtype == np.float32
    assert [s.answer for s in pool.samples] == ["3", "3", "1", "1"]
    assert pool.samples[2].question == "question 1"
    assert pool.samples[2].meta == {"level": 1}
    assert {s.verifier for s in pool.samples} == {"exact"}


def test_the_end_token_is_no_part_of_the_text_and_a_cut_has_none():
    """A completion that was cut keeps its last token; padding is never read."""
    texts = ["3", "12", "ab", ""]
    scores = score(texts, [3, 1], cut=("12",))
    assert scores.texts == texts
    assert [v.status for v in scores.verdicts] == ["correct", "wrong", "wrong", "wrong"]


def test_partial_credit_and_plus_minus_one():
    """wrong + (correct - wrong) * score: 1, 0 and -1 for scores 1, 0.5 and 0."""
    texts = ["3", "half", "x", "unparseable"]
    scores = score(texts, [3], correct=1.0, wrong=-1.0)
    np.testing.assert_array_equal(scores.rewards, [[1, 0, -1, -1]])
    np.testing.assert_array_equal(scores.correct, [[1, 0, 0, 0]])
    plain = score(texts, [3])
    np.testing.assert_array_equal(plain.rewards, [[1, 0.5, 0, 0]])


def test_the_format_is_paid_beside_the_answer():
    """+-1 and 0.25 for brackets: [3] 1.25, 3 1, [x] -0.75, x -1."""
    pool = Pool()
    settings = {"correct": 1.0, "wrong": -1.0, "format": "boxed", "format_weight": 0.25}
    scores = score(["[3]", "3", "[x]", "x"], [3], pool=pool, **settings)
    np.testing.assert_array_equal(scores.rewards, [[1.25, 1, -0.75, -1]])
    np.testing.assert_array_equal(scores.correct, [[1, 1, 0, 0]])
    assert [s.verifier for s in pool.samples] == ["exact"] * 4 + ["format:boxed"] * 4
    assert scores.metrics["format/rate"] == 0.5
    assert len(scores.verdicts) == 4


def test_metrics_are_shares_of_the_answers_verdicts():
    scores = score(["3", "x", "unparseable", "crash"], [3], max_failure_rate=0.5)
    assert {n: v for n, v in scores.metrics.items() if v} == {
        "verifier/correct": 0.25,
        "verifier/wrong": 0.25,
        "verifier/unparseable": 0.25,
        "verifier/crash": 0.25,
    }
    assert "format/rate" not in scores.metrics
    assert {f"verifier/{status}" for status in Status} <= set(scores.metrics)


def test_the_share_whose_reasoning_was_read():
    """Only the format verifier of READS reads the whole completion."""
    name = "verifier/read_reasoning_share"
    assert score(["3", "x"], [3]).metrics[name] == 0
    paid = score(["3", "x"], [3], format="boxed", format_weight=0.1)
    assert paid.metrics[name] == 1


def test_too_many_failures_stop_the_run_with_an_example():
    """2 of 4: the limit itself passes, anything below it does not."""
    texts = ["3", "timeout", "crash", "x"]
    assert score(texts, [3], max_failure_rate=0.5).rewards.sum() == 1
    with pytest.raises(VerifierFailure) as caught:
        score(texts, [3], max_failure_rate=0.4)
    assert str(caught.value) == (
        "verifiers: 50% of 4 checks crashed or timed out, more than "
        "reward.max_failure_rate=40%; for example timeout: timeout of 3. Mend the "
        "verifier, raise reward.timeout_s, or raise the limit."
    )


def test_an_unparseable_completion_is_no_failure_of_the_verifier():
    scores = score(["unparseable"] * 4, [3], max_failure_rate=0.0)
    assert scores.metrics["verifier/unparseable"] == 1
