"""What a task draws, and the type check of its options."""

import dataclasses
from typing import Any

from rlvr_jax.errors import UserError


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


def of_their_types(options: type, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings read from JSON, each of the type of its option's default.

    Args:
      options: a dataclass.
      settings: values for some of its fields.

    Returns:
      The same settings; whole numbers as float where the default is one.

    Raises:
      UserError: names the option, the type and the value.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    typed = {}
    for name, value in settings.items():
        kind = type(defaults[name])
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise UserError(f"{name} needs a {kind.__name__}, got {value!r}")
        typed[name] = value
    return typed
