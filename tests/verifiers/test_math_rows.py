"""The math verifier on recorded and own rows: VER-01, VER-09.

tests/data/verify/SOURCES.md says where they come from.
"""

import json
import pathlib
import time

import pytest

from rlvr_jax.verifiers import math
from rlvr_jax.verifiers.base import Sample, Status, apply

DATA = pathlib.Path(__file__).parents[1] / "data" / "verify"


def _rows(name):
    lines = (DATA / name).read_text(encoding="utf8").splitlines()
    return [json.loads(line) for line in lines]


def _by_kind(name):
    kinds = {}
    for row in _rows(name):
        kinds.setdefault(row["kind"], []).append(row)
    return [pytest.param(rows, id=kind) for kind, rows in sorted(kinds.items())]


def _errors(rows):
    errors = []
    for row in rows:
        question = row.get("question", "")
        sample = Sample("math", row["pred"], row["gold"], question=question)
        verdict = apply(math.verify, sample)
        if (verdict.status is Status.CORRECT) != row["expected"]:
            errors.append((row["gold"], row["pred"], str(verdict)))
    return errors


@pytest.mark.parametrize("rows", _by_kind("recorded_math.jsonl"))
def test_recorded_rows(rows):
    """What other projects' tests and issues say is the same, and what is not."""
    assert _errors(rows) == []


@pytest.mark.parametrize("rows", _by_kind("own_math.jsonl"))
def test_own_rows(rows):
    assert _errors(rows) == []


@pytest.mark.parametrize("rows", _by_kind("math_own.jsonl"))
def test_rows_written_after_the_rules(rows):
    """Other notations of the same kinds, written when the rules above all passed."""
    assert _errors(rows) == []


@pytest.mark.parametrize("rows", _by_kind("adversarial_math.jsonl"))
def test_adversarial_rows(rows):
    """Hedges, echoes, bombs, injections, tolerance traps."""
    assert _errors(rows) == []


SYMMETRIC = frozenset(
    "fraction expression interval relation equation set tuple matrix radical trig log "
    "complex factorial base ratio scientific mixed-number sqrt identity".split()
)


@pytest.mark.parametrize(
    "row",
    [
        row
        for name in ("recorded_math.jsonl", "own_math.jsonl")
        for row in _rows(name)
        if row["kind"] in SYMMETRIC and "answer is" not in row["pred"]
    ],
    ids=lambda row: f"{row['gold'][:20]}|{row['pred'][:20]}",
)
def test_equality_does_not_depend_on_the_side(row):
    """The reference as the answer, and the answer as the reference."""
    turned = Sample("math", f"\\boxed{{{row['gold']}}}", row["pred"])
    verdict = apply(math.verify, turned)
    assert (verdict.status is Status.CORRECT) == row["expected"], verdict


BOMBS = {
    "digits": "7" * 100_000,
    "letters": "\\boxed{" + "a" * 50_000 + "}",
    "sum": "\\boxed{" + "1+" * 20_000 + "1}",
    "matrix": "\\boxed{\\begin{pmatrix}" + "1 & " * 14_000 + "1\\end{pmatrix}}",
    "fractions": "\\frac{" * 2_000 + "4",
    "braces": "\\boxed{" + "{" * 5_000 + "4" + "}" * 4_990,
    "boxes": "\\boxed{" * 3_000,
    "opened formulas": "\\[" * 20_000,
    "opened brackets": "#### " + "(**" * 30_000 + "1 or ",
    "commands": "#### \\frac{" + "**$1to &" * 10_000,
    "tags": "<answer>" * 10_000,
    "answers": "the answer is " * 5_000,
    "thoughts": "<think>" * 20_000,
    "newlines": "answer" + "\n" * 50_000,
    "parentheses": "\\boxed{" + "(" * 1_900 + ")" * 1_900 + "}",
    "minus signs": "\\boxed{" + "-" * 3_000 + "4}",
    "absolute values": "\\boxed{" + "|" * 3_000 + "}",
    "list": "\\boxed{" + ",".join(map(str, range(900))) + "}",
    "alternatives": "\\boxed{" + "\\pm 1 " * 60 + "}",
    "tower": "\\boxed{9^{9^{9^{9^{9^9}}}}}",
    "factorials": "\\boxed{9!!!!!!!!!!!!}",
    "root": "\\boxed{\\sqrt[1000000007]{2^{1000000009}}}",
    "binomial": "\\boxed{\\binom{10^{9}}{5\\cdot 10^{8}}}",
    "sine": "\\boxed{\\sin(e^{e^{e^{10}}})}",
    "exponent": "1e1000000000",
    "small": "\\boxed{4 + 10^{-10^{10}}}",
    "variables": "\\boxed{(x+y+z+w)^{5000}}",
    "tower of variables": "\\boxed{x^{x^{x^{x^{x^x}}}}}",
    "gcd": "\\boxed{\\gcd(10^{10000}, 3^{20000})}",
    "union": "\\boxed{" + " \\cup ".join(["(0,1)"] * 300) + "}",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("gold", ["4", "x+1", "[0,1]"])
def test_bombs_go_off_in_no_time(name, gold):
    """A row may take 2 s; these take 0.1 s without the type checks of a test."""
    start = time.process_time()
    verdict = apply(math.verify, Sample("math", BOMBS[name], gold))
    assert time.process_time() - start < 2.0
    assert verdict.status in (Status.WRONG, Status.UNPARSEABLE)
