"""A walk over a grid with blocked fields, by compass or by turns.

A stand-in, in text, for the V-IRL navigation of Chu et al.
(https://arxiv.org/abs/2501.17161), whose rule variants are absolute directions (north,
east, ...) in training and relative ones (left, right, forward) in the test. The map
decides what is held out, under either rule.
"""

import collections
import dataclasses

import numpy as np

from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

MOVES = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
"""Columns count eastwards and rows southwards, from 1."""
_COMPASS = list(MOVES)
_TRIES = 1_000


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:navigation."""

    actions: str = "absolute"
    """"absolute" (north, east, south, west) or "relative" (forward, left, right)."""
    size: int = 5
    """Rows, and columns."""
    blocked: int = 4
    """Fields that cannot be entered."""
    min_moves: int = 2
    """Fields to cross on the shortest way, at least."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if self.actions not in ("absolute", "relative"):
            raise UserError(
                f"actions is 'absolute' or 'relative', got {self.actions!r}"
            )
        if not 2 <= self.size <= 20:
            raise UserError(f"size is from 2 to 20, got {self.size}")
        if not 0 <= self.blocked <= self.size**2 - 2:
            raise UserError(
                f"blocked leaves two of {self.size**2} fields free, got {self.blocked}"
            )
        if self.min_moves < 1:
            raise UserError(f"min_moves is at least 1, got {self.min_moves}")


def draw(random: np.random.Generator, options: Options) -> Draft:
    """A map with a way from start to goal; the worked solution is a shortest one.

    Raises:
      UserError: no map with a long enough way in many tries.
    """
    size = options.size
    for _ in range(_TRIES):
        fields = random.permutation(size**2)[: options.blocked + 2].tolist()
        start, goal, *blocked = [(f % size + 1, f // size + 1) for f in fields]
        facing = _COMPASS[random.integers(4)]
        way = shortest_way(size, start, goal, blocked)
        if way is not None and len(way) >= options.min_moves:
            return _draft(start, goal, blocked, facing, way, options)
    raise UserError(
        f"found no way of {options.min_moves} moves in {_TRIES} maps; lower min_moves "
        "or blocked, or raise size"
    )


def shortest_way(
    size: int,
    start: tuple[int, int],
    goal: tuple[int, int],
    blocked: list[tuple[int, int]],
) -> list[str] | None:
    """The directions of a shortest way, or None.

    Example:
      >>> shortest_way(3, (1, 1), (3, 1), [(2, 1)])
      ['south', 'east', 'east', 'north']
    """
    ways = {start: []}
    queue = collections.deque([start])
    while queue:
        x, y = queue.popleft()
        if (x, y) == goal:
            return ways[goal]
        for name, (dx, dy) in MOVES.items():
            field = (x + dx, y + dy)
            inside = 1 <= field[0] <= size and 1 <= field[1] <= size
            if inside and field not in blocked and field not in ways:
                ways[field] = [*ways[x, y], name]
                queue.append(field)
    return None


def by_turns(way: list[str], facing: str) -> list[str]:
    """Directions as turns of a walker who looks to `facing` at first.

    Example:
      >>> by_turns(["east", "east", "south"], "north")
      ['right', 'forward', 'forward', 'right', 'forward']
    """
    actions, looks = [], _COMPASS.index(facing)
    for direction in way:
        turn = (_COMPASS.index(direction) - looks) % 4
        actions += {0: [], 1: ["right"], 2: ["right", "right"], 3: ["left"]}[turn]
        actions.append("forward")
        looks = _COMPASS.index(direction)
    return actions


def _draft(start, goal, blocked, facing, way, options: Options) -> Draft:
    relative = options.actions == "relative"
    actions = by_turns(way, facing) if relative else way
    known = "forward, left, right" if relative else ", ".join(MOVES)
    turning = " left and right turn you on the spot;" if relative else ""
    question = (
        f"You are on a grid of {options.size} columns (1 is the west edge) and "
        f"{options.size} rows (1 is the north edge), in column {start[0]}, row "
        f"{start[1]}, facing {facing}. Blocked (column, row): "
        f"{', '.join(map(str, blocked)) or 'none'}. Go to column {goal[0]}, row "
        f"{goal[1]} without leaving the grid. The actions are {known};{turning} every "
        "other one takes you one field on. Put the actions, with commas between, in "
        "<answer> </answer> tags."
    )
    answer = {
        "size": options.size,
        "start": list(start),
        "goal": list(goal),
        "blocked": [list(field) for field in blocked],
        "facing": facing,
        "actions": options.actions,
    }
    return Draft(
        question=question,
        answer=answer,
        solution=f"<answer>{', '.join(actions)}</answer>",
        key=f"{options.size} {start} {goal} {sorted(blocked)}",
        verifier="navigation",
        meta={"actions": options.actions, "moves": len(way)},
    )
