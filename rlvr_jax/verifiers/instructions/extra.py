"""Checks that IFEval lacks or words differently, under ids that start with "own:".

IFEval's "no comma" knows the ASCII comma only, and its bullets are "-" and "*"; these
read the instruction as a person would.
"""

import re
import unicodedata

from rlvr_jax.verifiers.instructions.content import RELATIONS

_BULLET = re.compile(r"(?:[-*+•◦▪‣●–·]|\(?\d{1,3}[.)])\s+(?=\S)")  # noqa: RUF001
_FENCE = re.compile(r"\s*(?:```|~~~)")


def bullets(response: str, *, num_bullets: int, relation: str = "exactly") -> bool:
    """So many list items: "-", "*", "+", "•" or "1.", a blank, then some text.

    Rules (`---`), **bold** lines and code blocks hold no items.
    """
    count = 0
    in_code = False
    for line in response.split("\n"):
        if _FENCE.match(line):
            in_code = not in_code
        count += not in_code and _BULLET.match(line.strip()) is not None
    return RELATIONS[relation](count, num_bullets)


def no_commas(response: str) -> bool:
    """No comma of any script: also the full-width, ideographic and Arabic ones."""
    return not any(
        "COMMA" in unicodedata.name(mark, "").split()
        for mark in set(response)
        if not mark.isalnum()
    )


def starts_with(response: str, *, start_phrase: str) -> bool:
    """The phrase at the start, in either case."""
    return response.strip().lower().startswith(start_phrase.strip().lower())


def number_characters(response: str, *, num_characters: int, relation: str) -> bool:
    """So many characters, without the white space at both ends."""
    return RELATIONS[relation](len(response.strip()), num_characters)


def number_lines(response: str, *, num_lines: int, relation: str) -> bool:
    """So many lines that are not empty."""
    count = sum(bool(line.strip()) for line in response.split("\n"))
    return RELATIONS[relation](count, num_lines)
