"""The `gym` verifier: answers judged by the data set of reasoning-gym they come from.

https://github.com/open-thought/reasoning-gym. The reference names the data set, its
settings and the index of the entry, and has the entry itself as a Python literal
(tuples and numbers as keys would not survive JSON); where it is none, the worker makes
the entry again.
"""

import ast
import functools
import importlib
import json
from typing import Any

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict

_BY_TEXT = ("game_of_life_halting",)
"""Data sets whose own rule accepts any answer (it compares bool("True"), bool("False")
in version 0.1.25): theirs is compared as text."""


def verify(sample: Sample) -> Verdict:
    """Scores the <answer> tag or box, else the whole text, by the data set's own rule.

    The reference is {"dataset": name, "settings": {"seed": s, "size": n, ...}, "index":
    i, "entry": literal or absent}. Only a score of 1 is correct; less is partial
    credit, as the data set gives it. An answer that its rule fails on is unparseable.

    Raises:
      ModuleNotFoundError: the package is not installed here.
    """
    try:
        reference = {k: sample.answer[k] for k in ("dataset", "settings")}
        dataset = _dataset(json.dumps(reference, sort_keys=True))
        literal = sample.answer.get("entry")
        made = literal is None
        entry = dataset[int(sample.answer["index"])] if made else _entry(literal)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        return Verdict(
            Status.BAD_REFERENCE,
            0.0,
            'gym needs an answer {"dataset", "settings", "index"}, got '
            f"{sample.answer!r:.120} ({type(error).__name__}: {error!s:.80})",
        )
    if sample.question and not sample.question.startswith(entry["question"]):
        return Verdict(
            Status.BAD_REFERENCE,
            0.0,
            "this version of reasoning-gym makes another question of the same seed",
        )
    marked = extract.marked_answers(sample.completion)
    if len(set(marked)) > 1:
        return Verdict(Status.UNPARSEABLE, 0.0, f"several answers: {marked!r:.200}")
    text = marked[0] if marked else sample.completion.strip()
    if not text:
        return Verdict(Status.UNPARSEABLE, 0.0, "an empty answer")
    if reference["dataset"] in _BY_TEXT:
        score = float(text.casefold() == str(entry["answer"]).casefold())
    else:
        try:
            score = min(max(float(dataset.score_answer(text, entry)), 0.0), 1.0)
        except Exception as error:
            said = f"{type(error).__name__}: {error!s:.80}"
            return Verdict(Status.UNPARSEABLE, 0.0, f"{text!r:.100}: {said}")
    status = Status.CORRECT if score >= 1 else Status.WRONG
    return Verdict(status, score, f"{text!r:.100} for {entry['answer']!r:.100}")


def load_package() -> Any:
    """The package.

    Raises:
      ModuleNotFoundError: says how to install it.
    """
    try:
        return importlib.import_module("reasoning_gym")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "gym: data sets need the package reasoning-gym, which is not installed "
            f"({error.name} is missing); pip install reasoning-gym"
        ) from error


def warm_up() -> None:
    """Imports the package, which takes seconds, before any deadline."""
    try:
        load_package()
    except ModuleNotFoundError:
        pass  # the first sample will say so


verify.warm_up = warm_up  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=256)
def _entry(literal: str) -> dict[str, Any]:
    return ast.literal_eval(literal)


@functools.lru_cache(maxsize=64)
def _dataset(reference: str) -> Any:
    settings = json.loads(reference)
    return load_package().create_dataset(settings["dataset"], **settings["settings"])
