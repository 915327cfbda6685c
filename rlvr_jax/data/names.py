"""The message for a name that nobody knows."""

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: str, known: Iterable[str], setting: str) -> str:
    """Says what was asked for, the nearest known name, and all of them.

    Example:
      >>> print(unknown("task", "sum", ["sums", "countdown"], "data.train"))
      data: unknown task 'sum'; did you mean 'sums'? Known: sums, countdown (data.train)
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"data: unknown {kind} {name!r}; {hint}Known: {', '.join(known)} ({setting})"
