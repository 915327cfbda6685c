"""reward.parts: how it is read, and what the parts are worth."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import RewardConfig
from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.rollout.rewards import (
    Part,
    labels,
    parse_parts,
    part_values,
    parts_of,
    places,
    verifiers_of,
)

EVERYWHERE = np.ones((1, 4), bool)


def grid(*values):
    return np.array([values], np.float32)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("answer", Part(1.0, "answer")),
        ("0.1*format:think", Part(0.1, "format:think")),
        (" -10 * truncated ", Part(-10.0, "truncated")),
        ("1e-2*mine.py:check", Part(0.01, "mine.py:check")),
        (
            "0.1*language if format:think and not truncated",
            Part(0.1, "language", gates=(("format:think", True), ("truncated", False))),
        ),
        (
            "judge:rubric if domain=chat and not level=3 and answer",
            Part(
                1.0,
                "judge:rubric",
                gates=(("answer", True),),
                rows=(("domain", "chat", True), ("level", "3", False)),
            ),
        ),
        (
            "0.2*rank(judge:rubric) if answer",
            Part(0.2, "judge:rubric", ranked=True, gates=(("answer", True),)),
        ),
    ],
)
def test_a_part_in_words(text, part):
    assert parse_parts(text) == [part]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" , ", "is empty"),
        ("two words", "cannot read 'two words'"),
        ("answer if", "cannot read 'answer if'"),
        ("x*answer", "cannot read"),
        ("0.5.1*answer", "cannot read '0.5.1*answer'"),
        (".*answer", "cannot read"),
        ("rank(answer", "cannot read"),
        ("answer) if ended", "cannot read"),
        ("answer if a or b", "cannot read the condition 'a or b'"),
    ],
)
def test_what_cannot_be_read_is_shown(text, words):
    with pytest.raises(ValueError, match=r"^reward\.parts") as caught:
        parse_parts(text)
    assert words in str(caught.value)


def test_the_format_reward_is_one_more_part():
    parts = parts_of(RewardConfig(format="think", format_weight=0.25))
    assert parts == [Part(1.0, "answer"), Part(0.25, "format:think")]
    assert parts_of(RewardConfig()) == [Part(1.0, "answer")]


def test_verifiers_are_those_of_parts_and_conditions():
    parts = parse_parts("answer, 0.1*language if format:think and ended, -1*truncated")
    assert verifiers_of(parts) == ["format:think", "language"]


def test_labels_are_plain_and_distinct():
    parts = parse_parts("answer, rank(judge), x/my.py:check, answer if ended, judge")
    expected = ["answer", "rank_judge", "my.py_check", "answer_2", "judge"]
    assert labels(parts) == expected


def test_conditions_open_and_close_a_part():
    """Passed is a score of 1; the second completion fails one, the third the other."""
    (part,) = parse_parts("language if format:think and not truncated")
    passed = {
        "format:think": grid(1, 0, 1, 1) >= 1,
        "truncated": grid(0, 0, 1, 0) >= 1,
    }
    values = {"language": grid(0.75, 0.5, 0.5, 1.0)}
    worth = part_values(part, values, passed, EVERYWHERE)
    np.testing.assert_array_equal(worth, [[0.75, 0, 0, 1]])
    elsewhere = part_values(part, values, passed, ~EVERYWHERE)
    np.testing.assert_array_equal(elsewhere, np.zeros((1, 4)))


def test_places_sum_to_zero_and_ties_share():
    """0.1 < 0.5 = 0.5 < 0.9: -1/2, 0, 0, 1/2; the one left out does not count."""
    scores = np.array([0.5, 0.9, 7.0, 0.1, 0.5], np.float32)
    counted = np.array([True, True, False, True, True])
    np.testing.assert_allclose(places(scores, counted), [0, 0.5, 0, -0.5, 0])
    np.testing.assert_array_equal(places(scores, counted & (scores > 0.8)), [0] * 5)


def test_right_answers_are_graded_against_each_other():
    """OBJ-15: where all pass, binary advantages are 0 and graded ones are not.

    They sum to 0 and are in the order of the grades; a wrong answer gets no grade.
    """
    (part,) = parse_parts("rank(judge:rubric) if answer")
    grades = {"judge:rubric": grid(0.3, 0.9, 0.6, 0.1)}
    group = jnp.zeros(4, int)
    right = grid(1, 1, 1, 1)
    worth = part_values(part, grades, {"answer": right >= 1}, EVERYWHERE)
    binary = group_advantages(jnp.array(right[0]), group)
    np.testing.assert_array_equal(binary, np.zeros(4))
    graded = np.asarray(group_advantages(jnp.array((right + 0.2 * worth)[0]), group))
    assert np.argsort(graded).tolist() == [3, 0, 2, 1]
    assert np.abs(graded).min() > 0.1
    assert graded.sum() == pytest.approx(0, abs=1e-5)
    mixed = part_values(part, grades, {"answer": grid(1, 1, 0, 1) >= 1}, EVERYWHERE)
    np.testing.assert_allclose(mixed, [[0, 0.5, 0, -0.5]])


def test_a_policy_learns_the_format_before_the_answer():
    """VER-04: 30 % formatted and 0.1 % right at the start, Magistral's weights.

    Exact policy gradient of two independent choices. The format is learned first, and
    nearly all reward comes from it until the answers follow.
    """
    parts = parse_parts("0.1*format:think, 0.9*answer if format:think")
    formatted, right = grid(0, 0, 1, 1), grid(0, 1, 0, 1)
    values = {"format:think": formatted, "answer": right}
    passed = {name: value >= 1 for name, value in values.items()}
    worth = np.stack(
        [
            part.weight * part_values(part, values, passed, EVERYWHERE)[0]
            for part in parts
        ]
    )
    logits = np.log(np.array([0.3 / 0.7, 0.001 / 0.999]))
    path = []
    for _ in range(3000):
        f, c = 1 / (1 + np.exp(-logits))
        shares = np.array([(1 - f) * (1 - c), (1 - f) * c, f * (1 - c), f * c])
        paid = worth @ shares
        path.append((f, c, paid[0] / paid.sum()))
        total = worth.sum(axis=0)
        logits += [
            0.5 * ((formatted[0] - f) * shares) @ total,
            0.5 * ((right[0] - c) * shares) @ total,
        ]
    f, c, share = np.array(path).T
    learned_format, learned_answer = (f > 0.9).argmax(), (c > 0.5).argmax()
    assert 0 < learned_format < learned_answer
    assert share[0] > 0.8
    assert share[-1] < 0.12
    assert c[-1] > 0.95
