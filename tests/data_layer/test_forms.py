"""Rows of public data sets in the forms of their hub names.

The fields are those that the data sets' cards show; the rows are written here.
"""

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data import forms, rows

TEST = "def check(candidate):\n    assert candidate(1) == 2\n"
DAPO = (
    "Solve the following math problem step by step. The last line of your response "
    "should be of the form Answer: $Answer (without quotes) where $Answer is the "
    "answer to the problem.\n\nWhat is $1+1$?\n\nRemember to put your answer on its "
    'own line after "Answer:".'
)
ROWS = {
    "openai/gsm8k": (
        {"question": "How many?", "answer": "1 + 1 = <<1+1=2>>2\n#### 2"},
        ("How many?", "2", {"solution": "1 + 1 = 2\n#### 2"}, "d", ""),
    ),
    "HuggingFaceH4/MATH-500": (
        {
            "problem": "Half?",
            "solution": r"So \boxed{\frac{1}{2}}.",
            "answer": r"\frac{1}{2}",
            "subject": "Algebra",
            "level": 2,
            "unique_id": "test/algebra/1.json",
        },
        (
            "Half?",
            r"\frac{1}{2}",
            {
                "solution": r"So \boxed{\frac{1}{2}}.",
                "subject": "Algebra",
                "level": 2,
                "unique_id": "test/algebra/1.json",
            },
            "test/algebra/1.json",
            "",
        ),
    ),
    "DigitalLearningGmbH/MATH-lighteval": (
        {
            "problem": "Half?",
            "level": "Level 5",
            "type": "Algebra",
            "solution": r"First \boxed{3}, so \boxed{\frac{1}{2}}.",
        },
        (
            "Half?",
            r"\frac{1}{2}",
            {
                "level": 5,
                "type": "Algebra",
                "solution": r"First \boxed{3}, so \boxed{\frac{1}{2}}.",
            },
            "d",
            "",
        ),
    ),
    "HuggingFaceH4/aime_2024": (
        {"id": 60, "problem": "Q", "solution": "S", "answer": "073", "year": "2024"},
        ("Q", "73", {"solution": "S", "year": "2024"}, "60", ""),
    ),
    "Maxwell-Jia/AIME_2024": (
        {"ID": "2024-II-4", "Problem": "Q", "Solution": "S", "Answer": 33},
        ("Q", "33", {"ID": "2024-II-4", "Solution": "S", "solution": "S"}, None, ""),
    ),
    "math-ai/aime25": (
        {"problem": "Q", "answer": "70", "id": "0"},
        ("Q", "70", {}, "0", ""),
    ),
    "AI-MO/aimo-validation-amc": (
        {"id": 1, "problem": "Q", "answer": 142.0, "url": "u"},
        ("Q", "142", {"url": "u"}, "1", ""),
    ),
    "BytedTsinghua-SIA/DAPO-Math-17k": (
        {
            "data_source": "math_dapo",
            "prompt": [{"role": "user", "content": DAPO}],
            "ability": "MATH",
            "reward_model": {"ground_truth": "2", "style": "rule"},
            "extra_info": {"index": "9a9b"},
        },
        (
            "What is $1+1$?",
            "2",
            {
                "data_source": "math_dapo",
                "ability": "MATH",
                "extra_info": {"index": "9a9b"},
            },
            "9a9b",
            "",
        ),
    ),
    "open-r1/DAPO-Math-17k-Processed": (
        {
            "prompt": "What is $1+1$?",
            "solution": "2",
            "reward_model": {"ground_truth": "2", "style": "rule"},
        },
        ("What is $1+1$?", "2", {"solution": "2"}, "d", ""),
    ),
    "openai/openai_humaneval": (
        {
            "task_id": "HumanEval/0",
            "prompt": "def f(x):\n",
            "canonical_solution": "    return x + 1\n",
            "test": TEST,
            "entry_point": "f",
        },
        (
            "def f(x):\n",
            "    return x + 1\n",
            {"entry_point": "f", "test": TEST},
            "HumanEval/0",
            "code",
        ),
    ),
    "google-research-datasets/mbpp": (
        {
            "task_id": 2,
            "text": "Add one.",
            "code": "def plus(x):\n    return x + 1",
            "test_list": ["assert set(plus(1)) == 2", "assert plus(2) == 3"],
            "test_setup_code": "",
            "challenge_test_list": [],
        },
        (
            "Add one.\nThe function is called plus.",
            "def plus(x):\n    return x + 1",
            {
                "test_list": ["assert set(plus(1)) == 2", "assert plus(2) == 3"],
                "test_setup_code": "",
                "challenge_test_list": [],
            },
            "mbpp-2",
            "code",
        ),
    ),
    "google-research-datasets/mbpp, sanitized": (
        {
            "source_file": "f",
            "task_id": 3,
            "prompt": "Write plus.",
            "code": "def plus(x):\n    return x + 1",
            "test_imports": ["import math"],
            "test_list": ["assert math.isclose(plus(1), 2)"],
        },
        (
            "Write plus.",
            "def plus(x):\n    return x + 1",
            {
                "source_file": "f",
                "test_imports": ["import math"],
                "test_list": ["assert math.isclose(plus(1), 2)"],
            },
            "mbpp-3",
            "code",
        ),
    ),
    "google/IFEval": (
        {
            "key": 1000,
            "prompt": "No commas.",
            "instruction_id_list": ["punctuation:no_comma"],
            "kwargs": [{"num_words": None, "relation": None}],
        },
        (
            "No commas.",
            None,
            {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
            "ifeval-1000",
            "instructions",
        ),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_a_known_form_becomes_a_problem(name):
    """DATA-14: loaders choose the form by the fields of the row."""
    row, (question, answer, meta, own_id, verifier) = ROWS[name]
    problem = rows.row_to_problem(row, data=DataConfig(), default_id="d")
    assert (problem.question, problem.answer) == (question, answer)
    ids = {"id", "unique_id", "task_id", "key", "solution"}
    assert {k: v for k, v in problem.meta.items() if k not in ids} == {
        k: v for k, v in meta.items() if k not in ids
    }
    assert problem.meta.get("solution") == meta.get("solution")
    if own_id is not None:
        assert problem.id == own_id
    assert forms.verifier_for(problem.meta) == verifier


def test_fields_that_the_user_names_are_read_as_named():
    row, _ = ROWS["HuggingFaceH4/MATH-500"]
    data = DataConfig(question_field="problem", answer_field="subject")
    problem = rows.row_to_problem(row, data=data, default_id="d")
    assert problem.answer == "Algebra"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"problem": "Q", "solution": "none"}, "has neither an answer nor a solution"),
        ({"prompt": "Q", "reward_model": "2"}, "reward_model needs a ground_truth"),
        ({"prompt": "Q", "reward": 2}, "has no field 'question', only 'prompt'"),
    ],
)
def test_a_row_that_fits_no_form_is_explained(row, message):
    with pytest.raises(ValueError, match=r"has|needs") as caught:
        rows.row_to_problem(row, data=DataConfig(), default_id="d")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("solution", "box"),
    [
        (r"\boxed{1} then \boxed{\frac{a}{b_{2}}}", r"\frac{a}{b_{2}}"),
        (r"\boxed 5$.", "5"),
        (r"\boxed 12$.", "12"),
        (r"\boxed -3.5", "-3.5"),
        (r"\boxed\frac12$.", r"\frac12"),
        (r"\boxed$", None),
        (r"\fbox{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{open", None),
        ("nothing", None),
    ],
)
def test_the_last_box_of_a_solution(solution, box):
    assert forms.last_box(solution) == box


def test_a_function_name_is_what_all_tests_call():
    tests = ["assert near(f(1), 2)", "assert f(2) == 3"]
    assert forms.with_function_name("Q", {"test_list": tests}).endswith("called f.")
    assert forms.with_function_name("Call f.", {"test_list": tests}) == "Call f."
    assert forms.with_function_name("Q", {"test_list": ["assert ("]}) == "Q"
    assert forms.with_function_name("Q", {}) == "Q"
