"""Data sets of the optional package reasoning-gym."""

import importlib.util
import json
import sys

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data import gym
from rlvr_jax.data.problems import load_problems
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


@needs_package
@pytest.mark.slow
def test_data_sets_of_every_kind_judge_their_own_solutions():
    """DATA-23: one name of each family; all of version 0.1.25 were tried once
    (docs/data.md)."""
    for name in (
        "simple_equations",
        "caesar_cipher",
        "leg_counting",
        "binary_matrix",
        "bitwise_arithmetic",
        "tower_of_hanoi",
        "simple_geometry",
        "shortest_path",
        "knights_knaves",
        "gsm_symbolic",
        "word_ladder",
        "acre",
        "list_functions",
    ):
        problem = gym.generate(name, 0, "train", options={"count": 2})[1]
        assert judged(problem, problem.meta["solution"]).status is Status.CORRECT, name
