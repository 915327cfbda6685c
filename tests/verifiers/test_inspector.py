"""Checkers side by side."""

import pytest

from rlvr_jax.verifiers import inspector
from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.pool import VerifierPool

RIGHT = [right for _, right in inspector.EIGHT]


@pytest.fixture(scope="module")
def eight():
    with VerifierPool(1, 5.0) as pool:
        yield inspector.matrix(inspector.eight_samples(), inspector.CHECKERS, pool)


def errors(verdicts):
    counts = inspector.confusion(verdicts, RIGHT)["all"]
    return counts.false_positives, counts.false_negatives


def test_the_eight_outputs(eight):
    """VER-11: as the table is described: (false positives, false negatives) of five
    right outputs and three wrong ones.

    The strict ones err on the right ones alone (VER-09's math on none); the exact
    string is fooled by the hedge (VER-06); the last number rejects all that is wrong,
    by rejecting three right ones too (VER-07); the lenient judge accepts all (VER-10).
    """
    assert RIGHT == [True, True, True, True, False, False, False, True]
    assert {name: errors(verdicts) for name, verdicts in eight.items()} == {
        "math": (0, 0),
        "exact": (0, 3),
        "weak:exact_string": (1, 3),
        "weak:any_boxed": (1, 1),
        "weak:last_number": (0, 3),
        "weak:mentions": (3, 0),
    }
    hedge = 4
    assert eight["weak:exact_string"][hedge].status is Status.CORRECT
    assert eight["exact"][hedge].status is Status.UNPARSEABLE


def verdicts(accepted):
    return [Verdict(Status.CORRECT if a else Status.WRONG, float(a)) for a in accepted]


def test_two_checkers_of_equal_rates_differ_by_pattern():
    """VER-12: both accept 2 of 6 wrong and miss 1 of 4 right; by pattern they differ.

    The first is fooled wherever a text says "Certainly", the other here and there.
    """
    texts = ["Certainly"] * 2 + ["x"] * 4 + ["ok"] * 3 + ["Certainly ok"]
    right = [False] * 6 + [True] * 4
    patterns = {"certainly": "^Certainly", "none": "never"}
    one = inspector.confusion(
        verdicts([1, 1, 0, 0, 0, 0, 1, 1, 0, 1]), right, texts, patterns
    )
    other = inspector.confusion(
        verdicts([0, 1, 1, 0, 0, 0, 1, 1, 1, 0]), right, texts, patterns
    )
    assert one["all"] == other["all"] == inspector.Counts(3, 2, 1, 4)
    assert one["all"].false_positive_rate == pytest.approx(2 / 6)
    assert one["all"].true_positive_rate == pytest.approx(3 / 4)
    assert one["certainly"] == inspector.Counts(1, 2, 0, 0)
    assert other["certainly"] == inspector.Counts(0, 1, 1, 1)
    assert one["none"] == inspector.Counts()
    assert one["none"].false_positive_rate is None
    assert one["none"].true_positive_rate is None


def test_the_matrix_keeps_rows_and_columns():
    class Pool(VerifierPool):
        def __init__(self):
            pass

        def verify(self, samples):
            return [Verdict(Status.WRONG, 0.0, s.verifier + s.answer) for s in samples]

    samples = [Sample("", "", answer) for answer in "123"]
    found = inspector.matrix(samples, ["a", "b"], Pool())
    assert {name: [v.detail for v in row] for name, row in found.items()} == {
        "a": ["a1", "a2", "a3"],
        "b": ["b1", "b2", "b3"],
    }
