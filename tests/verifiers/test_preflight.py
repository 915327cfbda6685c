"""References are verified against themselves before a run."""

import pathlib

import pytest

from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.pool import VerifierPool
from rlvr_jax.verifiers.preflight import check_references

HOSTILE = f"{pathlib.Path(__file__).parent / 'hostile.py'}:"


@pytest.fixture(scope="module")
def pool():
    with VerifierPool(1, 2.0) as pool:
        yield pool


def test_good_references_pass(pool):
    samples = [
        Sample("math", "", r"\frac{1}{2}"),
        Sample("math", "", 42),
        Sample("math", "", r"\text{Evelyn}"),
        Sample("math", "", r"\left\{1 / x, e^{2 x}\right\}"),
        Sample("math", "", "B"),
        Sample("math", "", "2^{4^{8^{16}}}"),
        Sample("exact", "", "New York"),
        Sample("countdown", "", {"target": 6, "numbers": [1, 2, 3]}),
        Sample("format:think", "", None),
        Sample(HOSTILE + "echo", "", "anything"),
    ]
    assert check_references(samples, pool) == []


@pytest.mark.parametrize(
    ("verifier", "answer", "status"),
    [
        ("math", "", Status.BAD_REFERENCE),
        ("math", None, Status.BAD_REFERENCE),
        ("math", [1, 2], Status.BAD_REFERENCE),
        ("math", r"\frac{1}{0}", Status.BAD_REFERENCE),
        ("math", r"90{square", Status.UNPARSEABLE),
        ("exact", " ", Status.BAD_REFERENCE),
        ("countdown", "60", Status.BAD_REFERENCE),
        (HOSTILE + "raise_error", "1", Status.CRASH),
        (HOSTILE + "nap", 60, Status.TIMEOUT),
        (HOSTILE + "missing", "1", Status.CRASH),
    ],
)
def test_bad_references_are_returned_with_the_reason(pool, verifier, answer, status):
    good = Sample("math", "", "1")
    bad = Sample(verifier, "", answer)
    ((sample, verdict),) = check_references([good, bad, good], pool)
    assert sample is bad
    assert verdict.status is status
    assert verdict.detail
