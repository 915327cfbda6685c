"""Data sets of the Hugging Face hub, and local folders of the same kinds."""

import json
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from rlvr_jax.errors import UserError

Rows = Iterable[dict[str, Any]]


def load_splits(name: str, subset: str) -> tuple[Rows, Rows | None]:
    """Loads the rows to train on and, where the data set has them, its test rows.

    The training rows are the split "train", or the only split there is; the test rows
    are "test", else "validation".

    Args:
      name: a data set of the hub ("openai/gsm8k"), a folder that `save_to_disk`
        wrote, or a folder of parquet, jsonl or json files.
      subset: the data set's configuration name, as "main"; "" for its default.

    Returns:
      (training rows, test rows or None).

    Raises:
      FileNotFoundError: `name` looks like a folder and is none.
      ConnectionError: the hub cannot be reached.
      UserError: the data set cannot be read, or has several splits and no "train".
    """
    import datasets  # Takes seconds and is needed by this source only.

    folder = pathlib.Path(name).expanduser()
    if name.startswith((".", "/", "~")) and not folder.is_dir():
        raise FileNotFoundError(
            f"data: there is no folder {folder} for hub:{name}; correct data.train or "
            "data.evaluation"
        )
    try:
        if _is_saved(folder):
            loaded: Any = datasets.load_from_disk(os.fspath(folder))
        else:
            loaded = datasets.load_dataset(name, subset or None)
    except Exception as error:
        raise _explained(error, name) from error
    splits: dict[str, Any] = (
        {"train": loaded} if isinstance(loaded, datasets.Dataset) else dict(loaded)
    )
    if "train" not in splits and len(splits) > 1:
        raise UserError(
            f"hub:{name}: has the splits {', '.join(splits)} and no 'train'; save the "
            "one you need with save_to_disk and name that folder in data.train"
        )
    train = splits.pop("train" if "train" in splits else next(iter(splits)))
    test = splits.get("test", splits.get("validation"))
    return _json_rows(train), None if test is None else _json_rows(test)


def _json_rows(split: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Rows of JSON values alone, which is what verifiers take; a date becomes text."""
    for row in split:
        yield json.loads(json.dumps(row, default=str))


def _is_saved(folder: pathlib.Path) -> bool:
    """Whether `save_to_disk` wrote the folder."""
    marks = ("dataset_dict.json", "state.json")
    return any((folder / mark).is_file() for mark in marks)


def _explained(error: Exception, name: str) -> Exception:
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
        return ConnectionError(
            f"hub:{name}: cannot be fetched ({_first_line(error)}). Without network, "
            "download it elsewhere, write it with datasets.save_to_disk(FOLDER), and "
            "set data.train=hub:FOLDER; packaged:gsm8k needs no download"
        )
    return UserError(
        f"hub:{name}: cannot be loaded ({_first_line(error)}). Check the name in "
        "data.train or data.evaluation, and data.subset where it has several "
        "configurations"
    )


def _first_line(error: Exception) -> str:
    first, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
