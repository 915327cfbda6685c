"""Rewards for the form of a completion: OBJ-08, VER-04."""

import numpy as np
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


ANSWERS = 200


def values(name, answer=None):
    """What a verifier pays each text: [with tags or not, which answer]."""
    texts = [
        [f"{start}\\boxed{{{number}}}" for number in range(ANSWERS)]
        for start in ("so ", "<think>so</think>")
    ]
    judge = resolve(name)
    return np.array(
        [[apply(judge, Sample(name, text, answer)).score for text in r] for r in texts]
    )


def train_planted_policy(seed, steps=150, groups=8, generations=16):
    """A policy of two choices, tags or none and one of 200 answers, under GRPO.

    With reward.parts="0.1*format:think, 0.9*exact". At the start half of its
    completions have the tags and 1 in 200 the right answer. Gives per step what
    `part/format_think` and `part/exact` log.
    """
    draw = np.random.default_rng(seed)
    form, right = 0.1 * values("format:think"), 0.9 * values("exact", "7")
    tags, logits, logged = 0.0, np.zeros(ANSWERS), []
    for _ in range(steps):
        rate = 1 / (1 + np.exp(-tags))
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        tagged = (draw.random((groups, generations)) < rate).astype(int)
        chosen = draw.choice(ANSWERS, (groups, generations), p=shares)
        rewards = form[tagged, chosen] + right[tagged, chosen]
        logged.append((form[tagged, chosen].mean(), right[tagged, chosen].mean()))
        centred = rewards - rewards.mean(1, keepdims=True)
        advantages = centred / (rewards.std(1, keepdims=True) + 1e-6)
        tags += (advantages * (tagged - rate)).mean()
        to_chosen = np.eye(ANSWERS)[chosen] - shares
        logits = logits + (advantages[..., None] * to_chosen).mean((0, 1))
    return np.array(logged).T


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_policy_learns_the_form_before_the_answer(seed):
    """VER-04: the form dominates early, and its share of the reward falls to 0.1.

    At the start the parts pay 0.1 / 2 and 0.9 / 200: 92 % of the reward is for form.
    """
    form, answer = train_planted_policy(seed)
    learned_form = int(np.argmax(form > 0.09))
    learned_answer = int(np.argmax(answer > 0.81))
    assert 0 < learned_form < learned_answer
    share = form / (form + answer)
    assert share[:3].mean() == pytest.approx(0.92, abs=0.08)
    assert share[-3:].mean() == pytest.approx(0.1, abs=0.01)
