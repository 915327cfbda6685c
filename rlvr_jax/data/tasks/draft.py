"""What a task draws, and the type check of its options."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Draft:
    """A generated problem before it has a name and a split."""

    question: str
    answer: Any
    solution: str
    """Worked; ends in the answer in the form that the verifier extracts."""
    key: str
    """Equal for questions so alike that one gives the other away (3 + 4, 4 + 3)."""
    verifier: str = ""
    """"" takes reward.verifier."""
    meta: dict[str, Any] = dataclasses.field(default_factory=dict)


def check_type(options: Any) -> None:
    """Refuses an option whose JSON value has another type than its default.

    Raises:
      ValueError: names the option, the type and the value.
    """
    for field in dataclasses.fields(options):
        value, default = getattr(options, field.name), field.default
        accepts = (int, float) if isinstance(default, float) else type(default)
        if not isinstance(value, accepts) or isinstance(value, bool):
            raise ValueError(
                f"{field.name} needs a {type(default).__name__}, got {value!r}"
            )
