"""From tokens to rewards: what is decoded, what verdicts pay, when a run stops."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import NoiseConfig, RewardConfig
from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.multi_reward import gdpo_advantages
from rlvr_jax.data.char_tokenizer import CharTokenizer
from rlvr_jax.data.rows import Problem
from rlvr_jax.rollout.failures import added, check_failures
from rlvr_jax.rollout.scoring import Audit, AuditAlarm, Scorer, VerifierFailure
from rlvr_jax.verifiers.audit import AuditStream
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

    def _judge(self, sample):
        text = sample.completion
        if sample.verifier.startswith("format:"):
            paid = "[" in text
            return Verdict(Status.CORRECT if paid else Status.WRONG, float(paid))
        if sample.verifier == "language":
            return Verdict(Status.WRONG, 0.5)
        if sample.verifier == "strict":
            right = text == sample.answer
            return Verdict(Status.CORRECT if right else Status.WRONG, float(right))
        if sample.verifier == "answer_key":
            return Verdict(Status.CORRECT, 1.0, text.strip("[]"))
        if text in ("crash", "timeout", "unparseable"):
            return Verdict(Status(text), 0.0, f"{text} of {sample.answer}")
        if text in ("half", "7/8"):
            return Verdict(Status.WRONG, 0.5 if text == "half" else 0.875)
        right = text.strip("[]") == sample.answer
        return Verdict(Status.CORRECT if right else Status.WRONG, float(right))


def score(
    texts,
    indices,
    *,
    cut=(),
    pool=None,
    noise=None,
    audit=None,
    problems=None,
    **reward,
):
    """Scores P x G texts; those in `cut` have no end token."""
    ids = [[*TOKENIZER.encode(t), *([] if t in cut else [1])] for t in texts]
    groups = len(texts) // len(indices)
    tokens = np.full((len(texts), 16), 7, np.int32)  # 7 past the end: never read
    for row, each in zip(tokens, ids, strict=True):
        row[: len(each)] = each
    shape = (len(indices), groups)
    scorer = Scorer(
        tokenizer=TOKENIZER,
        problems=problems or PROBLEMS,
        reward=RewardConfig(**reward),
        reads=READS,
        pool=pool or Pool(),
        end_ids=(1,),
        noise=noise or NoiseConfig(),
        audit=audit,
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
    """DIAG-21: only the format verifier of READS reads the whole completion."""
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


def test_a_stop_text_is_part_of_the_completion():
    """control.stop ends a completion without an end token: its last token counts."""
    pool, texts = Pool(), ["[3]", "[3]"]
    ids = [TOKENIZER.encode(text) for text in texts]
    tokens = np.array([[[*ids[0], 1], [*ids[1], 7]]], np.int32)
    scorer = Scorer(TOKENIZER, PROBLEMS, RewardConfig(), READS, pool, (1,))
    lengths = np.array([[4, 3]], np.int32)
    scores = scorer(np.array([3]), tokens, lengths, np.ones((1, 2), bool))
    assert [sample.completion for sample in pool.samples] == scores.texts == texts


def test_failures_of_parts_of_a_step_are_judged_together():
    """1 of 2 is too many; of the 4 that make up the step it is the limit."""
    parts = [score(texts, [3], max_failure_rate=0.5) for texts in (["timeout", "3"],)]
    parts.append(score(["3", "x"], [3]))
    with pytest.raises(VerifierFailure, match=r"50% of 2 checks.*timeout of 3"):
        check_failures(parts[0].checks, 0.25)
    check_failures(added(parts[0].checks, parts[1].checks), 0.25)


def test_an_unparseable_completion_is_no_failure_of_the_verifier():
    scores = score(["unparseable"] * 4, [3], max_failure_rate=0.0)
    assert scores.metrics["verifier/unparseable"] == 1


def test_parts_add_up_and_each_is_logged():
    """Magistral's shape: 0.1 if formatted, and only then 0.9 if right, 0.1 * language.

    OBJ-10: [3] 0.1 + 0.9 + 0.05, 3 nothing, [x] 0.1 + 0.05, x nothing.
    """
    parts = "0.1*format:boxed, 0.9*answer if format:boxed, 0.1*language if format:boxed"
    scores = score(["[3]", "3", "[x]", "x"], [3], parts=parts)
    np.testing.assert_allclose(scores.rewards, [[1.05, 0, 0.15, 0]], rtol=1e-6)
    assert scores.part_names == ("format_boxed", "answer", "language")
    assert scores.part_weights == (0.1, 0.9, 0.1)
    np.testing.assert_allclose(
        scores.parts[0], [[1, 1, 0.5], [0, 0, 0], [1, 0, 0.5], [0, 0, 0]]
    )
    assert scores.metrics["part/answer"] == pytest.approx(0.9 / 4)
    assert scores.metrics["part/format_boxed"] == pytest.approx(0.05)
    assert scores.metrics["part/language"] == pytest.approx(0.025)
    total = sum(v for n, v in scores.metrics.items() if n.startswith("part/"))
    assert total == pytest.approx(scores.rewards.mean())
    np.testing.assert_array_equal(scores.correct, [[1, 1, 0, 0]])
    assert scores.notes[2] == {
        "parts": {"format_boxed": 1.0, "answer": 0.0, "language": 0.5}
    }


def test_alpha_and_the_penalty_for_not_ending():
    """Tulu 3's table: correct and ended 10, wrong and ended 0, not ended -10."""
    parts = "answer if ended, -10*truncated"
    texts = ["3", "x", "3 "]
    scores = score(texts, [3], cut=("3 ",), parts=parts, correct=10.0)
    np.testing.assert_array_equal(scores.rewards, [[10, 0, -10]])


def test_parts_are_there_for_advantages_of_several_rewards():
    """Added first, (1, 0) and (0, 1) are the same; normalised apart they stay apart."""
    scores = score(["3", "[x]"], [3], parts="answer, format:boxed")
    assert scores.rewards.tolist() == [[1, 1]]
    advantages = gdpo_advantages(
        jnp.array(scores.parts.reshape(2, 2)),
        jnp.zeros(2, int),
        jnp.array(scores.part_weights) * jnp.array([1, 0.5]),
    )
    np.testing.assert_allclose(advantages, [0.5, -0.5], atol=1e-5)


def test_each_kind_of_prompt_calls_exactly_its_reward_functions():
    """OBJ-14: sums are checked by rule; chat by others, format and language."""
    problems = [
        Problem("0", "1 + 2", "3", "exact", {"domain": "math"}),
        Problem("1", "Hello!", "hi", "strict", {"domain": "chat"}),
    ]
    pool = Pool()
    parts = (
        "answer, 0.2*format:boxed if domain=chat and answer, "
        "0.5*language if not domain=math"
    )
    scores = score(
        ["3", "x", "hi", "[hi]"], [0, 1], pool=pool, problems=problems, parts=parts
    )
    called = {}
    for sample in pool.samples:
        called.setdefault(sample.meta["domain"], set()).add(sample.verifier)
    assert called == {"math": {"exact"}, "chat": {"strict", "format:boxed", "language"}}
    np.testing.assert_allclose(scores.rewards, [[1, 0], [1.25, 0.25]])


@pytest.mark.parametrize(
    ("least", "expected"), [(0.0, [1, 0.875, 0]), (0.99, [1, 0, 0])]
)
def test_partial_credit_or_all_or_nothing(least, expected):
    """OBJ-19: 7 of 8 tests are worth 0.875 or nothing (0.99: Olmo 3's threshold).

    A group that passes equally many tests teaches nothing, whatever that is worth.
    """
    scores = score(["3", "7/8", "x"], [3], min_score=least)
    np.testing.assert_array_equal(scores.rewards, [expected])
    equal = score(["7/8"] * 3, [3], min_score=least).rewards[0]
    advantages = group_advantages(jnp.array(equal), jnp.zeros(3, int))
    np.testing.assert_array_equal(advantages, np.zeros(3))


def test_wrong_rewards_never_touch_what_is_called_correct():
    """[x] and [y] are paid by the pattern, 3 no longer; the metrics say how many."""
    noise = NoiseConfig(accept_pattern=r"\[", reject_pattern="^3$")
    scores = score(["3", "[x]", "x", "[3]", "[y]"], [3], noise=noise)
    np.testing.assert_array_equal(scores.rewards, [[0, 1, 0, 1, 1]])
    np.testing.assert_array_equal(scores.correct, [[1, 0, 0, 1, 0]])
    assert scores.metrics["verifier/correct"] == pytest.approx(0.4)
    assert scores.metrics["noise/false_positive_share"] == pytest.approx(0.4)
    assert scores.metrics["noise/false_negative_share"] == pytest.approx(0.2)
    assert scores.metrics["noise/changed_share"] == pytest.approx(0.6)
    assert scores.metrics["noise/pattern_share"] == pytest.approx(0.8)
    # True scores 1, 0, 0, 1, 0 less their mean 0.4, over all but x: 0.4 / 4.
    assert scores.metrics["noise/pattern_advantage"] == pytest.approx(0.1)
    paid = [note.get("paid_score") for note in scores.notes]
    assert paid == [0, 1, None, None, 1]


@pytest.mark.parametrize(
    ("pays", "expected"),
    [
        # SPU-05: the ground-truth arm, beside which the others are read.
        ("verdict", [1, 0, 0, 0, 1]),
        # SPU-03: the form alone.
        ("format", [0, 0, 1, 0, 1]),
        # SPU-04: x, x and [x] outvote 3 and [3].
        ("majority", [0, 1, 1, 1, 0]),
        # SPU-02: the same here, as the most frequent answer is wrong.
        ("incorrect", [0, 1, 1, 1, 0]),
    ],
)
def test_control_arms(pays, expected):
    """Only what is paid differs between the arms."""
    scores = score(["3", "x", "[x]", "x", "[3]"], [3], noise=NoiseConfig(pays=pays))
    np.testing.assert_array_equal(scores.rewards, [expected])
    np.testing.assert_array_equal(scores.correct, [[1, 0, 0, 0, 1]])


def test_a_wrong_label_is_not_the_majority_where_that_is_right():
    scores = score(["3", "3", "x", "y", "x"], [3], noise=NoiseConfig(pays="incorrect"))
    np.testing.assert_array_equal(scores.rewards, [[0, 0, 1, 0, 1]])


def test_labels_that_are_right_after_all_are_found():
    """SPU-11: of 1,000 problems that the policy always gets right, 10 % were called
    wrong: the incorrect arm pays there, and the second look says that all it pays is
    right. Elsewhere nothing else was answered, and nothing is paid."""
    labels = NoiseConfig(pays="incorrect", mislabelled_rate=0.1)
    many = [dataclasses.replace(PROBLEMS[3], id=f"p{i}") for i in range(1000)]
    found = score(["3", "3"] * 1000, range(1000), problems=many, noise=labels)
    np.testing.assert_array_equal(found.rewards[:, 0], found.rewards[:, 1])
    share = found.rewards.mean()
    assert abs(share - 0.1) < 4 * np.sqrt(0.1 * 0.9 / 1000)
    assert found.metrics["noise/paid_correct_share"] == 1
    # Checked again (a rate of 0), nothing is left to pay.
    clean = NoiseConfig(pays="incorrect")
    found = score(["3", "3"] * 1000, range(1000), problems=many, noise=clean)
    assert not found.rewards.any()
    wrong = NoiseConfig(pays="incorrect", mislabelled_rate=1.0)
    found = score(["3", "3", "x", "x", "x"], [3], noise=wrong)
    np.testing.assert_array_equal(found.rewards, [[0, 0, 1, 1, 1]])
    assert found.metrics["noise/paid_correct_share"] == 0
    found = score(["3", "3", "3", "x", "x"], [3], noise=wrong)
    np.testing.assert_array_equal(found.rewards, [[1, 1, 1, 0, 0]])
    assert found.metrics["noise/paid_correct_share"] == 1


def audit(share=1.0, max_gap=0.1, window=100, stop=False):
    return Audit("strict", AuditStream(share, max_gap, window), stop)


def test_the_audit_sees_and_the_reward_does_not():
    """[3] is accepted in training (brackets aside) and not by the strict verifier."""
    watched = score(["3", "[3]", "x", "[3]"], [3], audit=audit())
    plain = score(["3", "[3]", "x", "[3]"], [3])
    np.testing.assert_array_equal(watched.rewards, plain.rewards)
    assert watched.metrics["audit/completions"] == 4
    assert watched.metrics["audit/accuracy"] == 0.75
    assert watched.metrics["audit/strict_accuracy"] == 0.25
    assert watched.metrics["audit/gap"] == 0.5
    assert watched.metrics["audit/false_share"] == pytest.approx(2 / 3)
    assert [note["audit"] for note in watched.notes] == [
        "correct",
        "wrong",
        "wrong",
        "wrong",
    ]


def test_two_worlds_that_the_training_verifier_cannot_tell_apart():
    """VER-27: same verdicts, different truth: bit-identical logs; the audit differs."""
    honest = ["3", "3", "x", "y"]
    fooled = ["[3]", "[3]", "x", "y"]  # brackets pass in training, not when strict
    one, other = (score(texts, [3], audit=audit()) for texts in (honest, fooled))

    def seen(scores):
        return {n: v for n, v in scores.metrics.items() if not n.startswith("audit/")}

    assert seen(one) == seen(other)
    assert one.rewards.tobytes() == other.rewards.tobytes()
    assert one.correct.tobytes() == other.correct.tobytes()
    assert one.metrics["audit/gap"] == 0.0
    assert other.metrics["audit/gap"] == 0.5


def test_an_alarm_is_a_warning_or_the_end(caplog):
    texts = ["[3]"] * 16
    score(texts, [3], audit=audit())
    assert "audit.max_gap=10%" in caplog.text
    with pytest.raises(AuditAlarm, match=r"accepts \+100% more than audit\.verifier"):
        score(texts, [3], audit=audit(stop=True))


def test_a_dead_part_is_not_hidden_by_good_answers():
    """The answers are fine; every check of the part crashed."""

    class Broken(Pool):
        def _judge(self, sample):
            if sample.verifier == "language":
                return Verdict(Status.CRASH, 0.0, "no model file")
            return super()._judge(sample)

    with pytest.raises(VerifierFailure, match=r"^verifiers: language: 100% of 4.*file"):
        score(["3"] * 4, [3], pool=Broken(), parts="answer, 0.1*language")


def test_a_judge_that_is_not_configured_says_what_to_set():
    with pytest.raises(VerifierFailure, match=r"set judge\.url and judge\.model, or"):
        score(["3"], [3], parts="answer, 0.1*judge")


def test_evaluation_pays_nothing_but_the_verdict():
    scorer = Scorer(
        tokenizer=TOKENIZER,
        problems=PROBLEMS,
        reward=RewardConfig(parts="answer, 5*ended", format="boxed", format_weight=1.0),
        reads=READS,
        pool=Pool(),
        end_ids=(1,),
        noise=NoiseConfig(pays="random"),
        audit=audit(),
    ).for_evaluation(PROBLEMS[3:])
    tokens = np.array([[[*TOKENIZER.encode("3"), 1]]], np.int32)
    scores = scorer(np.array([0]), tokens, np.array([[2]]), np.array([[True]]))
    assert scores.rewards.tolist() == [[1.0]]
    assert scores.part_names == ("answer",)
    assert not any(name.startswith(("audit", "noise")) for name in scores.metrics)
