"""Probes of given samples, each with a case whose answer is known."""

import collections

import numpy as np
import pytest

from rlvr_jax.analysis.probes import (
    format_decomposition,
    memory_scores,
    partial_prompt,
    rank_for_one_shot,
    relabelled_share,
    tilt_to_majority,
)


def questions(count: int, seed: int) -> list[str]:
    """Word problems of one form with names and numbers drawn."""
    rng = np.random.default_rng(seed)
    names, things = ["Ann", "Bo", "Cy", "Di"], ["pens", "figs", "nuts", "cups"]
    return [
        f"{names[rng.integers(4)]} has {rng.integers(100, 999)} "
        f"{things[rng.integers(4)]} and buys {rng.integers(100, 999)} "
        f"more so how many are there at {rng.integers(1, 12)} o'clock if "
        f"{rng.integers(100, 999)} get lost"
        for _ in range(count)
    ]


class Backoff:
    """Continues a text by the most frequent next word after its longest known end."""

    def __init__(self, texts):
        self.next = collections.defaultdict(collections.Counter)
        for text in texts:
            words = text.split()
            for at in range(1, len(words)):
                for start in range(at):
                    self.next[tuple(words[start:at])][words[at]] += 1

    def complete(self, text: str, count: int) -> str:
        words = text.split()
        first = len(words)
        while len(words) < first + count:
            ends = (tuple(words[start:]) for start in range(len(words)))
            known = next((end for end in ends if end in self.next), None)
            words.append(self.next[known].most_common(1)[0][0] if known else "more")
        return " ".join(words[first:])


def test_a_model_that_has_seen_the_questions_completes_them():
    """SPU-10: trained on the 60 questions asked, or on 60 others of the same form; the
    numbers of the second half cannot be guessed."""
    asked = questions(60, seed=0)
    cut = [partial_prompt(question, 0.6) for question in asked]
    found = {}
    for name, texts in (("seen", asked), ("clean", questions(60, seed=1))):
        model = Backoff(texts)
        written = [model.complete(first, len(rest.split())) for first, rest in cut]
        found[name] = memory_scores([rest for _, rest in cut], written)
    assert found["seen"]["exact"] > 0.9
    assert found["seen"]["rouge_l"] > 0.95
    assert found["clean"]["exact"] < 0.05
    assert found["clean"]["rouge_l"] < found["seen"]["rouge_l"]


def test_scores_by_hand():
    """SPU-10: of "a b c d", the completion "a x c d e" has "a c d" of 4 and 4 words."""
    assert memory_scores(["a b c d"], ["a x c d e"]) == {
        "exact": 0,
        "rouge_l": pytest.approx(2 * 3 / 8),
    }
    assert partial_prompt("one two three four five", 0.4) == (
        "one two",
        "three four five",
    )


def test_planted_right_labels_are_found():
    """SPU-11, SPU-02: 30 of 300 labels called wrong are what the solver finds."""
    labels = [str(i) for i in range(300)]
    solved = [
        label if i % 10 == 0 else f"not {label}" for i, label in enumerate(labels)
    ]
    share, low, high = relabelled_share(labels, solved)
    assert share == pytest.approx(0.1)
    assert 0.06 < low < 0.1 < high < 0.15


def test_the_most_variable_history_comes_first():
    """SPU-12: p = .5 over epochs varies by .25, p = .1 by .09, never or always by 0."""
    history = np.array(
        [
            [0.0] * 10,
            [1.0] + [0.0] * 9,
            [0.0, 1.0] * 5,
            [1.0] * 10,
            [0.4, 0.6] * 5,
        ]
    )
    assert rank_for_one_shot(history).tolist() == [2, 1, 4, 0, 3]


def test_the_vote_helps_iff_it_is_right():
    """SPU-13: the right answer, in column 0, is the mode, or is not."""
    policies = np.array([[0.4, 0.35, 0.25], [0.35, 0.4, 0.25]])
    right = tilt_to_majority(policies, 0.5)[:, 0]
    assert right[0] > policies[0, 0]
    assert right[1] < policies[1, 0]
    # By hand: .4 e^.5 / (.4 e^.5 + .6).
    assert right[0] == pytest.approx(0.4 * np.exp(0.5) / (0.4 * np.exp(0.5) + 0.6))
    # Repeated, the vote is all there is.
    for _ in range(60):
        policies = tilt_to_majority(policies, 0.5)
    np.testing.assert_allclose(policies[:, 0], [1, 0], atol=1e-9)


def test_form_and_ability_taken_apart():
    """SPU-18, SPU-03: 40 of 100 are read and half of those right; then 80 and half: the
    gain of 20 points is all form. From 80 read with half right to 80 with three
    quarters right, it is all ability. Both together sum to the change."""

    def sample(read, right):
        return np.arange(100) < read, np.arange(100) < right

    assert format_decomposition(*sample(40, 20), *sample(80, 40)) == pytest.approx(
        (0.2, 0.2, 0)
    )
    assert format_decomposition(*sample(80, 40), *sample(80, 60)) == pytest.approx(
        (0.2, 0, 0.2)
    )
    found = format_decomposition(*sample(40, 20), *sample(80, 60))
    assert found.change == pytest.approx(0.4)
    assert found.from_format + found.from_ability == pytest.approx(0.4)
    with pytest.raises(ValueError, match="an answer that was read"):
        format_decomposition(*sample(40, 50), *sample(80, 40))
