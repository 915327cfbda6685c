"""The `gym` verifier: answers judged by the data set of reasoning-gym they come from.

https://github.com/open-thought/reasoning-gym. An entry of a data set is a function of
(name, settings, index), so the reference is these, and the worker makes the entry
again: what its scorer needs need not survive a trip through JSON.
"""

import functools
import importlib
import json
from typing import Any

from rlvr_jax.verifiers import extract
from rlvr_jax.verifiers.base import Sample, Status, Verdict


def verify(sample: Sample) -> Verdict:
    """Scores the <answer> tag or box, else the whole text, by the data set's own rule.

    The reference is {"dataset": name, "settings": {"seed": s, "size": n, ...}, "index":
    i}. Only a score of 1 is correct; less is partial credit, as the data set gives it.

    Raises:
      ModuleNotFoundError: the package is not installed here.
    """
    try:
        reference = {k: sample.answer[k] for k in ("dataset", "settings")}
        dataset = _dataset(json.dumps(reference, sort_keys=True))
        entry = dataset[int(sample.answer["index"])]
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
    score = min(max(float(dataset.score_answer(text, entry)), 0.0), 1.0)
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


@functools.lru_cache(maxsize=64)
def _dataset(reference: str) -> Any:
    settings = json.loads(reference)
    return load_package().create_dataset(settings["dataset"], **settings["settings"])
