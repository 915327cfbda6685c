"""Which verified completions become rows to imitate."""

import json
import types

import numpy as np
import pytest
from flax import nnx

from rlvr_jax import config as config_lib
from rlvr_jax.data.long2short import Sampled
from rlvr_jax.data.prompts import EncodedPrompts, encode_solutions
from rlvr_jax.data.rows import Problem, row_to_problem
from rlvr_jax.data.tokenizer import load_tokenizer
from rlvr_jax.train.demonstrations import Rules, as_row, sample_demonstrations
from rlvr_jax.train.evaluation import Batch, Evaluation

MIXED = "We add three and four. 我们得到七然后检查一遍。"


def samples(*rows):
    return [Sampled(text, tokens, correct) for text, tokens, correct in rows]


def test_correct_ones_once_each_up_to_the_cap():
    """REC-06: wrong ones go, a text counts once, at most so many of a problem."""
    drawn = samples(
        ("b", 9, True), ("x", 1, False), ("a", 7, True), ("b", 9, True), ("c", 8, True)
    )
    assert Rules().choose(drawn) == ["b", "a", "c"]
    assert Rules(per_problem=2).choose(drawn) == ["b", "a"]
    assert Rules(per_problem=2, shortest=True).choose(drawn) == ["a", "c"]
    assert Rules().choose(samples(("x", 1, False))) == []


@pytest.mark.parametrize(
    ("rules", "text", "stays"),
    [
        (Rules(language="en"), "We add 3 and 4, which gives 7.", True),
        (
            Rules(language="en"),
            "We add three and four. 我们得到七然后检查一遍。",
            False,
        ),
        (Rules(language="en"), "3 + 4 = 7", True),
        (Rules(), MIXED, True),
        (Rules(max_paragraph_words=5), "one two three four five\nsix", True),
        (Rules(max_paragraph_words=5), "one two three four five six", False),
        (Rules(code_blocks=False), "```python\nprint(7)\n```", False),
        (Rules(code_blocks=False), "print it: 7", True),
        (Rules(), "```python\nprint(7)\n```", True),
    ],
)
def test_what_can_be_read(rules, text, stays):
    """REC-06, the three filters of DeepSeek-R1: mixed languages, long paragraphs, code
    blocks."""
    assert rules.readable(text) is stays


def test_a_row_is_read_back_as_a_problem_with_solutions():
    """Through the file's form: JSON, then what the cold start encodes; a solution that
    the problem came with is replaced."""
    meta = {"domain": "sums", "solution": "old", "solutions": ["older"], "level": 3}
    problem = Problem("sums-1", "3 + 4 =", "7", "math", meta)
    row = json.loads(json.dumps(as_row(problem, ["4 + 3\n7", "7"])))
    data = config_lib.DataConfig(template="raw")
    back = row_to_problem(row, data=data, default_id="none")
    assert (back.id, back.question, back.answer) == ("sums-1", "3 + 4 =", "7")
    assert back.verifier == "math"
    assert back.meta == {"domain": "sums", "level": 3, "solutions": ["4 + 3\n7", "7"]}
    tokenizer = load_tokenizer("")
    encoded = encode_solutions([back], data, tokenizer)[0]
    assert encoded[1] == [*tokenizer.encode(" 7"), tokenizer.eos_ids[0]]


class Planted(Evaluation):
    """Three problems, four completions each, in batches of two."""

    prompts = EncodedPrompts(
        [Problem(f"p{i}", "?", "7", "math", {}) for i in range(3)], [[4]] * 3, 0
    )

    def __init__(self):
        """Without what samples."""

    def sampled(self, parameters):
        texts = [" 7", " 8", " 3+4\n7", " cut 7", " 1", " 2", " 3", " 4"]
        yield planted([0, 1], 2, texts, correct=[0, 2, 3], cut=[3])
        texts = [" wait, 7", " 7", " so 7", " 7", *[" 7"] * 4]
        yield planted([2, 0], 1, texts, correct=range(8), cut=[])


def planted(rows, used, texts, *, correct, cut):
    one = lambda places: np.isin(np.arange(8), places).reshape(2, 4)
    scores = types.SimpleNamespace(texts=texts, correct=one(list(correct)) * 1.0)
    tokens = np.zeros((2, 4, 5), int)
    lengths, ended = np.full((2, 4), 5), ~one(cut)
    return Batch(np.array(rows), used, None, tokens, lengths, ended, scores, None)


def test_what_was_verified_is_kept_and_nothing_else():
    """REC-06: exactly the correct ones that ended, by problem; rows that only fill a
    batch up do not count; of a problem without any there is no row."""
    found = sample_demonstrations(Planted(), nnx.State({}), Rules(), template="raw")
    kept = {row["id"]: row["meta"]["solutions"] for row in found.rows}
    assert kept == {"p0": ["7", "3+4\n7"], "p2": ["wait, 7", "7", "so 7"]}
    assert (found.completions, found.correct, found.kept) == (12, 6, 5)
    fewer = sample_demonstrations(
        Planted(), nnx.State({}), Rules(drop_branching=0.2), template="chat"
    )
    kept = {row["id"]: row["meta"]["solutions"] for row in fewer.rows}
    assert kept == {"p0": [" 7", " 3+4\n7"], "p2": [" 7", " so 7"]}
