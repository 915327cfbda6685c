"""Reads one source: a packaged set, a generated task, a file or a data set."""

import json
import pathlib
import re
from typing import Any, NamedTuple

from rlvr_jax import config as config_lib
from rlvr_jax.data import gym, hub, names, rows, tasks
from rlvr_jax.data.places import is_uri, place_of
from rlvr_jax.data.rows import Problem
from rlvr_jax.errors import UserError

_PACKAGED_FOLDER = pathlib.Path(__file__).parent / "packaged"
_FIRST_ROWS = re.compile(r"\[:(\d+)\]$")


class Parts(NamedTuple):
    """The problems of a source and, where it has one, its own test part (else [])."""

    problems: list[Problem]
    test: list[Problem]


def split_sources(setting: str) -> list[str]:
    """Takes a list of sources apart: "packaged:gsm8k, task:countdown[:500]".

    Raises:
      UserError: the setting is empty, or two commas have nothing between them.
    """
    if (
        not is_uri(setting) and pathlib.Path(setting).is_file()
    ):  # A file name may hold a comma.
        return [setting]
    sources = [part.strip() for part in setting.split(",")]
    if not all(sources):
        raise UserError(
            f"data: needs sources with a comma between them, got {setting!r} "
            "(data.train, data.evaluation)"
        )
    return sources


def read_source(source: str, data: config_lib.DataConfig, seed: int) -> Parts:
    """Reads all of one source; problems that name no verifier have "".

    Args:
      source: packaged:NAME, task:NAME, gym:NAME, hub:NAME or a file; "[:N]" after it
        takes the first N problems (its test part stays whole).
      data: task_options, question_field, answer_field, subset.
      seed: of generated problems.

    Returns:
      The problems in the source's order.

    Raises:
      UserError, FileNotFoundError, ConnectionError: as `load_problems`.
    """
    match = _FIRST_ROWS.search(source)
    parts = _read_whole(_FIRST_ROWS.sub("", source), data, seed)
    return Parts(parts.problems[: int(match[1])], parts.test) if match else parts


def _read_whole(source: str, data: config_lib.DataConfig, seed: int) -> Parts:
    kind, _, name = source.partition(":")
    if kind in ("task", "gym"):
        generate = tasks.generate if kind == "task" else gym.generate
        options = _options_of(name, data)
        return Parts(
            generate(name, seed, "train", options=options),
            generate(name, seed, "evaluation", options=options),
        )
    if kind == "packaged":
        train, test = (
            _read_file(path, config_lib.DataConfig(), domain=name)
            for path in _packaged_files(name)
        )
        return Parts(train, test)
    if kind == "hub":
        train, test = (
            rows.rows_to_problems(
                ((f"row {i}", row) for i, row in enumerate(split or ())),
                data=data,
                source=source,
                domain=pathlib.Path(name).name,
            )
            if split is not None
            else []
            for split in hub.load_splits(name, data.subset)
        )
        return Parts(train, test)
    return Parts(_read_file(place_of(source), data), [])


def _options_of(name: str, data: config_lib.DataConfig) -> str | dict[str, Any]:
    """The options of one generated source: those of all, and those under its name."""
    try:
        given = json.loads(data.task_options)
    except json.JSONDecodeError:
        return data.task_options  # the source says what is wrong with it
    if not isinstance(given, dict):
        return data.task_options
    every = ",".join((data.train, data.evaluation, data.decontaminate))
    parts = (_FIRST_ROWS.sub("", part.strip()) for part in every.split(","))
    generated = {part.partition(":")[2] for part in parts} | {name}
    own = {key for key, value in given.items() if isinstance(value, dict)} & generated
    shared = {key: value for key, value in given.items() if key not in own}
    return shared | (given[name] if name in own else {})


def _read_file(
    path: Any, data: config_lib.DataConfig, *, domain: str | None = None
) -> list[Problem]:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise UserError(
            f"data: does not know the source {str(path)!r}; use packaged:NAME, "
            "task:NAME, gym:NAME, hub:NAME or a file that ends in .jsonl or .jsonl.gz "
            "(data.train, data.evaluation)"
        )
    if not _is_file(path):
        raise FileNotFoundError(
            f"data: there is no file {path} (looked from {pathlib.Path.cwd()}); "
            "correct data.train or data.evaluation"
        )
    return rows.rows_to_problems(
        rows.read_jsonl(path),
        data=data,
        source=str(path),
        domain=domain or path.name.removesuffix(".gz").removesuffix(".jsonl"),
    )


def _is_file(path: Any) -> bool:
    try:
        return path.is_file()
    except ImportError as error:
        raise UserError(
            f"data: {path} is in a bucket, and reading from there needs another "
            f"package: {error}. Or copy the file to a disk (data.train, "
            "data.evaluation)."
        ) from error


def _packaged_files(name: str) -> tuple[pathlib.Path, pathlib.Path]:
    suffix = "_train.jsonl.gz"
    known = sorted(
        path.name.removesuffix(suffix) for path in _PACKAGED_FOLDER.glob(f"*{suffix}")
    )
    if name not in known:
        raise UserError(names.unknown("packaged data set", name, known, "data.train"))
    return (
        _PACKAGED_FOLDER / f"{name}{suffix}",
        _PACKAGED_FOLDER / f"{name}_test.jsonl.gz",
    )
