"""From the settings to a list of problems, whatever the source.

    packaged:NAME          ships with the project; has a test part
    task:NAME              generated (rlvr_jax/data/tasks); has a held-out stream
    PATH.jsonl[.gz]        one {"question", "answer", ...} a line
    hub:NAME or hub:PATH   a Hugging Face data set, or a folder of one

With `data.evaluation` empty, evaluation takes the held-out part of the training
source: its test part, its held-out stream, or, for a file or a data set without a test
split, the last tenth of its rows (at most 256), which training then leaves out.
"""

import dataclasses
import pathlib
from typing import Literal

from rlvr_jax import config as config_lib
from rlvr_jax.data import hub, names, rows, tasks
from rlvr_jax.data.rows import Problem

Split = Literal["train", "evaluation"]

MAX_HELD_OUT = 256
_PACKAGED_FOLDER = pathlib.Path(__file__).parent / "packaged"


def load_problems(
    data: config_lib.DataConfig, *, split: Split, default_verifier: str, seed: int
) -> list[Problem]:
    """Loads the training or the evaluation problems that the settings name.

    No training problem asks a question of the evaluation part of the same source:
    questions are compared by `normalized_question`.

    Args:
      data: the settings; see the module's docstring for the forms of a source.
      split: which part.
      default_verifier: for problems that name none.
      seed: of generated problems. Files and data sets do not depend on it.

    Returns:
      The problems in the source's order, at least one.

    Raises:
      ValueError: unknown source or task, bad row, too few rows to hold some out.
      FileNotFoundError: no such file or folder.
      ConnectionError: a data set of the hub cannot be fetched.
    """
    shared = data.evaluation in ("", data.train)
    source = data.train if split == "train" or shared else data.evaluation
    if source.startswith("task:"):
        problems = tasks.generate(
            source.removeprefix("task:"), seed, split, options=data.task_options
        )
    else:
        problems = _load_stored(source, data, split, default_verifier, shared)
    return [
        dataclasses.replace(p, verifier=p.verifier or default_verifier)
        for p in problems
    ]


def normalized_question(question: str) -> str:
    """What two spellings of one question share: case and white space do not count.

    Example:
      >>> normalized_question("What is  2 + 2?\\n")
      'what is 2 + 2?'
    """
    return " ".join(question.casefold().split())


def _load_stored(
    source: str,
    data: config_lib.DataConfig,
    split: Split,
    default_verifier: str,
    shared: bool,
) -> list[Problem]:
    """One split of a packaged set, a file or a data set; `shared`: it serves both."""
    problems, test = _read_stored(source, data, default_verifier)
    if not shared:
        return test if split == "evaluation" and test else problems
    if not test:
        problems, test = _hold_out_last(problems, source)
    return test if split == "evaluation" else _without(problems, test, source)


def _read_stored(
    source: str, data: config_lib.DataConfig, default_verifier: str
) -> tuple[list[Problem], list[Problem]]:
    """The problems and, where the source has one, its test part (else [])."""
    kind, _, name = source.partition(":")
    if kind == "packaged":
        train, test = (
            _read_file(path, config_lib.DataConfig(), name, default_verifier)
            for path in _packaged_files(name)
        )
        return train, test
    if kind == "hub":
        splits = hub.load_splits(name, data.subset)
        train, test = (
            rows.rows_to_problems(
                ((f"row {i}", row) for i, row in enumerate(split)),
                data=data,
                source=source,
                domain=pathlib.Path(name).name,
                default_verifier=default_verifier,
            )
            if split is not None
            else []
            for split in splits
        )
        return train, test
    return _read_file(pathlib.Path(source), data, None, default_verifier), []


def _read_file(
    path: pathlib.Path,
    data: config_lib.DataConfig,
    domain: str | None,
    default_verifier: str,
) -> list[Problem]:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise ValueError(
            f"data: does not know the source {str(path)!r}; use packaged:NAME, "
            "task:NAME, hub:NAME or a file that ends in .jsonl or .jsonl.gz "
            "(data.train, data.evaluation)"
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"data: there is no file {path} (looked from {pathlib.Path.cwd()}); "
            "correct data.train or data.evaluation"
        )
    return rows.rows_to_problems(
        rows.read_jsonl(path),
        data=data,
        source=str(path),
        domain=domain or path.name.removesuffix(".gz").removesuffix(".jsonl"),
        default_verifier=default_verifier,
    )


def _packaged_files(name: str) -> tuple[pathlib.Path, pathlib.Path]:
    suffix = "_train.jsonl.gz"
    known = sorted(
        path.name.removesuffix(suffix) for path in _PACKAGED_FOLDER.glob(f"*{suffix}")
    )
    if name not in known:
        raise ValueError(names.unknown("packaged data set", name, known, "data.train"))
    return (
        _PACKAGED_FOLDER / f"{name}_train.jsonl.gz",
        _PACKAGED_FOLDER / f"{name}_test.jsonl.gz",
    )


def _hold_out_last(
    problems: list[Problem], source: str
) -> tuple[list[Problem], list[Problem]]:
    held_out = min(MAX_HELD_OUT, max(1, len(problems) // 10))
    if len(problems) < 2:
        raise ValueError(
            f"{source}: holds {len(problems)} row; 2 are needed to keep one for "
            "evaluation. Add rows, or name other problems in data.evaluation"
        )
    return problems[:-held_out], problems[-held_out:]


def _without(
    problems: list[Problem], held_out: list[Problem], source: str
) -> list[Problem]:
    seen = {normalized_question(problem.question) for problem in held_out}
    kept = [p for p in problems if normalized_question(p.question) not in seen]
    if not kept:
        raise ValueError(
            f"{source}: every training question is also in its held-out part; name "
            "other problems in data.evaluation"
        )
    return kept
