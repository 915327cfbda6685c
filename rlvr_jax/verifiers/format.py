"""Rewards for the form of a completion: 1 if it fits, 0 if not; the answer is not read.

These read the whole completion, as the thinking tags are part of the form.
"""

import re

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict, answer_segment

_THINK = re.compile(r"\s*<think>(?P<thoughts>.*?)</think>(?P<rest>.*)", re.DOTALL)
_FLAG = re.compile(r"(?<![\w<])/(?:no_)?think\b(?!>)")


def think(sample: Sample) -> Verdict:
    """One <think>...</think> at the very start, then an answer.

    As the format reward of DeepSeek-R1: text before the block, a second block, a tag
    left open or nothing after it score 0.
    """
    match = _THINK.fullmatch(sample.completion)
    tags = re.findall(r"</?think>", sample.completion)
    if match is None or len(tags) != 2:
        return _verdict(False, "not one <think>...</think> block at the start")
    if not match["rest"].strip():
        return _verdict(False, "nothing after </think>")
    return _verdict(True, "one thinking block, then an answer")


def boxed(sample: Sample) -> Verdict:
    r"""Exactly one \boxed{...} with something inside, after any thinking block."""
    boxes = extract.boxes(answer_segment(sample.completion))
    fits = len(boxes) == 1 and bool(boxes[0].text.strip())
    return _verdict(fits, f"{len(boxes)} boxes")


def answer_tag(sample: Sample) -> Verdict:
    """Exactly one <answer>...</answer> with something inside, ending the completion."""
    tags = re.findall(r"</?answer>", sample.completion)
    match = re.search(r"<answer>(.*?)</answer>\s*$", sample.completion, re.DOTALL)
    fits = tags == ["<answer>", "</answer>"] and bool(match and match[1].strip())
    return _verdict(fits, f"{len(tags)} answer tags")


def think_boxed(sample: Sample) -> Verdict:
    """`think` and `boxed`: one thinking block, then an answer with exactly one box."""
    return _both(think(sample), boxed(sample))


def think_answer(sample: Sample) -> Verdict:
    """`think` and `answer_tag`: the template of DeepSeek-R1-Zero."""
    return _both(think(sample), answer_tag(sample))


def think_flag(sample: Sample) -> Verdict:
    """`think`, with thoughts or without as the question's last flag says.

    /no_think wants an empty block; /think, or no flag at all, one with words in it.
    The general RL of Qwen3 pays for that (sec. 4.4, https://arxiv.org/abs/2505.09388).
    """
    form = think(sample)
    if form.score != 1.0:
        return form
    flags = _FLAG.findall(sample.question)
    asked = not flags or flags[-1] == "/think"
    match = _THINK.fullmatch(sample.completion)
    thought = match is not None and bool(match["thoughts"].strip())
    wanted = "thoughts" if asked else "no thoughts"
    return _verdict(thought == asked, f"{wanted} asked for, thoughts: {thought}")


for _function in (think, boxed, answer_tag, think_boxed, think_answer, think_flag):
    _function.reads = "completion"  # type: ignore[attr-defined]


def _both(first: Verdict, second: Verdict) -> Verdict:
    fits = first.score == second.score == 1.0
    return _verdict(fits, f"{first.detail}; {second.detail}")


def _verdict(fits: bool, detail: str) -> Verdict:
    return Verdict(Status.CORRECT if fits else Status.WRONG, float(fits), detail)
