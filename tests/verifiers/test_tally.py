"""Accuracy, false positives and false negatives of a file of verdicts."""

from rlvr_jax.verifiers import tally
from rlvr_jax.verifiers.base import Sample, Status, Verdict


def outcome(expected, status, contested=False, seconds=0.25):
    verdict = Verdict(status, 0.0, "", seconds)
    return tally.Outcome(
        "row", "", expected, contested, Sample("math", "", ""), verdict
    )


def test_summary():
    """Six rows: two right, a false positive, a false negative, two contested."""
    outcomes = [
        outcome(True, Status.CORRECT),
        outcome(False, Status.TIMEOUT),
        outcome(False, Status.CORRECT),
        outcome(True, Status.CRASH, seconds=0.75),
        outcome(True, Status.WRONG, contested=True),
        outcome(True, Status.CORRECT, contested=True),
    ]
    assert tally.summary(outcomes) == {
        "rows": 6,
        "uncontested": {
            "rows": 4,
            "accuracy": 0.5,
            "false_positives": 1,
            "false_negatives": 1,
        },
        "all": {
            "rows": 6,
            "accuracy": 0.5,
            "false_positives": 1,
            "false_negatives": 2,
        },
        "timeouts": 1,
        "crashes": 1,
        "rows_per_s": 3.0,  # 6 rows in 5 * 0.25 + 0.75 s
        "slowest_s": 0.75,
    }


def test_rows_that_nobody_judged_count_as_correct_or_not():
    outcomes = [outcome(None, Status.CORRECT), outcome(None, Status.WRONG)]
    figures = tally.figures(outcomes)
    assert figures["accuracy"] == 0.5
    assert (figures["false_positives"], figures["false_negatives"]) == (0, 0)
