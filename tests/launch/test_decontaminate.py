"""The command that looks for evaluation questions in training data."""

import json
import pathlib

import pytest

from launch import decontaminate

EXTRACTS = pathlib.Path(__file__).parents[1] / "data" / "problems"
TRAIN = str(EXTRACTS / "overlap_training.jsonl")
AGAINST = str(EXTRACTS / "overlap_evaluation.jsonl")


def test_counts_are_printed_and_the_rest_is_written(tmp_path, capsys):
    """DATA-24: what is left is data that a run reads."""
    out = tmp_path / "new" / "clean.jsonl"  # in a folder that is not there yet
    arguments = ["--train", TRAIN, "--against", f"{AGAINST},packaged:gsm8k"]
    decontaminate.main([*arguments, "--json", "--write", str(out)])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"against": AGAINST, "equal": 7, "close": 3, "training": 12}
    assert (second["equal"], second["close"]) == (0, 0)
    kept = decontaminate.read_problems(str(out))
    assert len(kept) == 6
    original = {p.id: p for p in decontaminate.read_problems(TRAIN)}
    assert [p.question for p in kept] == [original[p.id].question for p in kept]


def test_people_see_the_pairs(capsys):
    decontaminate.main(["--train", TRAIN, "--against", AGAINST, "--show", "1"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "100% in dapo17k" in printed
    assert "training rows" in printed


def test_a_missing_file_is_one_line(capsys):
    with pytest.raises(SystemExit) as caught:
        decontaminate.main(["--train", "nowhere.jsonl", "--against", AGAINST])
    assert str(caught.value).startswith("launch.decontaminate: data: there is no file")
