"""Counts of a model on problems: written, read back, and refused when damaged."""

import gzip

import pytest

from rlvr_jax.analysis.counts import ProblemCounts, paired, read_counts, write_counts

FULL = ProblemCounts(
    "a",
    2,
    1,
    "gsm8k",
    correct=[1, 0],
    answers=[0, -1],
    tokens=[5, 7],
    ended=[1, 0],
    logprobs=[-0.5, -1.0],
    base_logprobs=[-0.25, -2.0],
    completions=["4", "é\u2028"],
)


def test_what_is_written_is_read(tmp_path):
    """A line separator inside a completion is no end of a line."""
    problems = [FULL, ProblemCounts("b", 3, 0)]
    write_counts(tmp_path / "counts.jsonl", problems)
    assert read_counts(tmp_path / "counts.jsonl") == problems
    text = (tmp_path / "counts.jsonl").read_bytes()
    assert text.split(b"\n")[1] == b'{"id": "b", "n": 3, "c": 0}'
    (tmp_path / "counts.jsonl.gz").write_bytes(gzip.compress(text))
    assert read_counts(tmp_path / "counts.jsonl.gz") == problems


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "n": 3}',
        '{"id": "a", "n": 3, "c": 4}',
        '{"id": "a", "n": 0, "c": 0}',
        '{"id": "a", "n": 2.5, "c": 1}',
        '{"id": "a", "n": 2, "c": 1, "tokens": [1]}',
        '{"id": "0", "n": 2, "c": 1}',
        "[1]",
        "{",
    ],
)
def test_bad_lines_are_named(tmp_path, line):
    (tmp_path / "counts.jsonl").write_text('{"id": "0", "n": 1, "c": 1}\n' + line)
    with pytest.raises(ValueError, match=r"counts\.jsonl:2 needs an object"):
        read_counts(tmp_path / "counts.jsonl")


def test_an_empty_file_holds_no_problems(tmp_path):
    (tmp_path / "counts.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="holds no problems"):
        read_counts(tmp_path / "counts.jsonl")


def test_only_the_same_problems_are_paired():
    one, two = ProblemCounts("a", 2, 1), ProblemCounts("b", 2, 0)
    assert paired([one, two], [two, one]) == ([one, two], [one, two])
    with pytest.raises(ValueError, match="1 only in the first, 1 only in the second"):
        paired([one], [two])


@pytest.mark.parametrize("damage", [lambda b: b[:-20], lambda b: b[:15] + b"?" * 40])
def test_a_compressed_file_that_is_cut_off_is_named(tmp_path, damage):
    path = tmp_path / "counts.jsonl.gz"
    path.write_bytes(damage(gzip.compress(b'{"id": "a", "n": 4, "c": 1}\n' * 50)))
    with pytest.raises(ValueError, match=r"counts\.jsonl\.gz: the compressed file is"):
        read_counts(path)
