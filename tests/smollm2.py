"""SmolLM2-135M-Instruct for tests: fetched once into the cache, or the test fails."""

import functools
import json
import pathlib
from typing import Any

import numpy as np
import pytest

from launch import fetch

_DATA = pathlib.Path(__file__).parent / "data" / "smollm2"


@functools.cache
def directory() -> pathlib.Path:
    """The Hugging Face directory; without it a test fails, as it would show nothing."""
    try:
        return fetch.fetch_smollm2()
    except fetch.FetchError as error:
        pytest.fail(str(error), pytrace=False)


def gguf_file() -> pathlib.Path:
    """The 4-bit file that the directory was made from."""
    directory()
    return fetch.smollm2_gguf()


@functools.cache
def reference() -> dict[str, np.ndarray]:
    """What transformers computes; tests/data/smollm2/SOURCES.md names the arrays."""
    with np.load(_DATA / "reference.npz") as arrays:
        return dict(arrays)


@functools.cache
def reference_facts() -> dict[str, Any]:
    """Prompts as text, and the sha256 of the weights."""
    return json.loads((_DATA / "reference.json").read_text(encoding="utf8"))
