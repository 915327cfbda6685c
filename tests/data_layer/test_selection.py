"""Filters by a field, and their errors."""

import pytest

from rlvr_jax.data import selection
from rlvr_jax.data.rows import Problem

PROBLEMS = [
    Problem(str(i), f"q{i}", str(i), "", {"level": i, "subject": "ab"[i % 2]})
    for i in range(6)
]


def test_several_fields_must_all_match():
    kept = selection.keep_matching(PROBLEMS, '{"level": [1, 2, 3], "subject": ["b"]}')
    assert [p.id for p in kept] == ["1", "3"]


def test_an_empty_filter_keeps_all():
    assert selection.keep_matching(PROBLEMS, "{}") == PROBLEMS


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("{", "data.keep is not JSON"),
        ('{"level": 3}', "needs a list of values for each field"),
        ("[3]", "needs a list of values for each field"),
        ('{"levl": [3]}', "unknown field 'levl'; did you mean 'level'?"),
        ('{"level": [30]}', "no row has 'level' in [30]; rows have 0, 1, 2"),
    ],
)
def test_a_filter_that_cannot_work_is_explained(keep, message):
    with pytest.raises(ValueError, match=r"data\.keep") as caught:
        selection.keep_matching(PROBLEMS, keep)
    assert message in str(caught.value)


def test_answers_of_any_json_kind_are_compared():
    same = {"target": 5, "numbers": [2, 3]}
    rows = [
        Problem("a", "q", same, "", {}),
        Problem("b", "q", dict(reversed(same.items())), "", {}),
        Problem("c", "r", None, "", {}),
        Problem("d", "r", "1", "", {}),
    ]
    kept, repeated, conflicting = selection.deduplicate(rows)
    assert [p.id for p in kept] == ["a"]
    assert (repeated, conflicting) == (1, 2)
