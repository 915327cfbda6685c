"""Rows for one model that thinks or does not, as the prompt says."""

import pytest

from rlvr_jax.data.modes import EMPTY, in_both_modes, without_thoughts
from rlvr_jax.verifiers.base import Sample, apply
from rlvr_jax.verifiers.registry import resolve

THOUGHT = "<think>\n3 + 4\n</think>\n\n7"


@pytest.mark.parametrize(
    "solution", [THOUGHT, "7", "\n7", "<think></think>7", EMPTY + "7"]
)
def test_without_thoughts_a_block_stays_and_is_empty(solution):
    assert without_thoughts(solution) == "<think>\n\n</think>\n\n7"


def test_every_row_does_what_its_last_flag_says():
    """REC-13: five ways to ask, each solution judged by `format:think_flag`."""
    row = {"id": "a", "question": "3 + 4 =", "answer": "7", "verifier": "math"}
    rows = in_both_modes({**row, "meta": {"solutions": [THOUGHT], "level": 1}})
    assert [each["question"] for each in rows] == [
        "3 + 4 =",
        "3 + 4 = /think",
        "/no_think 3 + 4 = /think",
        "3 + 4 = /no_think",
        "/think 3 + 4 = /no_think",
    ]
    verify = resolve("format:think_flag")
    for each in rows:
        (text,) = each["meta"]["solutions"]
        sample = Sample("format:think_flag", text, "7", each["question"])
        assert apply(verify, sample).score == 1.0
        assert (each["answer"], each["meta"]["level"]) == ("7", 1)
    assert len({each["id"] for each in rows}) == 5


def test_answers_without_thoughts_ask_for_none():
    row = {"question": "3 + 4 =", "meta": {"solutions": [THOUGHT, "7", "7."]}}
    thinks, _, _, answers, _ = in_both_modes(row)
    assert thinks["meta"]["solutions"] == [THOUGHT]
    assert answers["meta"]["solutions"] == [EMPTY + "7", EMPTY + "7."]
    assert "id" not in answers
