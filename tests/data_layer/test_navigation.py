"""Walks over grids, by compass and by turns."""

import json

import pytest

from rlvr_jax.data import tasks
from rlvr_jax.data.tasks.navigation import by_turns, shortest_way
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.navigation import verify

MAP = {
    "size": 3,
    "start": [1, 3],
    "goal": [3, 3],
    "blocked": [[2, 3]],
    "facing": "north",
    "actions": "absolute",
}


def walks(actions, split="train", **options):
    settings = {"count": 60, "evaluation_count": 40, "actions": actions} | options
    return tasks.generate("navigation", 0, split, options=json.dumps(settings))


def judged(text, **changes):
    return verify(Sample("navigation", text, MAP | changes, "", {}))


@pytest.mark.parametrize("actions", ["absolute", "relative"])
def test_the_worked_way_of_every_map_verifies(actions):
    """DATA-21: absolute and relative actions; the way is a shortest one."""
    for problem in walks(actions):
        sample = Sample("navigation", problem.meta["solution"], problem.answer, "", {})
        assert verify(sample).status is Status.CORRECT, problem.question
        assert problem.meta["moves"] >= 2


@pytest.mark.parametrize(
    ("text", "status", "detail"),
    [
        ("north, east, east, south", Status.CORRECT, "at (3, 3) after 4 actions"),
        ("So: <answer>North East, EAST; south.</answer>", Status.CORRECT, "at (3, 3)"),
        ("north, north, east, east, south, south", Status.CORRECT, "after 6"),
        ("east, east", Status.WRONG, "action 1 enters blocked (2, 3)"),
        ("south, north", Status.WRONG, "action 1 leaves the grid"),
        ("north, east", Status.WRONG, "ends at (2, 2), not at (3, 3)"),
        ("north, jump", Status.UNPARSEABLE, "'jump' is no action"),
        ("forward", Status.UNPARSEABLE, "they are north, east, south, west"),
        ("", Status.UNPARSEABLE, "no list of actions"),
        ("<answer>north</answer><answer>east</answer>", Status.UNPARSEABLE, "several"),
    ],
)
def test_verdicts_on_a_known_map(text, status, detail):
    """DATA-21: walked by hand on 3 x 3; the field in between is blocked."""
    found = judged(text)
    assert (found.status, detail in found.detail) == (status, True), found.detail


def test_the_other_rule_needs_other_actions():
    """DATA-21: the same map under relative actions."""
    right = "forward, right, forward, forward, right, forward"
    assert judged(right, actions="relative").status is Status.CORRECT
    assert judged(right).status is Status.UNPARSEABLE
    way = shortest_way(3, (1, 3), (3, 3), [(2, 3)])
    assert by_turns(way, "north") == right.split(", ")
    assert judged(right, actions="relative", facing="east").status is Status.WRONG


def test_maps_held_out_under_one_rule_are_held_out_under_the_other():
    keys = [
        {(str(p.answer["start"]), str(p.answer["goal"]), str(p.answer["blocked"]))}
        for p in walks("absolute", count=400)
    ]
    trained = set().union(*keys)
    for problem in walks("relative", "evaluation"):
        reference = problem.answer
        key = tuple(str(reference[name]) for name in ("start", "goal", "blocked"))
        assert key not in trained


@pytest.mark.parametrize("broken", [{"start": "x"}, {"facing": "up"}, {"size": None}])
def test_a_bad_reference_is_said_to_be_one(broken):
    assert judged("north", **broken).status is Status.BAD_REFERENCE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, "size is from 2 to 20"),
        ({"blocked": 24}, "blocked leaves two of 25 fields free"),
        ({"min_moves": 30}, "found no way of 30 moves"),
    ],
)
def test_impossible_options_are_explained(options, message):
    with pytest.raises(ValueError, match="task:navigation") as caught:
        walks("absolute", **options)
    assert message in str(caught.value)
