"""Questions with distractors, and a policy that gives way to them as it thinks on."""

import itertools
import json
import re

import numpy as np
import pytest

from rlvr_jax.analysis.counts import ProblemCounts
from rlvr_jax.analysis.thinking import scaling_of
from rlvr_jax.data import tasks
from rlvr_jax.data.tasks.distraction import KINDS
from rlvr_jax.verifiers import registry
from rlvr_jax.verifiers.base import Sample, Status


def questions(kind, count=60, **options):
    settings = {"count": count, "kind": kind} | options
    return tasks.generate("distraction", 0, "train", options=json.dumps(settings))


def judged(problem, text):
    verify = registry.resolve(problem.verifier or "math")
    return verify(Sample("", text, problem.answer, problem.question, {})).status


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distractors", [1, 3])
def test_worked_solutions_verify_and_distracted_answers_do_not(kind, distractors):
    """TT-22: for every kind; the solution says nothing of the distractor."""
    for problem in questions(kind, distractors=distractors):
        assert judged(problem, problem.meta["solution"]) is Status.CORRECT
        wrong = f"<answer>{problem.meta['distracted']}</answer>"
        assert judged(problem, wrong) is Status.WRONG, problem


def test_the_answers_follow_from_the_questions():
    """TT-22: computed again from the text alone: sums, the line through two rows, the
    only order that fits all clues."""
    for problem in questions("counting"):
        have = re.findall(r"(\d+) [a-z]+(?: and|\.)", problem.question)[:2]
        assert sum(map(int, have)) == int(problem.answer)
    for problem in questions("regression"):
        rows = re.findall(r"(\d+) hours, stress \d+: (\d+)", problem.question)
        hours, grades = np.array(rows, float).T
        slope, base = np.polyfit(hours, grades, 1)
        asked = int(re.search(r"studies (\d+) hours", problem.question)[1])
        assert slope * asked + base == pytest.approx(int(problem.answer))
    for problem in questions("deduction"):
        left = re.findall(r"(\w+) sits directly left of (\w+)", problem.question)
        people = {name for pair in left for name in pair}
        fits = [
            row
            for row in itertools.permutations(people)
            if all(row.index(a) + 1 == row.index(b) for a, b in left)
        ]
        place = int(re.search(r"place (\d)", problem.question)[1])
        assert [row[place - 1] for row in fits] == [problem.answer]


@pytest.mark.parametrize("kind", KINDS)
def test_a_distractible_policy_gets_worse_with_length(kind):
    """TT-22: planted: after L tokens the distractor has won with 1 - exp(-L / 500).
    Through our verifiers the slope of accuracy over length is negative; of a policy
    that does not heed it, 0."""
    problems = questions(kind, count=40)
    rng = np.random.default_rng(0)

    def evaluated(length, distractible):
        chance = 1 - np.exp(-length / 500) if distractible else 0.0
        found = []
        for problem in problems:
            lost = rng.random(4) < chance
            answers = [
                problem.meta["distracted"] if x else problem.answer for x in lost
            ]
            correct = [
                judged(problem, f"<answer>{answer}</answer>") is Status.CORRECT
                for answer in answers
            ]
            found.append(
                ProblemCounts(problem.id, 4, sum(correct), thinking=[length] * 4)
            )
        return found

    lengths = (64, 256, 1024)
    falls = scaling_of([evaluated(length, True) for length in lengths])
    accuracy = [point[1] for point in falls["points"]]
    assert falls["scaling"] < 0
    assert accuracy[0] > accuracy[1] > accuracy[2]
    steady = scaling_of([evaluated(length, False) for length in lengths])
    assert steady["scaling"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "chess"}, "kind is one of counting, regression, deduction, got 'c"),
        ({"distractors": 0}, "distractors is out of 1..4, got 0"),
    ],
)
def test_an_impossible_option_is_explained(options, message):
    with pytest.raises(ValueError, match=r"data\.task_options") as caught:
        questions(options.pop("kind", "counting"), **options)
    assert message in str(caught.value)
