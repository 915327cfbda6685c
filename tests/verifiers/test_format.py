"""Rewards for the form of a completion: OBJ-08, VER-04."""

import pytest

from rlvr_jax.verifiers.base import Sample, apply
from rlvr_jax.verifiers.registry import resolve


def score(name, completion):
    return apply(resolve(name), Sample(name, completion, None)).score


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("<think>a</think>b", 1.0),
        ("<think>\na\n</think>\n\n\\boxed{1}", 1.0),
        ("  <think>a</think>b", 1.0),
        ("<think></think>b", 1.0),
        ("<think>a</think>", 0.0),  # no answer
        ("<think>a</think>  \n", 0.0),
        ("<think>a", 0.0),  # missing close
        ("a</think>b", 0.0),  # missing open
        ("<think>a</think><think>b</think>c", 0.0),  # two blocks
        ("<think>a<think>b</think>c", 0.0),
        ("<think>a</think>b</think>", 0.0),
        ("Well: <think>a</think>b", 0.0),  # text before the tag
        ("b", 0.0),
        ("", 0.0),
    ],
)
def test_think(completion, expected):
    """OBJ-08: a think block at the start, once; and neighbouring cases."""
    assert score("format:think", completion) == expected


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (r"so \boxed{1}", 1.0),
        (r"so \fbox{\frac{1}{2}}", 1.0),
        (r"<think>\boxed{1}, no</think> \boxed{2}", 1.0),
        (r"\boxed{1} \boxed{1}", 0.0),
        (r"\boxed{1} \boxed{2}", 0.0),
        (r"\boxed{ }", 0.0),
        (r"\boxed{1", 0.0),
        (r"<think>\boxed{1}</think> 1", 0.0),
        (r"<think>so \boxed{1}", 0.0),  # cut off while thinking
        ("1", 0.0),
    ],
)
def test_boxed(completion, expected):
    assert score("format:boxed", completion) == expected


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("<think>a</think> <answer>1</answer>", 1.0),
        ("<answer>\n1\n</answer>\n", 1.0),
        ("<answer>1</answer> that is it", 0.0),
        ("<answer>1</answer><answer>1</answer>", 0.0),
        ("<answer></answer>", 0.0),
        ("<answer>1", 0.0),
        ("1", 0.0),
    ],
)
def test_answer_tag(completion, expected):
    assert score("format:answer_tag", completion) == expected


@pytest.mark.parametrize(
    ("completion", "boxed", "tagged"),
    [
        (r"<think>a</think>\boxed{1}", 1.0, 0.0),
        ("<think>a</think><answer>1</answer>", 0.0, 1.0),
        (r"<think>a</think><answer>\boxed{1}</answer>", 1.0, 1.0),
        (r"\boxed{1}", 0.0, 0.0),
        ("<answer>1</answer>", 0.0, 0.0),
        (r"<think>a</think>\boxed{1} \boxed{2}", 0.0, 0.0),
        (r"<think>a</think><think>b</think>\boxed{1}<answer>1</answer>", 0.0, 0.0),
        (r"<think>\boxed{1}</think><answer></answer>", 0.0, 0.0),
    ],
)
def test_thoughts_and_one_answer_mark(completion, boxed, tagged):
    """VER-04: the thinking block, then exactly one box; or one answer tag."""
    assert score("format:think_boxed", completion) == boxed
    assert score("format:think_answer", completion) == tagged


@pytest.mark.parametrize(
    ("question", "thinks"),
    [
        ("2 + 2?", True),
        ("2 + 2? /think", True),
        ("2 + 2? /no_think", False),
        ("/no_think 2 + 2? /think", True),
        ("/think 2 + 2? /no_think", False),
        ("hello /no_think\nhi\n2 + 2? /think\n4\nagain /no_think", False),
        ("what does </think> do? /no_think", False),
        ("what does </no_think> or and/think do?", True),
        ("/no_thinking at all", True),
    ],
)
def test_the_last_flag_of_the_question_decides(question, thinks):
    """REC-13: /no_think wants an empty block, /think or nothing one with words."""
    verify = resolve("format:think_flag")
    for completion, thought in (
        ("<think>\n2 and 2\n</think>\n\n4", True),
        ("<think>\n\n</think>\n\n4", False),
    ):
        sample = Sample("format:think_flag", completion, None, question)
        assert apply(verify, sample).score == float(thought == thinks)
    for completion in ("4", "<think>2</think>", "<think></think>4<think></think>"):
        sample = Sample("format:think_flag", completion, None, question)
        assert apply(verify, sample).score == 0.0
