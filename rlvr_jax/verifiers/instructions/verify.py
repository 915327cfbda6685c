"""The verifier: does a response follow its instructions? Zhou et al., IFEval, 2023.

https://arxiv.org/abs/2311.07911; the code the paper comes with is
google-research/instruction_following_eval. This is an independent implementation that
gives the same verdicts.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.instructions import detection, table

_CHOICES = {"scoring": ("all", "fraction"), "evaluation": ("strict", "loose")}


def verify(sample: Sample) -> Verdict:
    """Checks a response against the instructions of its reference.

    The reference is `{"instruction_id_list": [...], "kwargs": [{...}, ...]}`, or
    `{"instruction_id": ..., "kwargs": {...}}` for one instruction, as a dictionary or
    as JSON text; rows without an answer have the same keys in `meta`. Two more keys,
    of either:

    - scoring: "all" (default: 1 if every instruction is followed, else 0) or
      "fraction" (the share that is followed);
    - evaluation: "strict" (default) or "loose" (as IFEval: an instruction also counts
      as followed without the first line, the last one or asterisks).

    An empty response follows nothing. The verdict is correct only if all are followed.
    """
    try:
        reference = _reference(sample)
        checks = _checks(reference)
        scoring, evaluation = (_choice(reference, sample, key) for key in _CHOICES)
    except ValueError as error:
        return Verdict(Status.BAD_REFERENCE, 0.0, str(error))
    responses = [sample.completion]
    if evaluation == "loose":
        responses = _loose(sample.completion)
    followed = {name: _follows(check, responses) for name, check in checks.items()}
    missed = [name for name, follows in followed.items() if not follows]
    share = 1 - len(missed) / len(followed)
    detail = f"{len(followed) - len(missed)} of {len(followed)} instructions followed"
    if missed:
        detail += f"; not {', '.join(missed)}"
    if not missed:
        return Verdict(Status.CORRECT, 1.0, detail)
    return Verdict(Status.WRONG, share if scoring == "fraction" else 0.0, detail)


verify.warm_up = detection.warm_up  # type: ignore[attr-defined]


def _reference(sample: Sample) -> Mapping[str, Any]:
    reference = sample.answer if sample.answer not in (None, "") else sample.meta
    if isinstance(reference, str):
        reference = json.loads(reference)  # its error is a ValueError
    if not isinstance(reference, Mapping):
        kind = type(reference).__name__
        raise ValueError(f"the reference is a {kind}, not a dictionary of instructions")
    return reference


def _checks(reference: Mapping[str, Any]) -> dict[str, Callable[[str], bool]]:
    """The checks by id; a second one of the same id is numbered."""
    ids, kwargs = reference.get("instruction_id_list"), reference.get("kwargs")
    if ids is None and isinstance(reference.get("instruction_id"), str):
        ids, kwargs = [reference["instruction_id"]], [kwargs or {}]
    if not isinstance(ids, list) or not ids:
        raise ValueError("the reference has no instruction_id_list")
    kwargs = [{}] * len(ids) if kwargs is None else kwargs
    if not isinstance(kwargs, list) or len(kwargs) != len(ids):
        raise ValueError(f"{len(ids)} instructions need as many kwargs, got {kwargs!r}")
    checks = {}
    for number, (name, arguments) in enumerate(zip(ids, kwargs, strict=True), start=1):
        if not isinstance(name, str) or not isinstance(arguments, Mapping | None):
            raise ValueError(f"instruction {number} is {name!r} with {arguments!r}")
        key = f"{name} ({number})" if name in checks else name
        checks[key] = table.bind(name, arguments)
    return checks


def _choice(reference: Mapping[str, Any], sample: Sample, key: str) -> str:
    value = reference.get(key, sample.meta.get(key, _CHOICES[key][0]))
    if value not in _CHOICES[key]:
        raise ValueError(f"{key} is {value!r}, not one of {', '.join(_CHOICES[key])}")
    return value


def _follows(check: Callable[[str], bool], responses: list[str]) -> bool:
    return any(response.strip() and check(response) for response in responses)


def _loose(response: str) -> list[str]:
    """The response, and without its first line, last line, both; each also starless."""
    lines = response.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    kept = [response, *cut]
    return list(dict.fromkeys([*kept, *(text.replace("*", "") for text in kept)]))
