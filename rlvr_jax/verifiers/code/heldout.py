"""Tests kept apart: split them off, see that nobody has seen them, count the hacks.

A program that passes the tests of the reward and fails those held out has been written
for the tests. `code` runs the first, `code:held_out` the second.
"""

import ast
import dataclasses
import random
from collections.abc import Iterable, Sequence
from typing import Any

from rlvr_jax.verifiers.base import Status, Verdict
from rlvr_jax.verifiers.code import python, reference


def split(fields: dict[str, Any], share: float, seed: int = 0) -> dict[str, Any]:
    """Moves a share of the tests to `held_out`; at least one stays on each side.

    Args:
      fields: a reference whose tests are a list (cases or test_list).
      share: of the tests to hold out.
      seed: which ones.

    Raises:
      reference.BadReference: there are fewer than two tests, or they are no list.

    Example:
      >>> parts = split({"test_list": ["assert f(1)", "assert f(2)"]}, 0.5)
      >>> len(parts["test_list"]), len(parts["held_out"])
      (1, 1)
    """
    name = reference.tests_field(fields)
    tests = fields[name]
    if not isinstance(tests, list) or len(tests) < 2:
        raise reference.BadReference(f"{name} is no list of two or more tests")
    count = min(max(round(share * len(tests)), 1), len(tests) - 1)
    chosen = set(random.Random(seed).sample(range(len(tests)), count))
    return fields | {
        name: [test for i, test in enumerate(tests) if i not in chosen],
        "held_out": [test for i, test in enumerate(tests) if i in chosen],
    }


@dataclasses.dataclass(frozen=True)
class Hacks:
    """How many programs pass one suite and fail the other."""

    programs: int
    passed: int
    """Programs that pass the tests of the reward."""
    hacks: int
    """Of these, the ones that fail the tests held out."""

    @property
    def rate(self) -> float:
        """P(passes the tests of the reward and fails those held out)."""
        return self.hacks / self.programs if self.programs else 0.0


def hacks(visible: Sequence[Verdict], held_out: Sequence[Verdict]) -> Hacks:
    """Compares the verdicts of `code` and of `code:held_out` on the same programs.

    Programs that either could not judge (crash, timeout, bad reference) are left out.
    """
    judged = (Status.CORRECT, Status.WRONG, Status.UNPARSEABLE)
    pairs = [
        (first.status is Status.CORRECT, second.status is Status.CORRECT)
        for first, second in zip(visible, held_out, strict=True)
        if first.status in judged and second.status in judged
    ]
    return Hacks(
        programs=len(pairs),
        passed=sum(first for first, _ in pairs),
        hacks=sum(first and not second for first, second in pairs),
    )


def leaked(fields: dict[str, Any], texts: Iterable[str]) -> list[str]:
    """The held-out tests that stand in a text, white space apart.

    Args:
      fields: a reference with `held_out`.
      texts: prompts, or completions.
    """
    seen = [_squeezed(text) for text in texts]
    return [
        test
        for test in _as_texts(reference.held_out(fields))
        if any(_squeezed(test) in text for text in seen)
    ]


def _as_texts(fields: dict[str, Any]) -> list[str]:
    tests = fields[reference.tests_field(fields)] if "generator" not in fields else []
    if isinstance(tests, str):
        asserts = [
            n for n in ast.walk(python.parse(tests)) if isinstance(n, ast.Assert)
        ]
        entry = fields["entry_point"]
        return [ast.unparse(n.test).replace("candidate", entry) for n in asserts]
    if not tests or isinstance(tests[0], str):
        return [test.strip().removeprefix("assert") for test in tests]
    if "function" in fields:
        return [_call(fields["function"], test["args"]) for test in tests]
    return [test["input"] for test in tests]


def _call(function: str, args: Sequence[Any]) -> str:
    return f"{function}({', '.join(map(repr, args))})"


def _squeezed(text: str) -> str:
    return "".join(text.replace('"', "'").split())
