"""Problems of the package reasoning-gym: "gym:NAME" is any of its data sets.

https://github.com/open-thought/reasoning-gym (Apache-2.0), an optional dependency.
`data.task_options` takes count and evaluation_count and the data set's own settings, as
'{"count": 500, "num_terms": 3}'.
"""

import ast
import importlib
import json
from typing import Any

from rlvr_jax.data import names
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.tasks import Amount
from rlvr_jax.data.tasks.draft import of_their_types
from rlvr_jax.errors import UserError

_HELD_OUT = 2**30
"""Added to the seed of the held-out stream."""
_EXAMPLES = {
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
}
"""Data set -> where its metadata have a right answer; its entries have none."""
_INSTRUCTION = "\n\nPut the answer in <answer> </answer> tags."


def generate(
    name: str, seed: int, split: str, *, options: str | dict[str, Any] = "{}"
) -> list[Problem]:
    """Generates the problems of one split, all different.

    Training and held-out problems come from two streams; a training problem whose
    question is held out too is left out by `load_problems`.

    Args:
      name: of a data set of the package.
      seed: of the streams.
      split: "train" or "evaluation".
      options: count, evaluation_count, and settings of the data set; JSON or parsed.

    Returns:
      `count` or `evaluation_count` problems, fewer where questions repeat. The verifier
      is `gym`, which asks the data set itself.

    Raises:
      UserError: the package is not installed, has no such data set, or refuses the
        settings.
    """
    package = _package()
    if name == "composite":
        raise UserError(
            "gym:composite is a mix: name its parts in data.train with commas between, "
            "as gym:chain_sum,gym:gcd, and their shares in data.mix"
        )
    known = list(importlib.import_module("reasoning_gym.factory").DATASETS)
    if name not in known:
        raise UserError(names.unknown("gym", name, known, "data.train"))
    amount, settings = _parse_options(options)
    wanted = amount.count if split == "train" else amount.evaluation_count
    seed = seed + (0 if split == "train" else _HELD_OUT)
    reference = {
        "dataset": name,
        "settings": settings | {"seed": seed, "size": wanted},
    }
    problems: dict[str, Problem] = {}
    try:
        dataset = package.create_dataset(name, **reference["settings"])
        for index in range(wanted):
            entry = dataset[index]
            meta = {"domain": name}
            if (answer := _answer(name, entry)) is not None:
                meta["solution"] = f"<answer>{answer}</answer>"
            problem = Problem(
                f"{name}-{split}-{index}",
                entry["question"] + _INSTRUCTION,
                reference | {"index": index} | _as_literal(entry),
                "gym",
                meta,
            )
            problems.setdefault(entry["question"], problem)
    except Exception as error:
        raise UserError(
            f"gym:{name}: {type(error).__name__}: {error} (data.task_options)"
        ) from error
    return list(problems.values())


def _answer(name: str, entry: dict[str, Any]) -> str | None:
    """A right answer as text; some data sets have a scorer and none."""
    answer = entry["answer"]
    if answer is None and name in _EXAMPLES:
        answer = entry["metadata"].get(_EXAMPLES[name])
    return json.dumps(answer) if isinstance(answer, dict) else answer


def _as_literal(entry: dict[str, Any]) -> dict[str, str]:
    """The entry as a Python literal, where it is one.

    A worker then has the very entry: some data sets make another one of the same seed
    in another process, and some take seconds to make one.
    """
    text = repr(entry)
    try:
        return {"entry": text} if ast.literal_eval(text) == entry else {}
    except (ValueError, SyntaxError):
        return {}


def _package() -> Any:
    try:
        return importlib.import_module("reasoning_gym")
    except ModuleNotFoundError as error:
        raise UserError(
            "gym: data sets need the package reasoning-gym, which is not installed "
            f"({error.name} is missing); pip install reasoning-gym, or choose another "
            "source in data.train"
        ) from error


def _parse_options(options: str | dict[str, Any]) -> tuple[Amount, dict[str, Any]]:
    try:
        found = json.loads(options) if isinstance(options, str) else dict(options)
    except json.JSONDecodeError as error:
        raise UserError(
            f"data.task_options is not JSON ({error}), got {options!r}"
        ) from None
    if not isinstance(found, dict):
        raise UserError(f"data.task_options needs a JSON object, got {options!r}")
    shared = {n: found.pop(n) for n in ("count", "evaluation_count") if n in found}
    try:
        return Amount(**of_their_types(Amount, shared)), found
    except UserError as error:
        raise UserError(f"gym: {error} (data.task_options)") from None
