"""Generated tasks: determinism, disjoint splits, options, verifiable solutions."""

import dataclasses
import pathlib

import pytest

from rlvr_jax.data import tasks
from rlvr_jax.data.tasks import arithmetic
from rlvr_jax.verifiers import registry
from rlvr_jax.verifiers.base import Sample, Status

SMALL = {"count": 60, "evaluation_count": 30}
VARIANTS = [
    ("arithmetic", {}),
    ("arithmetic", {"operators": "+-*", "terms": 4, "wording": "question"}),
    ("countdown", {}),
    ("countdown", {"min_numbers": 2, "max_numbers": 6, "wording": "short"}),
]


@pytest.mark.parametrize(("task", "options"), VARIANTS)
def test_worked_solutions_are_correct_to_the_real_verifier(task, options):
    """The cold start teaches answers in a form that is paid for."""
    for split in ("train", "evaluation"):
        problems = tasks.generate(task, 0, split, options=SMALL | options)
        for problem in problems:
            name = problem.verifier or "math"
            completion = problem.meta["solution"]
            verdict = registry.resolve(name)(Sample(name, completion, problem.answer))
            assert verdict.status == Status.CORRECT, (problem, verdict)


@pytest.mark.parametrize(("task", "options"), VARIANTS)
def test_problems_are_a_function_of_the_seed_and_all_different(task, options):
    first, again, other = (
        tasks.generate(task, seed, "train", options=SMALL | options)
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert len({p.question for p in first}) == len({p.id for p in first}) == 60


def test_the_first_problems_do_not_depend_on_how_many_are_asked_for():
    few, many = (
        tasks.generate("countdown", 0, "train", options={"count": n}) for n in (5, 50)
    )
    assert many[:5] == few


@pytest.mark.parametrize("task", tasks.TASKS)
def test_no_seed_trains_on_what_another_seed_evaluates_on(task):
    options = {"count": 300, "evaluation_count": 100}
    if task == "arithmetic":
        options["max_operand"] = 9
    trained = [
        p.question
        for seed in range(3)
        for p in tasks.generate(task, seed, "train", options=options)
    ]
    evaluated = [
        p.question
        for seed in range(3)
        for p in tasks.generate(task, seed, "evaluation", options=options)
    ]
    assert not set(trained) & set(evaluated)


def test_a_small_task_gives_each_of_its_questions_once():
    options = {"max_operand": 9, "operators": "+"}
    splits = [
        tasks.generate("arithmetic", 0, split, options=options)
        for split in ("train", "evaluation")
    ]
    asked = [p.question for problems in splits for p in problems]
    assert sorted(asked) == sorted(f"{a} + {b} =" for a in range(10) for b in range(10))


def test_operands_in_the_other_order_stay_in_the_same_split():
    options = {"max_operand": 9, "operators": "+*"}
    trained = {
        p.question for p in tasks.generate("arithmetic", 0, "train", options=options)
    }
    for question in trained:
        left, sign, right, equals = question.split()
        assert f"{right} {sign} {left} {equals}" in trained


@pytest.mark.parametrize(
    ("share", "low", "high"), [(0.2, 0.15, 0.25), (0.5, 0.43, 0.57)]
)
def test_the_evaluation_share_is_a_share_of_all_questions(share, low, high):
    # 0..29 with "-": 900 questions, keys independent; sd sqrt(.25 / 900) = 1.7 %.
    options = {
        "max_operand": 29,
        "operators": "-",
        "count": 1000,
        "evaluation_count": 1000,
        "evaluation_share": share,
    }
    found = len(tasks.generate("arithmetic", 0, "evaluation", options=options))
    assert low < found / 900 < high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            '{"max_operant": 3}',
            "unknown option of task:arithmetic 'max_operant'; did",
        ),
        ('{"count": 0}', "count and evaluation_count are at least 1"),
        ('{"evaluation_share": 1}', "evaluation_share lies between 0 and 1"),
        ('{"max_operand": "9"}', "max_operand needs a int, got '9'"),
        ('{"terms": true}', "terms needs a int, got True"),
        ('{"terms": 1}', "terms is at least 2, got 1"),
        ('{"operators": "+/"}', "operators are out of '+-*', got '+/'"),
        ('{"operators": ""}', "operators are out of '+-*', got ''"),
        ('{"min_operand": 5, "max_operand": 4}', "min_operand <= max_operand, got 5 a"),
        ('{"wording": "long"}', "wording is 'equation' or 'question', got 'long'"),
        ('{"max_operand": 0, "operators": "+"}', "question in 2000 draws"),
        ("{", "data.task_options is not JSON"),
        ("[]", "data.task_options needs a JSON object, got '[]'"),
    ],
)
def test_an_impossible_option_is_explained(options, message):
    splits = ("train", "evaluation")
    with pytest.raises(ValueError, match=r"data\.task_options") as caught:
        [tasks.generate("arithmetic", 0, split, options=options) for split in splits]
    assert message in str(caught.value)


def test_every_option_is_documented_and_has_a_default():
    for module in tasks.TASKS.values():
        for field in dataclasses.fields(module.Options):
            assert field.default is not dataclasses.MISSING
        assert module.__doc__
        assert pathlib.Path(module.__file__).stem in tasks.TASKS


@pytest.mark.parametrize(
    ("numbers", "signs", "steps"),
    [
        ([2, 3, 4], "+*", ["2 + 12", "14"]),
        ([2, 3, 4], "--", ["-1 - 4", "-5"]),
        ([2, 3, 4, 5], "*+*", ["6 + 4 * 5", "6 + 20", "26"]),
        ([6, 4], "+", ["10"]),
    ],
)
def test_a_chain_is_worked_out_products_first(numbers, signs, steps):
    # By hand: one operation a line, * before + and -, left to right.
    assert arithmetic.work_out(numbers, list(signs)) == steps


@pytest.mark.parametrize(("given", "far"), [({}, 5), ({"guess_error": 12}, 12)])
def test_guesses_are_imitated_beside_the_worked_solution(given, far):
    """Eight of ten solutions are bare numbers about as far off as was asked for."""
    options = {"operators": "+", "max_operand": 4, "terms": 4, "guesses": 8, **given}
    errors = set()
    for problem in tasks.generate("arithmetic", 0, "train", options=options)[:50]:
        solutions = problem.meta["solutions"]
        worked = [text for text in solutions if text == problem.meta["solution"]]
        guesses = [text for text in solutions if "\n" not in text]
        assert (len(worked), len(guesses)) == (2, 8)
        errors |= {int(text) - int(problem.answer) for text in guesses}
    assert errors == set(range(-far, far + 1))


def test_boxes_come_with_the_working_alone():
    options = {"operators": "+", "terms": 3, "guesses": 7, "boxed": True}
    for problem in tasks.generate("arithmetic", 0, "train", options=options)[:20]:
        solutions = problem.meta["solutions"]
        boxed = [text for text in solutions if "boxed" in text]
        assert len(boxed) == 3
        assert all(s.endswith(f"\n\\boxed{{{problem.answer}}}") for s in boxed)


def test_solutions_that_work_it_out_twice():
    """Of ten, 7 guesses, 2 that say the working again on new lines, 1 plain."""
    options = {"operators": "+", "max_operand": 4, "terms": 3, "guesses": 7, "twice": 2}
    for problem in tasks.generate("arithmetic", 0, "train", options=options)[:20]:
        worked, solutions = problem.meta["solution"], problem.meta["solutions"]
        assert solutions.count(worked) == 1
        assert solutions.count(worked + "\n" + worked) == 2
        assert len(solutions) == 10
    with pytest.raises(ValueError, match=r"guesses \+ twice is out of 0..10"):
        tasks.generate("arithmetic", 0, "train", options={"guesses": 9, "twice": 2})
    with pytest.raises(ValueError, match="guess_error is at least 0, got -1"):
        tasks.generate("arithmetic", 0, "train", options={"guess_error": -1})
