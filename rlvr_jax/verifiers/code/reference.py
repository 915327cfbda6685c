"""What a program is tested with: the forms of a reference, read and checked."""

import dataclasses
import difflib
from typing import Any

from rlvr_jax.verifiers.base import Sample
from rlvr_jax.verifiers.code.sandbox import Limits

FORMS = {
    "humaneval": ("entry_point", "test"),
    "mbpp": ("test_list",),
    "function": ("function",),
    "stdio": ("cases",),
}
"""The fields that tell the form, in the order in which they are looked for."""
SCORINGS = ("all", "fraction")
_LIMITS_OF: dict[str, dict[str, Any]] = {
    "mbpp": {"time_limit_s": 4.0, "total_time_limit_s": 4.5}
}
"""Where a form needs more than the defaults: a solution of MBPP's takes 2.5 s."""
_CASES: dict[str, dict[str, type]] = {
    "function": {"args": list, "kwargs": dict, "expected": object},
    "stdio": {"input": str, "output": str},
}
"""What a case holds."""
_OPTIONAL = frozenset(["kwargs"])
_OPTIONS = ("scoring", "tolerance", "held_out", "solution", "generator", "runs")
_LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
_OTHERS = ("prompt", "test_setup_code", "test_imports")
_KNOWN = {
    *_OPTIONS,
    *_LIMITS,
    *_OTHERS,
    *(key for keys in FORMS.values() for key in keys),
}


class BadReference(ValueError):
    """The reference cannot be used; no program was judged."""


@dataclasses.dataclass(frozen=True)
class Task:
    """A reference that has been read."""

    form: str
    fields: dict[str, Any]
    limits: Limits
    fraction: bool
    """The score is the share of tests passed; else all must pass."""
    tolerance: float | None
    """Relative and absolute, for floats; None compares exactly."""

    @property
    def prompt(self) -> str:
        """The beginning of the program that the policy was given, if any."""
        return self.fields.get("prompt", "") if self.form == "humaneval" else ""

    @property
    def entry_point(self) -> str | None:
        """The function that must be defined, where the reference names it."""
        if self.form == "function":
            return self.fields["function"].partition("()")[0]
        return self.fields.get("entry_point")


def fields_of(sample: Sample) -> dict[str, Any]:
    """The reference of a sample as a dictionary.

    It is the answer; where that is a text (a solution, in the published files of
    HumanEval and MBPP), the tests are in `meta` and the prompt is the question.

    Raises:
      BadReference: there are no tests in either.
    """
    answer = sample.answer
    if isinstance(answer, list):
        return {"cases": answer}
    if isinstance(answer, dict):
        fields = answer
    else:
        fields = dict(sample.meta)
        if isinstance(answer, str):
            fields.setdefault("solution", answer)
    if "test" in fields and "prompt" not in fields:
        fields = fields | {"prompt": sample.question}
    return fields


def read(fields: dict[str, Any]) -> Task:
    """Checks a reference.

    Raises:
      BadReference: no form fits, or a field has the wrong type or a wrong name.
    """
    form = _form(fields)
    for key in fields:
        near = difflib.get_close_matches(key, _KNOWN, n=1, cutoff=0.85)
        if near and key not in _KNOWN and near[0] not in fields:
            raise BadReference(f"unknown field {key!r}; did you mean {near[0]!r}?")
    _check_types(form, fields)
    scoring = fields.get("scoring", "all")
    if scoring not in SCORINGS:
        raise BadReference(f"scoring is {scoring!r}, not one of {', '.join(SCORINGS)}")
    limits = {name: fields[name] for name in _LIMITS if name in fields}
    for name in [*limits, *(["tolerance"] if "tolerance" in fields else [])]:
        if type(fields[name]) not in (int, float) or not fields[name] > 0:
            raise BadReference(f"{name} must be a number above 0, not {fields[name]!r}")
    return Task(
        form=form,
        fields=fields,
        limits=Limits(**(_LIMITS_OF.get(form, {}) | limits)),
        fraction=scoring == "fraction",
        tolerance=fields.get("tolerance"),
    )


def held_out(fields: dict[str, Any]) -> dict[str, Any]:
    """The reference whose tests are those held out.

    Raises:
      BadReference: none are.
    """
    kept = fields.get("held_out")
    if not kept:
        raise BadReference("no tests are held out: the reference lacks 'held_out'")
    rest = {key: value for key, value in fields.items() if key != "held_out"}
    if not isinstance(kept, dict):
        return rest | {tests_field(fields): kept}
    if any(all(key in kept for key in keys) for keys in FORMS.values()):
        rest = {key: rest[key] for key in rest if key in (*_OPTIONS, *_LIMITS)}
    return rest | kept


def tests_field(fields: dict[str, Any]) -> str:
    """The name of the field that holds the tests."""
    return {"humaneval": "test", "mbpp": "test_list"}.get(_form(fields), "cases")


def _form(fields: dict[str, Any]) -> str:
    for form, keys in FORMS.items():
        if all(key in fields for key in keys):
            return form
    forms = "; ".join(f"{form}: {' and '.join(keys)}" for form, keys in FORMS.items())
    raise BadReference(
        f"no form of tests fits the fields {sorted(fields)}; the forms need {forms}"
    )


def _check_types(form: str, fields: dict[str, Any]) -> None:
    wanted = {
        "humaneval": {"entry_point": str, "test": str, "prompt": str},
        "mbpp": {"test_list": list, "test_setup_code": str, "test_imports": list},
        "function": {"function": str, "cases": list, "generator": str, "runs": int},
        "stdio": {"cases": list},
    }[form]
    for key, kind in wanted.items():
        if key in fields and not isinstance(fields[key], kind):
            found = type(fields[key]).__name__
            raise BadReference(f"{key} must be {kind.__name__}, not {found}")
    for number, case in enumerate(fields.get("cases", []) if form in _CASES else [], 1):
        _check_case(f"case {number}", case, _CASES[form])
    if form == "function" and fields.get("runs", 1) < 1:
        raise BadReference(f"runs must be at least 1, not {fields['runs']}")
    if form == "function" and "generator" in fields and "solution" not in fields:
        raise BadReference("a generator needs a solution that says what is right")
    if form in ("function", "stdio") and not (
        fields.get("cases") or fields.get("generator")
    ):
        raise BadReference("there are no cases")
    if form == "mbpp" and not fields["test_list"]:
        raise BadReference("test_list is empty")


def _check_case(name: str, case: Any, kinds: dict[str, type]) -> None:
    """One case: what it must have, and of which type (object: of any)."""
    wanted = kinds.keys() - _OPTIONAL
    if not isinstance(case, dict) or not wanted <= case.keys():
        raise BadReference(f"{name} lacks {' or '.join(sorted(wanted))}")
    for key, kind in kinds.items():
        if key in case and not isinstance(case[key], kind):
            found = type(case[key]).__name__
            raise BadReference(f"{key} of {name} must be {kind.__name__}, not {found}")
