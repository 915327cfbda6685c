"""How many tests a program has passed, and why not more."""

from typing import NamedTuple


class Results(NamedTuple):
    """The outcome of one suite of tests."""

    passed: int
    total: int
    """Tests there are; the rest failed or, if one failure is enough, were not run."""
    reason: str = ""
    """The first failure; "" if all passed."""
