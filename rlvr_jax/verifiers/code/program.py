"""Where in a completion the program stands.

The whole completion, if it is Python as it is; else the last fenced block marked as
Python; else the last fenced block without a mark. A block that does not close is none.
Where the policy was given the beginning of a function (HumanEval), a text that goes on
from there counts as Python too.
"""

import ast
import re
from typing import NamedTuple

from rlvr_jax.verifiers.code import python

_FENCE = re.compile(r"[ \t]*(?P<fence>```+|~~~+)[ \t]*(?P<mark>[^\s`]*)")
_PYTHON = ("python", "python3", "py")


class Found(NamedTuple):
    """A program: sources to be run one after another in one module."""

    sources: list[str]
    without: str | None = None
    """A stub to forget before the last source."""


def find(completion: str, prompt: str = "", entry_point: str | None = None) -> Found:
    """The program in a completion.

    Args:
      completion: the text after any thinking block.
      prompt: the beginning of a program that the policy was given.
      entry_point: the function that the prompt begins.

    Raises:
      ValueError: there is none.

    Example:
      >>> find("Here:\\n```python\\nx = 1\\n```\\nDone.").sources
      ['x = 1\\n']
    """
    code = completion.removeprefix("\ufeff").replace("\r\n", "\n")
    if not _is_program(code, prompt):
        blocks = _blocks(code)
        marked = [inside for mark, inside in blocks if mark.lower() in _PYTHON]
        unmarked = [inside for mark, inside in blocks if not mark]
        if not (marked or unmarked):
            raise ValueError("neither Python nor a closed block of it")
        code = (marked or unmarked)[-1]
    if not code.strip():
        raise ValueError("an empty program")
    if not prompt:
        return Found([code])
    if not _parses(code) and _parses(prompt + code):
        return Found([prompt + code])
    return Found([prompt, code], entry_point)


def _blocks(text: str) -> list[tuple[str, str]]:
    """The mark and the inside of each fenced block that closes; in one pass."""
    found = []
    fence = mark = ""
    inside: list[str] = []
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                found.append((mark, "".join(inside)))
                fence = ""
            else:
                inside.append(line)
        elif opening := _FENCE.match(line):
            fence, mark, inside = opening["fence"], opening["mark"], []
    return found


def _is_program(code: str, prompt: str) -> bool:
    return _parses(code) or (bool(prompt) and _parses(prompt + code))


def _parses(code: str) -> bool:
    return _tree(code) is not None


def _tree(code: str) -> ast.Module | None:
    try:
        return python.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
