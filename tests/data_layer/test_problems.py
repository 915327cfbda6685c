"""Sources, splits and mixes."""

import json
import logging

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data.problems import MAX_HELD_OUT, load_problems
from rlvr_jax.data.selection import normalized_question


def load(split="train", seed=0, **settings):
    return load_problems(
        DataConfig(**settings), split=split, default_verifier="math", seed=seed
    )


def write(path, count, prefix="q"):
    rows = ({"question": f"{prefix}{i}", "answer": str(i)} for i in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def questions(problems):
    return [problem.question for problem in problems]


def test_packaged_gsm8k_has_its_counts_and_known_answers():
    train, test = load(), load("evaluation")
    # The first rows of the public train and test files.
    assert (len(train), len(test)) == (256, 128)
    assert train[0].question.startswith("Natalia sold clips to 48 of her friends")
    assert (train[0].answer, test[0].answer) == ("72", "18")
    for problem in train + test:
        assert problem.verifier == "math"
        assert problem.meta["solution"].endswith(f"\n#### {problem.answer}")
        assert "<<" not in problem.meta["solution"]
    assert not set(questions(train)) & set(questions(test))


def test_packaged_rows_ignore_the_field_names_of_other_data():
    assert len(load(question_field="problem", answer_field="solution")) == 256


@pytest.mark.parametrize(
    ("count", "held_out"), [(2, 1), (9, 1), (10, 1), (99, 9), (4000, MAX_HELD_OUT)]
)
def test_the_last_rows_of_a_file_are_held_out(tmp_path, count, held_out):
    path = write(tmp_path / "file.jsonl", count)
    train, evaluation = load(train=path), load("evaluation", train=path)
    assert questions(train) == [f"q{i}" for i in range(count - held_out)]
    assert questions(evaluation) == [f"q{i}" for i in range(count - held_out, count)]


def test_training_leaves_out_questions_of_the_held_out_part(tmp_path):
    path = tmp_path / "file.jsonl"
    rows = ["What is 1?", "Two?", " what IS  1?"]
    path.write_text(
        "".join(json.dumps({"question": q, "answer": "1"}) + "\n" for q in rows)
    )
    assert questions(load(train=str(path))) == ["Two?"]


def test_with_its_own_evaluation_training_keeps_every_row(tmp_path):
    train, other = write(tmp_path / "a.jsonl", 20), write(tmp_path / "b.jsonl", 5, "z")
    assert len(load(train=train, evaluation=other)) == 20
    assert len(load("evaluation", train=train, evaluation=other)) == 5
    assert len(load("evaluation", train=train, evaluation="packaged:gsm8k")) == 128


def test_questions_shared_with_another_evaluation_are_counted(tmp_path, caplog):
    train, other = write(tmp_path / "a.jsonl", 20), write(tmp_path / "b.jsonl", 5)
    with caplog.at_level(logging.WARNING):
        assert len(load(train=train, evaluation=other)) == 20
    assert "5 training questions are also in data.evaluation" in caplog.text


def test_a_mix_has_the_counts_and_domains_of_its_sources(tmp_path):
    """DATA-14: mixes of several domains, counted on generated stand-ins."""
    path = write(tmp_path / "own.jsonl", 30)
    mix = f"packaged:gsm8k[:100], task:countdown[:50],{path}"
    amounts = {"task_options": '{"count": 60, "evaluation_count": 20}'}
    train, evaluation = (
        load(train=mix, **amounts),
        load("evaluation", train=mix, **amounts),
    )
    domains = [problem.meta["domain"] for problem in train]
    assert {name: domains.count(name) for name in domains} == {
        "gsm8k": 100,
        "countdown": 50,
        "own": 27,
    }
    assert len(evaluation) == 128 + 20 + 3
    assert len({problem.id for problem in train}) == 177
    assert {p.verifier for p in train} == {"math", "countdown"}


def test_deduplication_of_a_mix_counts_what_it_leaves_out(tmp_path, caplog):
    """DATA-14: planted duplicates and contradictions across sources."""
    first = write(tmp_path / "first.jsonl", 20)
    second = tmp_path / "second.jsonl"
    rows = [("Q3", "3"), (" q4 ", "4"), ("q5", "6"), ("new", "1")]
    second.write_text(
        "".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in rows)
    )
    settings = {"train": f"{first},{second}", "evaluation": "packaged:gsm8k"}
    assert len(load(**settings)) == 24
    with caplog.at_level(logging.WARNING):
        kept = load(**settings, deduplicate=True)
    # 20 + 4 rows; Q3 and q4 came before; both q5 go, for they contradict each other.
    assert len(kept) == 20
    assert "left out 2 problems that came before and 2 whose" in caplog.text
    assert "q5" not in questions(kept)
    assert kept[-1].question == "new"
    assert len({normalized_question(q) for q in questions(kept)}) == 20


def test_keep_filters_rows_before_some_are_held_out(tmp_path):
    path = tmp_path / "levels.jsonl"
    path.write_text(
        "".join(
            json.dumps({"question": f"q{i}", "answer": "1", "level": i % 5}) + "\n"
            for i in range(50)
        )
    )
    train = load(train=str(path), keep='{"level": [3, 4]}')
    evaluation = load("evaluation", train=str(path), keep='{"level": [3, 4]}')
    assert (len(train), len(evaluation)) == (18, 2)
    assert {p.meta["level"] for p in train + evaluation} == {3, 4}


def test_files_do_not_depend_on_the_seed_and_tasks_do(tmp_path):
    path = write(tmp_path / "file.jsonl", 20)
    assert load(train=path, seed=1) == load(train=path, seed=2)
    few = {"train": "task:arithmetic", "task_options": '{"count": 30}'}
    first, again, other = (load(seed=seed, **few) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("packaged:gsm9k", "unknown packaged data set 'gsm9k'; did you mean 'gsm8k'?"),
        ("task:aritmetic", "unknown task 'aritmetic'; did you mean 'arithmetic'?"),
        ("gsm8k", "does not know the source 'gsm8k'; use packaged:NAME"),
        ("data.csv", "does not know the source 'data.csv'"),
        ("", "needs sources with a comma between them, got ''"),
        ("packaged:gsm8k,,", "needs sources with a comma"),
    ],
)
def test_an_unknown_source_is_explained(source, message):
    with pytest.raises(ValueError, match="data") as caught:
        load(train=source)
    assert message in str(caught.value)


def test_a_missing_file_is_explained():
    with pytest.raises(FileNotFoundError, match=r"no file nowhere\.jsonl"):
        load(train="nowhere.jsonl")


def test_one_row_cannot_be_shared_by_both_splits(tmp_path):
    path = write(tmp_path / "one.jsonl", 1)
    with pytest.raises(ValueError, match="2 are needed to keep one for evaluation"):
        load(train=path)
    assert len(load(train=path, evaluation="packaged:gsm8k")) == 1


def test_nothing_left_to_train_on_is_explained(tmp_path):
    path = tmp_path / "same.jsonl"
    path.write_text('{"question": "q", "answer": "1"}\n' * 20)
    with pytest.raises(ValueError, match="no training problem is left"):
        load(train=str(path))


def test_two_sources_of_one_name_are_refused(tmp_path):
    (tmp_path / "other").mkdir()
    first = write(tmp_path / "a.jsonl", 3)
    second = write(tmp_path / "other" / "a.jsonl", 3, "z")
    with pytest.raises(ValueError, match="comes from two sources"):
        load(train=f"{first},{second}")


def test_a_file_name_may_hold_a_comma(tmp_path):
    path = write(tmp_path / "a,b.jsonl", 20)
    assert len(load(train=path)) == 18
