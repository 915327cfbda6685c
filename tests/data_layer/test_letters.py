"""Chains of operations on letters: what they are, and a base that cannot do them."""

import json

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data import tasks
from rlvr_jax.data.problems import load_problems
from rlvr_jax.data.tasks.letters import work_out
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.exact import verify


def letters(split="train", **options):
    settings = {"count": 60, "evaluation_count": 40} | options
    return tasks.generate("letters", 0, split, options=json.dumps(settings))


def judged(problem, text):
    return verify(Sample("exact", text, problem.answer, "", {})).status


@pytest.mark.parametrize(
    ("row", "operations", "steps"),
    [
        ("dacb", "R", ["bcad"]),
        ("dacb", "L", ["acbd"]),
        ("dacb", "S", ["adcb"]),
        ("dacb", "RLS", ["bcad LS", "cadb S", "acdb"]),
        ("ab", "LL", ["ba L", "ab"]),
    ],
)
def test_operations_by_hand(row, operations, steps):
    assert work_out(row, operations) == steps


def test_worked_solutions_verify_and_others_do_not():
    """DATA-23: generator and verifier."""
    for problem in letters(max_operations=4, length=5):
        row, operations, _ = problem.question.split()
        assert problem.meta["solution"].endswith(f"#### {problem.answer}")
        assert problem.meta["operations"] == len(operations)
        assert judged(problem, problem.meta["solution"]) is Status.CORRECT
        assert judged(problem, f"#### {problem.answer[::-1]}") is Status.WRONG
        assert judged(problem, f"#### {row}") is (
            Status.CORRECT if row == problem.answer else Status.WRONG
        )


def test_guesses_are_rows_of_the_same_letters():
    for problem in letters(guesses=8)[:20]:
        solutions = problem.meta["solutions"]
        assert solutions.count(problem.meta["solution"]) >= 2
        assert len(solutions) == 10
        for guess in solutions[:8]:
            assert sorted(guess.removeprefix("#### ")) == sorted(problem.answer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 9}, "length is out of 2..8, got 9"),
        ({"min_operations": 4}, "min_operations <= max_operations, got 4 and 3"),
        ({"operations": "RX"}, "operations are out of 'RLS', got 'RX'"),
        ({"guesses": 11}, "guesses is out of 0..10, got 11"),
    ],
)
def test_an_impossible_option_is_explained(options, message):
    with pytest.raises(ValueError, match=r"task:letters: .*data\.task_options") as it:
        letters(**options)
    assert message in str(it.value)


def test_two_tasks_have_options_of_their_own():
    """Shared ones beside them; one under another source's name is not its own."""
    options = {
        "count": 12,
        "evaluation_count": 6,
        "letters": {"length": 3, "max_operations": 1},
        "arithmetic": {"terms": 3},
    }
    data = DataConfig(
        train="task:arithmetic[:5], task:letters", task_options=json.dumps(options)
    )
    train = load_problems(data, split="train", default_verifier="math", seed=0)
    by_domain = {
        name: [p for p in train if p.meta["domain"] == name]
        for name in ("arithmetic", "letters")
    }
    assert [len(problems) for problems in by_domain.values()] == [5, 12]
    assert all(len(p.meta["operators"]) == 2 for p in by_domain["arithmetic"])
    assert all(len(p.answer) == 3 for p in by_domain["letters"])
    wrong = DataConfig(train="task:letters", task_options='{"countdown": {"count": 3}}')
    with pytest.raises(ValueError, match="unknown option of task:letters 'countdown'"):
        load_problems(wrong, split="train", default_verifier="math", seed=0)
