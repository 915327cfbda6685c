"""Operations on a row of letters, one after the other: "dacb RLS =".

Each is easy by itself; a chain is right only if every one is. A base policy that has
seen single operations alone has no chance on long chains: what ProRL calls a task
outside of the base's reach (https://arxiv.org/abs/2505.24864 uses boxnet for that).
"""

import dataclasses

import numpy as np

from rlvr_jax.data.tasks.draft import Draft
from rlvr_jax.errors import UserError

LETTERS = "abcdefgh"


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of task:letters."""

    length: int = 4
    """Letters of a row, all different."""
    min_operations: int = 1
    max_operations: int = 3
    operations: str = "RLS"
    """Any of R (reverse the row), L (the first letter goes to the end), S (the first
    two change places), each drawn with equal chance."""
    guesses: int = 0
    """Of ten solutions to imitate in a cold start, how many are bare guesses: the
    row's letters in any order, instead of the worked solution."""

    def __post_init__(self) -> None:
        """Refuses impossible values."""
        if not 2 <= self.length <= len(LETTERS):
            raise UserError(f"length is out of 2..{len(LETTERS)}, got {self.length}")
        if not 1 <= self.min_operations <= self.max_operations:
            raise UserError(
                "needs 1 <= min_operations <= max_operations, got "
                f"{self.min_operations} and {self.max_operations}"
            )
        if not self.operations or set(self.operations) - set("RLS"):
            raise UserError(f"operations are out of 'RLS', got {self.operations!r}")
        if not 0 <= self.guesses <= 10:
            raise UserError(f"guesses is out of 0..10, got {self.guesses}")


def draw(random: np.random.Generator, options: Options) -> Draft:
    """A row and its operations; the solution does one of them a line.

    The last line is the answer behind "####", where the verifier looks for it.
    """
    row = _shuffled(random, LETTERS)[: options.length]
    count = int(
        random.integers(options.min_operations, options.max_operations, endpoint=True)
    )
    chosen = random.integers(len(options.operations), size=count)
    operations = "".join(options.operations[i] for i in chosen)
    steps = work_out(row, operations)
    answer = steps[-1]
    worked = "\n".join([*steps[:-1], f"#### {answer}"])
    meta: dict = {"operations": count}
    if options.guesses:
        guessed = [f"#### {_shuffled(random, row)}" for _ in range(options.guesses)]
        meta["solutions"] = [*guessed, *[worked] * (10 - options.guesses)]
    return Draft(
        question=f"{row} {operations} =",
        answer=answer,
        solution=worked,
        key=f"{row} {operations}",
        verifier="exact",
        meta=meta,
    )


def work_out(row: str, operations: str) -> list[str]:
    """The row after each operation, with those that are left behind it.

    Example:
      >>> work_out("dacb", "RLS")
      ['bcad LS', 'cadb S', 'acdb']
    """
    steps = []
    for done, operation in enumerate(operations, 1):
        row = _applied(row, operation)
        steps.append(f"{row} {operations[done:]}".rstrip())
    return steps


def _applied(row: str, operation: str) -> str:
    match operation:
        case "R":
            return row[::-1]
        case "L":
            return row[1:] + row[0]
    return row[1] + row[0] + row[2:]


def _shuffled(random: np.random.Generator, letters: str) -> str:
    return "".join(letters[i] for i in random.permutation(len(letters)))
