"""All public vectors agree, and a wrong number does not pass the harness."""

import dataclasses
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

from tests.golden import __main__ as command
from tests.golden import case, compare, registry

PUBLIC = pathlib.Path(__file__).parents[1] / "data" / "golden"
# As counted in the manifest of the vectors.
CASES = 1211


def test_public_vectors_agree():
    """The command as users run it; XLA's flags must be set before JAX starts."""
    keep_small_programs = {
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir or ""),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    run = subprocess.run(
        [sys.executable, "-m", "tests.golden", str(PUBLIC)],
        cwd=PUBLIC.parents[2],
        env=os.environ | keep_small_programs,
        capture_output=True,
        text=True,
        check=False,
    )
    last = run.stdout.splitlines()[-1:]
    expected = f"golden: {CASES} passed, 0 failed, 0 not covered"
    assert (run.returncode, last) == (0, [expected]), run.stderr


@pytest.fixture(scope="module")
def example():
    return next(c for c in case.load(PUBLIC) if c.formula == "agg" and c.outputs)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda x: x * (1 + 1e-6), "off by"),
        (lambda x: np.where(x == x.max(), np.nan, x), "off by inf"),
        (lambda x: x[:-1], "shape"),
        (None, "does not compute"),
    ],
    ids=["a millionth", "NaN", "a row less", "missing"],
)
def test_wrong_results_are_problems(example, change, problem):
    computed = dict(example.expected)
    if change is None:
        del computed["grad"]
    else:
        computed["grad"] = change(computed["grad"])
    assert problem in compare.compare(example, computed).problem
    assert compare.compare(example, dict(example.expected)).problem == ""


def test_expected_nan_and_infinity_are_reproduced(example):
    odd = np.array([np.nan, np.inf, -np.inf, 1.0])
    changed = dataclasses.replace(example, outputs={"grad": odd}, scalars={})
    assert compare.compare(changed, {"grad": odd.copy()}).problem == ""
    assert compare.compare(changed, {"grad": np.nan_to_num(odd)}).problem != ""


def run_command(monkeypatch, capsys, cases, adapters):
    monkeypatch.setattr(registry, "load", lambda directory: cases)
    monkeypatch.setattr(registry, "adapters", lambda: adapters)
    monkeypatch.setenv("XLA_FLAGS", "")
    status = command.main(["anywhere"])
    return status, capsys.readouterr().out.splitlines()


def test_the_command_counts_and_fails(monkeypatch, capsys, example):
    wrong = dataclasses.replace(example, name="wrong", formula="wrong")
    raises = dataclasses.replace(example, name="raises", formula="raises")
    unknown = dataclasses.replace(example, formula="unknown")
    adapters = {
        "agg": lambda c: c.expected,
        "wrong": lambda c: {"loss": c.scalars["loss"] + 1.0, "grad": c.outputs["grad"]},
        "raises": lambda c: {}["no such key"],
    }
    cases = [example, wrong, raises, unknown]
    status, lines = run_command(monkeypatch, capsys, cases, adapters)
    assert status == 1
    assert lines[-1] == "golden: 1 passed, 2 failed, 1 not covered"
    assert len(lines) == 5

    status, lines = run_command(monkeypatch, capsys, [example], adapters)
    assert status == 0
    assert lines[-1] == "golden: 1 passed, 0 failed, 0 not covered"


def test_a_directory_without_a_manifest_is_one_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"manifest\.json"):
        case.load(tmp_path)
