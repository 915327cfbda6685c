"""The `navigation` verifier: do the actions lead to the goal?"""

import re
from collections.abc import Mapping
from typing import Any

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict

_COMPASS = ("north", "east", "south", "west")
_STEPS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
_ACTIONS = {"absolute": _COMPASS, "relative": ("forward", "left", "right")}
_MAX_ACTIONS = 2_000


def verify(sample: Sample) -> Verdict:
    """Walks the actions in the <answer> tag or box, else on the last line.

    The reference is {"size": n, "start": [column, row], "goal": [column, row],
    "blocked": [[column, row], ...], "facing": "north", "actions": "absolute" or
    "relative"}; columns and rows count from 1, eastwards and southwards. A walk that
    leaves the grid or enters a blocked field is wrong, wherever it ends; it may pass
    over the goal.
    """
    try:
        field, goal, blocked = _places(sample.answer)
        size, looks = int(sample.answer["size"]), sample.answer["facing"]
        looks, known = _COMPASS.index(looks), _ACTIONS[sample.answer["actions"]]
    except (TypeError, KeyError, ValueError) as error:
        return Verdict(
            Status.BAD_REFERENCE,
            0.0,
            "navigation needs size, start, goal, blocked, facing and actions, got "
            f"{sample.answer!r:.120} ({type(error).__name__})",
        )
    marked = extract.marked_answers(sample.completion)
    if len(set(marked)) > 1:
        return Verdict(Status.UNPARSEABLE, 0.0, f"several answers: {marked!r:.200}")
    text = marked[0] if marked else extract.last_line(sample.completion)
    actions = re.findall(r"[^\s,;.]+", text.casefold())
    strange = [action for action in actions if action not in known]
    if strange or not actions or len(actions) > _MAX_ACTIONS:
        what = f"{strange[0]!r:.60} is no action" if strange else "no list of actions"
        return Verdict(Status.UNPARSEABLE, 0.0, f"{what}; they are {', '.join(known)}")
    for number, action in enumerate(actions, start=1):
        if action in ("left", "right"):
            looks = (looks + (1 if action == "right" else -1)) % 4
            continue
        name = _COMPASS[looks] if action == "forward" else action
        looks = _COMPASS.index(name)
        field = (field[0] + _STEPS[name][0], field[1] + _STEPS[name][1])
        if not all(1 <= place <= size for place in field):
            return Verdict(Status.WRONG, 0.0, f"action {number} leaves the grid")
        if field in blocked:
            return Verdict(Status.WRONG, 0.0, f"action {number} enters blocked {field}")
    if field != goal:
        return Verdict(Status.WRONG, 0.0, f"ends at {field}, not at {goal}")
    return Verdict(Status.CORRECT, 1.0, f"at {goal} after {len(actions)} actions")


def _places(reference: Mapping[str, Any]):
    start, goal = ((int(x), int(y)) for x, y in (reference["start"], reference["goal"]))
    return start, goal, {(int(x), int(y)) for x, y in reference["blocked"]}
