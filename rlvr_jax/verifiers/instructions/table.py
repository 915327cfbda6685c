"""From the id of an instruction to its check, and whether its arguments fit."""

import difflib
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlvr_jax.verifiers.instructions import content, extra, layout

CONSTRAINTS: dict[str, Callable[..., bool]] = {
    "keywords:existence": content.keywords,
    "keywords:frequency": content.keyword_frequency,
    "keywords:forbidden_words": content.forbidden_words,
    "keywords:letter_frequency": content.letter_frequency,
    "language:response_language": content.response_language,
    "length_constraints:number_sentences": content.number_sentences,
    "length_constraints:number_paragraphs": layout.number_paragraphs,
    "length_constraints:number_words": content.number_words,
    "length_constraints:nth_paragraph_first_word": layout.nth_paragraph_first_word,
    "detectable_content:number_placeholders": layout.number_placeholders,
    "detectable_content:postscript": layout.postscript,
    "detectable_format:number_bullet_lists": layout.number_bullet_lists,
    "detectable_format:constrained_response": layout.constrained_response,
    "detectable_format:number_highlighted_sections": (
        layout.number_highlighted_sections
    ),
    "detectable_format:multiple_sections": layout.multiple_sections,
    "detectable_format:json_format": layout.json_format,
    "detectable_format:title": layout.title,
    "combination:two_responses": layout.two_responses,
    "combination:repeat_prompt": layout.repeat_prompt,
    "startend:end_checker": layout.end_checker,
    "startend:quotation": layout.quotation,
    "change_case:capital_word_frequency": content.capital_word_frequency,
    "change_case:english_capital": content.english_capital,
    "change_case:english_lowercase": content.english_lowercase,
    "punctuation:no_comma": content.no_comma,
    "own:bullets": extra.bullets,
    "own:no_commas": extra.no_commas,
    "own:starts_with": extra.starts_with,
    "own:number_characters": extra.number_characters,
    "own:number_lines": extra.number_lines,
}


def bind(
    instruction_id: str, kwargs: Mapping[str, Any] | None
) -> Callable[[str], bool]:
    """The check of one instruction, with its arguments.

    Args:
      instruction_id: a key of `CONSTRAINTS`.
      kwargs: the arguments; those that are None are left out (some copies of IFEval
        list every argument of every instruction).

    Raises:
      ValueError: the id is unknown, an argument is missing, unknown or no number,
        text or list where the check wants one.
    """
    check = CONSTRAINTS.get(instruction_id)
    if check is None:
        near = difflib.get_close_matches(instruction_id, CONSTRAINTS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown instruction {instruction_id!r}{hint}")
    given = {name: value for name, value in (kwargs or {}).items() if value is not None}
    signature = inspect.signature(check)
    wanted = list(signature.parameters.values())[1:]
    if unknown := sorted(given.keys() - {parameter.name for parameter in wanted}):
        raise ValueError(f"{instruction_id} takes no {', '.join(unknown)}")
    missing = [
        parameter.name
        for parameter in wanted
        if parameter.default is parameter.empty and parameter.name not in given
    ]
    if missing:
        raise ValueError(f"{instruction_id} needs {', '.join(missing)}")
    arguments = {
        parameter.name: _converted(instruction_id, parameter, given[parameter.name])
        for parameter in wanted
        if parameter.name in given
    }
    return lambda response: check(response, **arguments)


def _converted(instruction_id: str, parameter: inspect.Parameter, value: Any) -> Any:
    """An argument as its check wants it; 3.0 is a whole number too."""
    name, kind = parameter.name, parameter.annotation
    if kind is int:
        fits = type(value) is int or (type(value) is float and value.is_integer())
        value = int(value) if fits else value
    elif typing.get_origin(kind) is Sequence:
        fits = isinstance(value, list | tuple) and all(
            isinstance(v, str) for v in value
        )
    else:
        fits = isinstance(value, str) and bool(value.strip())
    if fits and name.endswith("relation"):
        fits = value in content.RELATIONS
    if fits and name == "letter":
        fits = len(value.strip()) == 1
    if not fits:
        raise ValueError(f"{instruction_id}: {name}={value!r} is not usable")
    return value
