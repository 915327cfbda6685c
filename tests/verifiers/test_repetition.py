"""Loops and gibberish: "gibberish and repetition in long samples"."""

import gzip
import json
import pathlib
import random
import time

import pytest

from rlvr_jax.verifiers import repetition
from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.registry import resolve

DATA = pathlib.Path(__file__).parents[1] / "data"
ORDINARY = (
    "We first count the pairs. There are 12 apples in each of the 3 boxes, so 36 in "
    "all; half of them are red. Then 36 / 2 = 18 remain, and the answer is 18."
)


def judge(completion):
    return apply(resolve("repetition"), Sample("", completion, None))


def letters(seed, count):
    draw = random.Random(seed)
    return "".join(draw.choice("bcdfghjklmnpqrstvwxyz    ") for _ in range(count))


@pytest.mark.parametrize(
    ("completion", "fault"),
    [
        ("Wait, let me check again. " * 40, "are a loop"),
        (ORDINARY + " the" * 60, "are a loop"),
        (ORDINARY + " 1/3 = 0." + "3" * 300, "are a loop"),
        (ORDINARY + "\n" * 300, "are a loop"),
        ("我想想。" * 60, "are a loop"),
        ("Hmm, no. " * 90 + "So the answer is 18.", "6-grams are repeated"),
        ("Hmm, no. " * 90 + "So the answer is 18.", "it compresses to"),
        (letters(0, 600), "of the words are none"),
        (ORDINARY + " \ufffd\ufffd" * 40, "of the words are none"),
    ],
)
def test_degenerate_text(completion, fault):
    verdict = judge(completion)
    assert (verdict.status, verdict.score) == (Status.WRONG, 0.0)
    assert fault in verdict.detail


def test_ordinary_text_has_no_fault():
    """Recorded responses, problems and programs of five data sets: none is flagged."""
    texts = [ORDINARY, "18", "So \\boxed{18}.", "- a\n- b\n" * 3]
    with gzip.open(DATA / "verify" / "ifeval.jsonl.gz", "rt", encoding="utf8") as file:
        texts += [json.loads(line)["response"] for line in file]
    for name in ("dapo_math_17k", "humaneval", "ifeval", "mbpp"):
        path = DATA / "problems" / f"{name}.jsonl"
        texts += [str(json.loads(line)) for line in path.read_text().splitlines()]
    assert len(texts) > 280
    assert [t for t in texts if t.strip() and judge(t).score != 1.0] == []


def test_measures_by_hand():
    """Six words 20 times: 115 six-grams, 6 of them distinct; 600 characters of loop."""
    measured = repetition.measure("one two three four five sixx. " * 20)
    units = 7 * 20
    assert measured.repeated_ngrams == pytest.approx(1 - 7 / (units - 5))
    assert measured.loop_characters == 600
    assert measured.non_words == 0.0


@pytest.mark.parametrize("block", ["a", "ab", "abc ", "the end. "])
@pytest.mark.parametrize("before", ["", "Some text before it. "])
def test_the_loop_at_the_end_is_found_whole(block, before):
    """Its length, to less than a block: a loop may run into the text before."""
    text = before + block * (400 // len(block))
    found = repetition.measure(text).loop_characters
    assert 0 <= found - (len(text) - len(before)) < len(block)


def test_short_loops_and_loops_in_the_middle_are_none():
    assert repetition.measure("no " * 20).loop_characters == 0
    block = "Then the same sentence comes once more. "
    assert repetition.measure(block * 3).loop_characters == 0
    assert repetition.measure(block * 4).loop_characters == 4 * len(block)
    assert repetition.measure("no " * 90 + ORDINARY).loop_characters == 0


def test_an_empty_completion_is_unparseable():
    assert judge(" \n").status is Status.UNPARSEABLE


@pytest.mark.parametrize("atom", ["a", "ab ", "\n", "你", "`", "$", "\\[", "aB"])
def test_time_is_linear(atom):
    start = time.process_time()
    judge(atom * 40_000)
    assert time.process_time() - start < 2
