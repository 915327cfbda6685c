"""One golden case: what went into a peer's function and what came out."""

import dataclasses
import gzip
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """Inputs and expected results of one call of a peer's function."""

    name: str
    formula: str
    """Selects the adapter."""
    quantity: str
    peer: str
    source: str
    """file::function in the peer's repository."""
    params: dict[str, Any]
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    scalars: dict[str, float]
    precision: str
    """"f64", "mixed" (a float32 constant inside the peer) or "f32" (all of it)."""
    notes: str
    atol: float
    """Absolute tolerance given with the case, beside that of its precision."""

    @property
    def expected(self) -> dict[str, np.ndarray]:
        """Every array and every scalar that must be reproduced, by name."""
        scalars = {name: np.asarray(value) for name, value in self.scalars.items()}
        return self.outputs | scalars


Adapter = Callable[[Case], dict[str, Any]]
"""Computes every array and scalar of `Case.expected`, by name."""


def load(directory: pathlib.Path) -> list[Case]:
    """All cases of a directory with manifest.json (or .json.gz) and npz files."""
    plain, packed = directory / "manifest.json", directory / "manifest.json.gz"
    if plain.exists():
        manifest = json.loads(plain.read_text())
    elif packed.exists():
        manifest = json.loads(gzip.decompress(packed.read_bytes()))
    else:
        raise FileNotFoundError(
            f"tests.golden: no manifest.json or manifest.json.gz in {directory}."
        )
    files: dict[str, dict[str, np.ndarray]] = {}
    for entry in manifest["cases"]:
        if entry["file"] not in files:
            with np.load(directory / entry["file"]) as arrays:
                files[entry["file"]] = dict(arrays)
    return [_case(entry, files[entry["file"]]) for entry in manifest["cases"]]


def _case(entry: dict[str, Any], arrays: dict[str, np.ndarray]) -> Case:
    def pick(section: str) -> dict[str, np.ndarray]:
        return {
            name: arrays[place["key"]].reshape(place["shape"])
            for name, place in entry[section].items()
        }

    return Case(
        name=entry["name"],
        formula=entry["formula"],
        quantity=entry["quantity"],
        peer=entry["peer"],
        source=entry["source"],
        params=entry["params"],
        inputs=pick("inputs"),
        outputs=pick("outputs"),
        # Values that JSON cannot hold are written as "nan", "inf", "-inf".
        scalars={name: float(value) for name, value in entry["scalars"].items()},
        precision=entry["precision"],
        notes=entry.get("notes", ""),
        atol=entry.get("atol", 0.0),
    )
