"""Chains of arithmetic with a known value."""

import json
import re
from fractions import Fraction

import pytest

from rlvr_jax.data import tasks
from rlvr_jax.data.tasks.random_calculation import as_decimal
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.closeness import verify


def chains(split="train", **options):
    settings = {"count": 80, "evaluation_count": 40} | options
    return tasks.generate("random_calculation", 0, split, options=json.dumps(settings))


def evaluated(question):
    """Python's own value of the expression, with exact fractions."""
    text = re.match(r"Calculate (.*)\. Put the result", question)[1].replace("^", "**")
    return eval(re.sub(r"\d+", r"Fraction(\g<0>)", text), {"Fraction": Fraction})


def test_values_are_those_of_the_expression():
    """DATA-22: judged by Python's operators; 1 to 20 steps."""
    for problem in [*chains(), *chains(min_steps=10, max_steps=20, max_number=20)]:
        assert problem.answer == as_decimal(evaluated(problem.question))
        operations = len(problem.meta["solution"].splitlines()) - 1
        assert operations == problem.meta["steps"]
        sample = Sample(
            "closeness", problem.meta["solution"], problem.answer, problem.question, {}
        )
        assert verify(sample).status is Status.CORRECT


def test_steps_and_atoms_are_as_set():
    problems = chains(min_steps=3, max_steps=3, atoms="whole", max_number=9)
    assert {problem.meta["steps"] for problem in problems} == {3}
    assert not any("^" in problem.question for problem in problems)
    kinds = " ".join(problem.question for problem in chains())
    assert "^2" in kinds
    assert "^3" in kinds
    assert re.search(r"\(\d+ / \d+\)", kinds)


def test_training_and_held_out_chains_are_fresh():
    """DATA-24: a generated benchmark shares no question with the training."""
    train = {problem.question for problem in chains()}
    assert not train & {problem.question for problem in chains("evaluation")}
    other = tasks.generate("random_calculation", 1, "train", options='{"count": 80}')
    assert not train & {p.question for p in other if p.meta["steps"] > 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_steps": 0}, "1 <= min_steps <= max_steps <= 20"),
        ({"max_steps": 21}, "<= 20, got 1 and 21"),
        ({"atoms": "whole,root"}, "atoms are out of whole,fraction,square,cube"),
    ],
)
def test_impossible_options_are_explained(options, message):
    with pytest.raises(ValueError, match="task:random_calculation") as caught:
        chains(**options)
    assert message in str(caught.value)
