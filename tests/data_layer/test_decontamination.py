"""Training questions that give evaluation questions away."""

import os
import pathlib

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data.decontamination import overlaps, without_overlaps, words
from rlvr_jax.data.problems import load_problems
from rlvr_jax.data.rows import Problem

EXTRACTS = pathlib.Path(__file__).parents[1] / "data" / "problems"
LONG = " ".join(f"w{i}" for i in range(40))


def asks(*questions):
    return [Problem(str(i), q, "1", "", {}) for i, q in enumerate(questions)]


def found(training, evaluation, **settings):
    pairs = overlaps(asks(*training), asks(*evaluation), **settings)
    return [(int(p.training.id), int(p.evaluation.id), p.equal) for p in pairs]


def test_planted_duplicates_are_found_whatever_their_looks():
    """DATA-24: case, spaces and signs do not count; words and their order do."""
    training = ["What is $2^3$?", "what  is 2 ^ 3", "What is 3 ^ 2?", "2 is what 3"]
    assert found(training, ["WHAT IS 2^{3}."]) == [(0, 0, True), (1, 0, True)]


def test_a_long_common_part_is_found_within_another_text():
    """DATA-24: 28 runs of 13 words in 40; the share is counted by hand."""
    inside = f"First some other words. {LONG} And then?"
    cut = " ".join(LONG.split()[:30])  # 18 of 28 runs
    (pair,) = overlaps(asks(inside), asks(LONG))
    assert (pair.share, pair.equal) == (1.0, False)
    assert found([cut], [LONG]) == []
    (pair,) = overlaps(asks(cut), asks(LONG), share=18 / 28)
    assert pair.share == 18 / 28
    assert found([cut], [LONG], share=0.65) == []
    # 12 words in common, and not one more.
    shorter = " ".join(LONG.split()[:12])
    assert found([f"{shorter} end"], [LONG], share=0.0) == []
    assert found([f"{shorter} end"], [LONG], share=0.0, run_words=12) == [(0, 0, False)]


def test_a_short_question_must_be_equal():
    assert found(["What is 2 + 2 + 1?", "What is 2 + 2?"], ["What is 2+2?"]) == [
        (1, 0, True)
    ]
    assert found(["...", ""], ["?"]) == []  # no words at all


def test_other_scripts_have_words():
    assert words("是否存在 n?") == ("是", "否", "存", "在", "n")
    assert words("простое число") == ("простое", "число")


def test_a_question_without_blanks_is_found_by_its_signs():
    """Of 24 signs the first 17 are equal: 5 of the 12 runs of 13."""
    asked = "一个班有四十名学生其中二十五名喜欢数学问有多少名"
    other = "一个班有四十名学生其中二十五名喜欢体育"
    (pair,) = overlaps(asks(other), asks(asked), share=0.3)
    assert pair.share == 5 / 12


def test_what_is_close_leaves_and_the_rest_stays():
    training = asks("a b", "c d", "A, B!")
    pairs = overlaps(training, asks("a b?"))
    assert [p.id for p in without_overlaps(training, pairs)] == ["1"]


def test_math_500_in_dapo_math_17k():
    """DATA-24: known answer, 7 questions of MATH-500 are in DAPO-Math-17k word by word
    (rows of both, carried); three more share most of their text."""
    against = str(EXTRACTS / "overlap_evaluation.jsonl")
    settings = {
        "train": str(EXTRACTS / "overlap_training.jsonl"),
        "evaluation": against,
    }

    def training(**more):
        data = DataConfig(**settings, **more)
        return load_problems(data, split="train", default_verifier="math", seed=0)

    test = load_problems(
        DataConfig(**settings), split="evaluation", default_verifier="math", seed=0
    )
    pairs = overlaps(training(), test)
    equal = {p.evaluation.id for p in pairs if p.equal}
    assert len(equal) == 7
    assert len({p.evaluation.id for p in pairs} - equal) == 3
    assert len(training(decontaminate=against)) == len(training()) - 12 == 6


@pytest.mark.slow
@pytest.mark.skipif("RLVR_DATA" not in os.environ, reason="RLVR_DATA names no folder")
def test_the_whole_sets():
    """DATA-24: 7 of MATH-500 and 8 of AMC 2023 are in DAPO-Math-17k, none of AIME.

    RLVR_DATA is a folder with the files named here, whose problems are not all ours to
    carry.
    """
    folder = pathlib.Path(os.environ["RLVR_DATA"])

    def problems(name):
        data = DataConfig(train=str(folder / name), evaluation="packaged:gsm8k")
        return load_problems(data, split="train", default_verifier="math", seed=0)

    training = problems("dapo_math_17k.jsonl.gz")
    for name, count in {
        "math500.jsonl": 7,
        "amc23.jsonl": 8,
        "aime24.jsonl": 0,
        "aime25.jsonl": 0,
    }.items():
        pairs = overlaps(training, problems(name))
        assert len({p.evaluation.id for p in pairs if p.equal}) == count, name
