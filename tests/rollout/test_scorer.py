"""What a run's rewards are made of, checked before step 0."""

import pytest

from rlvr_jax.config import (
    AuditConfig,
    Config,
    JudgeConfig,
    NoiseConfig,
    RewardConfig,
)
from rlvr_jax.data.char_tokenizer import CharTokenizer
from rlvr_jax.data.rows import Problem
from rlvr_jax.rollout.scorer import check_what_is_read, make_scorer, reward_verifiers
from rlvr_jax.verifiers.pool import VerifierPool

PROBLEMS = [
    Problem(str(i), "q", "a", name, {}) for i, name in enumerate(["math", "exact"])
]
JUDGE = JudgeConfig(url="http://localhost:1/v1", model="m")


class NoPool(VerifierPool):
    def __init__(self):
        pass


def config(parts="answer", **sections):
    return Config(reward=RewardConfig(parts=parts), **sections)


def test_the_verifiers_of_rewards_are_those_of_rows_parts_and_noise():
    settings = config(
        "answer, 0.1*language if format:think, 0.2*judge",
        noise=NoiseConfig(pays="majority"),
        judge=JUDGE,
        audit=AuditConfig(verifier="weak:mentions"),
    )
    expected = ["answer_key", "exact", "format:think", "language", "math"]
    assert reward_verifiers(settings, PROBLEMS) == expected
    assert reward_verifiers(config(), PROBLEMS) == ["exact", "math"]


@pytest.mark.parametrize(
    "settings",
    [
        config("answer, 0.1*judge:rubric"),
        config(audit=AuditConfig(verifier="judge:rubric")),
    ],
)
def test_a_judge_needs_a_server(settings):
    words = r"'judge:rubric' is a language model: set judge\.url and judge\.model"
    with pytest.raises(ValueError, match=words):
        reward_verifiers(settings, PROBLEMS)


def test_rewards_that_read_the_reasoning_are_refused_unless_declared():
    """OBJ-20, DIAG-24: form, language and length may; what judges content may not."""
    form = {"format:think": "completion", "language": "completion", "math": "answer"}
    check_what_is_read(config(), form)
    monitor = form | {"mine.py:monitor": "completion"}
    with pytest.raises(ValueError, match=r"reward\.reads_reasoning='mine\.py:monitor'"):
        check_what_is_read(config(), monitor)
    declared = RewardConfig(reads_reasoning="steps, mine.py:monitor")
    check_what_is_read(Config(reward=declared), monitor)
    check_what_is_read(config(), {"steps": "answer"})


def test_the_scorer_has_what_is_configured():
    plain = make_scorer(config(), CharTokenizer(), PROBLEMS, {}, NoPool())
    assert plain.judge is None
    assert plain.audit is None
    settings = config(
        judge=JUDGE, audit=AuditConfig(verifier="math", max_gap=0.3, stop=True)
    )
    full = make_scorer(settings, CharTokenizer(), PROBLEMS, {}, NoPool())
    assert full.judge is not None
    assert full.audit is not None
    assert (full.audit.verifier, full.audit.stop) == ("math", True)
    assert full.audit.stream.max_gap == 0.3
