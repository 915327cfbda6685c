"""Rows of data files: their forms and the errors of bad ones."""

import gzip
import json
import pathlib

import pytest

from rlvr_jax.config import DataConfig
from rlvr_jax.data import rows
from rlvr_jax.data.problems import load_problems

SAMPLES = pathlib.Path(__file__).parents[1] / "data" / "problems"
GOOD = b'{"question": "1 + 1 =", "answer": "2"}\n'


def read(path, **settings):
    data = DataConfig(train=str(path), evaluation="packaged:gsm8k", **settings)
    return load_problems(data, split="train", default_verifier="math", seed=0)


def one(row, **settings):
    return rows.row_to_problem(row, data=DataConfig(**settings), default_id="d")


def test_a_plain_row_gets_id_domain_and_default_verifier(tmp_path):
    path = tmp_path / "sums.jsonl"
    path.write_bytes(GOOD + b"\n" + b'{"question": "2 + 2 =", "answer": 4, "id": 7}\n')
    first, second = read(path)
    assert (first.id, first.verifier, first.answer) == ("sums-0", "math", "2")
    assert first.meta == {"domain": "sums"}
    assert (second.id, second.answer) == ("7", 4)


def test_verifier_meta_and_other_fields_are_kept():
    row = {"question": "q", "answer": None, "verifier": "v.py:f", "level": 3}
    problem = one(row | {"meta": {"a": 1}})
    assert problem.verifier == "v.py:f"
    assert problem.answer is None
    assert problem.meta == {"level": 3, "a": 1}


def test_fields_are_named_by_the_settings():
    row = {"problem": "q", "reward_model": {"ground_truth": "34"}}
    problem = one(
        row, question_field="problem", answer_field="reward_model.ground_truth"
    )
    assert (problem.question, problem.answer) == ("q", "34")


def test_a_chat_as_question_is_its_last_message():
    # The form of verl's data sets, as BytedTsinghua-SIA/DAPO-Math-17k on the hub.
    chat = [{"role": "user", "content": "Solve it."}]
    assert one({"question": chat, "answer": "1"}).question == "Solve it."


def test_a_chat_of_several_turns_is_refused_and_not_cut():
    turn = {"role": "user", "content": "Solve it."}
    said = {"role": "assistant", "content": "How?"}
    for chat in ([turn, said, turn], [turn, said], [turn, turn]):
        for row in (
            {"question": chat, "answer": "1"},
            {"prompt": chat, "reward_model": {"ground_truth": "1"}},
        ):
            with pytest.raises(ValueError, match="the question is a chat of user"):
                one(row)


def test_system_messages_are_left_out_with_one_warning(caplog):
    chat = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]
    numbered = [(f"line {i}", {"question": chat, "answer": "1"}) for i in (1, 2)]
    found = rows.rows_to_problems(
        numbered, data=DataConfig(), source="f.jsonl", domain="f"
    )
    assert [problem.question for problem in found] == ["Q", "Q"]
    assert caplog.messages == [
        "f.jsonl: the system messages of 2 rows are not read; data.system_prompt is "
        "the one of all"
    ]


def test_gsm8k_hub_form_is_split_into_answer_and_solution():
    answer = "Weng earns 12/60 = $<<12/60=0.2>>0.2.\nSo 1,000.\n#### 1,000"
    problem = one({"question": "q", "answer": answer})
    assert problem.answer == "1000"
    assert problem.meta["solution"] == (
        "Weng earns 12/60 = $0.2.\nSo 1,000.\n#### 1,000"
    )


def test_gsm8k_solution_in_meta_gets_its_answer_line():
    meta = {"solution": "48/2 = <<48/2=24>>24 clips."}
    problem = one({"question": "q", "answer": "24", "meta": meta})
    assert problem.meta["solution"] == "48/2 = 24 clips.\n#### 24"
    other = {"solution": r"So $\boxed{24}$."}
    assert one({"question": "q", "answer": "24", "meta": other}).meta == other


@pytest.mark.parametrize("answer", ["#### (1, 2)", "so\n#### (1, 2)"])
def test_only_thousands_commas_leave_an_answer(answer):
    assert one({"question": "q", "answer": answer}).answer == "(1, 2)"


@pytest.mark.parametrize(
    ("name", "answer_type", "field"),
    [
        ("dapo_math_17k", str, "domain"),
        ("humaneval", str, "entry_point"),
        ("mbpp", str, "test_list"),
        ("ifeval", type(None), "instruction_id_list"),
    ],
)
def test_rows_of_public_data_sets_load(name, answer_type, field):
    problems = read(SAMPLES / f"{name}.jsonl")
    assert len(problems) == 3
    for problem in problems:
        assert isinstance(problem.answer, answer_type)
        assert problem.meta[field]
        assert problem.meta["domain"] == name


def test_rows_in_the_form_of_competitions_load():
    problems = read(SAMPLES / "competition_forms.jsonl")
    assert [p.answer for p in problems] == [r"\frac{2}{3}", "3", "249", "30", "150"]
    assert [p.meta.get("level") for p in problems] == [1, 3, None, None, None]


def test_text_is_not_ascii_only():
    chinese = read(SAMPLES / "dapo_math_17k.jsonl")[2]
    assert chinese.question.startswith("是否存在")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"question": "q"}', "line 2: has no field 'answer', only 'question'; add"),
        (b'{"answer": "1"}', "or name the right one in data.question_field"),
        (b'{"question": "", "answer": "1"}', "line 2: the question is empty"),
        (b'{"question": " \\n", "answer": "1"}', "line 2: the question is empty"),
        (b'{"question": "q", "answer": " "}', "line 2: field 'answer' is empty"),
        (b'{"question": 3, "answer": "1"}', "needs to be text, got 3"),
        (b'{"question": ["q"], "answer": "1"}', "needs to be text, got a list"),
        (b'{"question": "q", "answer"', "line 2: is not JSON"),
        (b"[1, 2]", "line 2: needs one JSON object a line, got a list"),
        (b'"text"', "got a string"),
        (b"null", "got null"),
        (b'{"question": "caf\xe9", "answer": "1"}', "is not UTF-8 (byte 0xe9 at co"),
        (b'{"question": "q", "answer": "1", "meta": 3}', "field 'meta' needs a JSON"),
        (b'{"question": "q", "answer": "1", "verifier": [1]}', "needs a name, got a"),
        (b"[" * 100_000, "line 2: cannot be read as JSON"),
        (b'{"question": "q", "answer": ' + b"9" * 5000 + b"}", "cannot be read as J"),
    ],
)
def test_a_bad_line_is_one_error_naming_file_and_line(tmp_path, line, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(GOOD + line + b"\n")
    with pytest.raises(ValueError, match=r"bad\.jsonl, line 2") as caught:
        read(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_id_used_twice_names_both_lines(tmp_path):
    path = tmp_path / "twice.jsonl"
    row = b'{"question": "q", "answer": "1", "id": "x"}\n'
    path.write_bytes(row + GOOD + row.replace(b"1", b"2"))
    with pytest.raises(ValueError, match="line 3: id 'x' was already used on line 1"):
        read(path)


def test_an_empty_file_is_an_error(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"\n\n")
    with pytest.raises(ValueError, match="holds no row"):
        read(path)


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD)
    assert len(read(path)) == 1


def test_gz_files_load(tmp_path):
    path = tmp_path / "good.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD * 3))
    assert [p.id for p in read(path)] == ["good-0", "good-1", "good-2"]


@pytest.mark.parametrize("damage", ["cut", "not gzip", "flipped"])
def test_a_damaged_gz_file_names_the_line(tmp_path, damage):
    lines = b"".join(
        json.dumps({"question": f"{i} + {i * i} =", "answer": i}).encode() + b"\n"
        for i in range(5000)
    )
    whole = bytearray(gzip.compress(lines))
    if damage == "flipped":
        whole[len(whole) // 2 : len(whole) // 2 + 40] = bytes(40)
    content = {"cut": whole[: len(whole) // 2], "not gzip": GOOD, "flipped": whole}
    path = tmp_path / "damaged.jsonl.gz"
    path.write_bytes(bytes(content[damage]))
    with pytest.raises(ValueError, match=r"damaged\.jsonl\.gz") as caught:
        read(path)
    assert "line" in str(caught.value)
