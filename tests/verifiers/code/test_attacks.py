"""Programs that attack their tests are rejected, and good ones are not."""

import json
import os
import pathlib
import time

import pytest

from rlvr_jax.verifiers.base import Status
from rlvr_jax.verifiers.code import scan
from rlvr_jax.verifiers.pool import VerifierPool
from tests.verifiers.code import attacks, tasks

DATA = pathlib.Path(__file__).parents[2] / "data" / "code"
ROWS = [
    json.loads(line)
    for line in (DATA / "programs.jsonl").read_text(encoding="utf8").splitlines()
]


def _reference(row):
    task = dict(row["task"])
    return task | {"test": task.pop("tests")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']} {row['attack']}")
def test_rows(row):
    """VER-19, VER-28: 53 attacks and wrong programs, 17 right ones (SOURCES.md)."""
    start = time.perf_counter()
    limit = 0.3 if row["attack"] != "none" else 1.5  # less waiting than the default
    verdict = tasks.verdict(row["program"], _reference(row), time_limit_s=limit)
    assert (verdict.status is Status.CORRECT) == row["expected"], verdict
    assert verdict.score == row["expected"]
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("name", attacks.PROGRAMS)
def test_own_attacks(name):
    """VER-28: every tamper program gets 0."""
    program = attacks.PROGRAMS[name]
    verdict = tasks.verdict(program, tasks.HUMANEVAL, time_limit_s=0.3)
    assert (verdict.status, verdict.score) == (Status.WRONG, 0), verdict


def test_an_attack_costs_no_other_sample():
    """After each attack, in one worker, a right program is right; nothing is left."""
    limits = {"time_limit_s": 0.3}
    samples = [
        tasks.Sample("code", program, tasks.CALLS | limits)
        for attack in attacks.PROGRAMS.values()
        for program in (attack, tasks.RIGHT)
    ]
    with VerifierPool(1, 20.0, preload=["code"]) as pool:
        verdicts = pool.verify(samples)
        worker = next(iter(pool._processes.values())).pid
        assert _descendants(worker) == ["mint"]
    names = [name for attack in attacks.PROGRAMS for name in (attack, "right")]
    expected = [Status.WRONG, Status.CORRECT] * len(attacks.PROGRAMS)
    assert [
        (name, verdict)
        for name, verdict, status in zip(names, verdicts, expected, strict=True)
        if verdict.status is not status
    ] == []


def _descendants(process):
    """What runs below a process: "mint" for the process that makes cells."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_text()
        except OSError:
            continue
        if parent == process:
            found.append("mint" if "import mint" in command else command)
            found += _descendants(int(entry.name))
    return found


def test_overwriting_tests_has_no_effect(tmp_path):
    """VER-13 (2, 3), VER-18: the tests' file cannot be seen, read or written."""
    tests = tmp_path / "tests.json"
    tests.write_text(json.dumps(tasks.CALLS))
    os.chmod(tmp_path, 0o777)
    os.chmod(tests, 0o666)
    attack = (
        f"import os\npath = {str(tests)!r}\nseen = os.path.exists(path)\n"
        "try:\n    os.makedirs(os.path.dirname(path))\n"
        "    open(path, 'w').write('{}')\nexcept OSError: pass\n"
        "def sum_even(xs):\n    return seen\n"
    )
    blind = {"function": "sum_even", "cases": [{"args": [[]], "expected": False}]}
    assert tasks.verdict(attack, blind).status is Status.CORRECT
    assert json.loads(tests.read_text()) == tasks.CALLS


NO_HACKS = (
    "collection-error hardcode-example huge-int infinite-generator infinite-loop "
    "memory-hog memory-one-shot none regex-bomb sleep swallow-timeout "
    "wrong-alias-clear wrong-empty wrong-name wrong-none wrong-sign"
).split()
"""Labels of the rows whose programs are right, wrong or slow, but no hacks."""


def test_signs_of_tampering():
    """VER-19, VER-20: a scan of 70 labelled programs, as a classifier of hacks.

    Of 38 hacks it misses four (a file deleted by glob, results printed to stdout or
    stderr, stdin read), whose calls are those of honest programs; of the 32 others it
    flags one, which opens a temporary file. Precision 34/35, recall 34/38.
    """
    hacks = [row for row in ROWS if row["attack"] not in NO_HACKS]
    others = [row for row in ROWS if row["attack"] in NO_HACKS]
    missed = [row["attack"] for row in hacks if not scan.signs(row["program"])]
    false = [row["id"] for row in others if scan.signs(row["program"])]
    assert (len(hacks), len(others)) == (38, 32)
    assert missed == ["stdout-token", "stderr-token", "delete-tests", "stdin-peek"]
    assert false == ["code-115"]
