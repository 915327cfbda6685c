"""Hugging Face data sets, from local folders of each kind."""

import datetime
import json
import logging

import datasets
import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data.problems import load_problems

ROWS = [{"question": f"q{i}", "answer": str(i), "level": i % 3} for i in range(30)]


@pytest.fixture(autouse=True)
def private_cache(monkeypatch, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    datasets.disable_progress_bars()
    logging.getLogger("datasets").setLevel(logging.ERROR)


def load(source, split="train", **settings):
    data = DataConfig(train=f"hub:{source}", **settings)
    return load_problems(data, split=split, default_verifier="math", seed=0)


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_folder_of_save_to_disk_holds_out_its_last_rows(tmp_path):
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "saved")
    train, evaluation = (
        load(tmp_path / "saved", split) for split in ("train", "evaluation")
    )
    assert [p.question for p in train] == [f"q{i}" for i in range(27)]
    assert [p.question for p in evaluation] == ["q27", "q28", "q29"]
    assert train[1].id == "saved-1"
    assert train[1].meta == {"level": 1, "domain": "saved"}


@pytest.mark.parametrize("test_split", ["test", "validation"])
def test_splits_of_save_to_disk_are_used(tmp_path, test_split):
    parts = {"train": ROWS[:20], test_split: ROWS[20:]}
    datasets.DatasetDict(
        {name: datasets.Dataset.from_list(rows) for name, rows in parts.items()}
    ).save_to_disk(tmp_path / "saved")
    assert len(load(tmp_path / "saved")) == 20
    assert len(load(tmp_path / "saved", "evaluation")) == 10


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_folders_of_files_are_used(tmp_path, form):
    folder = tmp_path / "files"
    folder.mkdir()
    for name, rows in (("train", ROWS[:20]), ("test", ROWS[20:])):
        if form == "jsonl":
            write_jsonl(folder / f"{name}.jsonl", rows)
        else:
            datasets.Dataset.from_list(rows).to_parquet(folder / f"{name}.parquet")
    assert [p.answer for p in load(folder)] == [str(i) for i in range(20)]
    assert len(load(folder, "evaluation")) == 10


def test_the_gsm8k_form_of_the_hub(tmp_path):
    # Columns and form of openai/gsm8k.
    rows = [{"question": f"q{i}", "answer": f"1+{i}.\n#### 1,00{i}"} for i in range(5)]
    write_jsonl(tmp_path / "gsm8k" / "train.jsonl", rows)
    problems = load(tmp_path / "gsm8k")
    assert [p.answer for p in problems] == ["1000", "1001", "1002", "1003"]
    assert problems[0].meta["solution"] == "1+0.\n#### 1,000"


def test_the_verl_form_of_dapo_math(tmp_path):
    # Columns and form of BytedTsinghua-SIA/DAPO-Math-17k.
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Find {i}."}],
            "reward_model": {"ground_truth": str(i), "style": "rule"},
            "data_source": "math_dapo",
        }
        for i in range(4)
    ]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "dapo")
    problems = load(
        tmp_path / "dapo",
        question_field="prompt",
        answer_field="reward_model.ground_truth",
    )
    assert [(p.question, p.answer) for p in problems] == [
        (f"Find {i}.", str(i)) for i in range(3)
    ]
    assert problems[0].meta["data_source"] == "math_dapo"


def test_copies_of_a_row_are_left_out(tmp_path, caplog):
    """BytedTsinghua-SIA/DAPO-Math-17k on the hub has 1,791,700 rows: 17,917 of them,
    each 100 times with the same index. A question that comes again under another index
    is another row."""
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Find {i % 4}."}],
            "reward_model": {"ground_truth": str(i % 4), "style": "rule"},
            "extra_info": {"index": f"uuid-{i}"},
        }
        for i in range(5)
    ]
    datasets.Dataset.from_list(rows * 100).save_to_disk(tmp_path / "dapo")
    with caplog.at_level(logging.WARNING):
        problems = load(tmp_path / "dapo", evaluation="packaged:gsm8k")
    assert [p.id for p in problems] == [f"uuid-{i}" for i in range(5)]
    assert [p.answer for p in problems] == ["0", "1", "2", "3", "0"]
    assert "left out 495 rows that repeat the id, question and answer" in caplog.text


def test_values_that_are_no_json_become_text(tmp_path):
    day = datetime.date(2024, 1, 2)
    rows = [row | {"day": day} for row in ROWS]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    assert load(tmp_path / "saved")[0].meta["day"] == "2024-01-02"


def test_a_bad_row_is_named(tmp_path):
    rows = [{"question": "q", "answer": "1"}, {"question": "", "answer": "2"}]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"hub:.*saved, row 1: the question is empty"):
        load(tmp_path / "saved")


def test_several_splits_without_train_are_explained(tmp_path):
    parts = {"easy": ROWS[:5], "hard": ROWS[5:]}
    datasets.DatasetDict(
        {name: datasets.Dataset.from_list(rows) for name, rows in parts.items()}
    ).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match="has the splits easy, hard and no 'train'"):
        load(tmp_path / "saved")


def test_a_missing_folder_is_explained(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere .*data\.train"):
        load(tmp_path / "nowhere")


def test_a_folder_without_data_is_explained(tmp_path):
    (tmp_path / "readme.txt").write_text("nothing here")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "state.json").write_text("{")
    with pytest.raises(ValueError, match=r"cannot be loaded .*data\.subset"):
        load(tmp_path / "damaged")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("Couldn't reach 'a/b'"),
        TimeoutError("timed out"),
        TimeoutError(),
    ],
)
def test_no_network_says_what_to_do(monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(ConnectionError, match="hub:a/b: cannot be fetched") as caught:
        load("a/b")
    assert f"({type(error).__name__}" in str(caught.value)
    assert "set data.train=hub:FOLDER" in str(caught.value)
    assert "packaged:gsm8k needs no download" in str(caught.value)
