"""Scores of one model and comparisons of two, on planted counts."""

import json
import pathlib

import numpy as np
import pytest

from rlvr_jax.analysis.comparison import (
    compare,
    finding,
    perplexities,
    sampling_gap,
    summary,
)
from rlvr_jax.analysis.correlation import rank_correlation
from rlvr_jax.analysis.counts import ProblemCounts, read_counts
from rlvr_jax.core.passk import mean_interval, pass_at_k

DATA = pathlib.Path(__file__).parents[1] / "data" / "passk"


def counted(correct, n=8, **fields):
    """One problem per entry of `correct`."""
    return [ProblemCounts(str(i), n, c, **fields) for i, c in enumerate(correct)]


def test_summary_of_counts_alone():
    """PK-05, PK-37: coverage is the share with c > 0, here 3 of 4; avg@8 the mean rate;
    every k of pass@k with the interval that a training run reports."""
    correct = [0, 1, 4, 8]
    found = summary(counted(correct))
    assert found["avg@n"][0] == pytest.approx(13 / 32)
    assert found["coverage"][0] == pytest.approx(0.75)
    assert len(found["pass@k"]) == 8
    for k in (1, 3, 8):
        expected = mean_interval(pass_at_k(8, correct, k))
        assert found["pass@k"][k - 1] == pytest.approx(expected)
    assert found["avg@n"] == pytest.approx(found["pass@k"][0])
    assert found["coverage"] == pytest.approx(found["pass@k"][-1])
    assert "maj@k" not in found
    assert json.dumps(found, allow_nan=False)


def test_summary_of_sampled_completions():
    """PK-33, PK-37: two right of four, three different answers; the likeliest is wrong.

    By hand: maj@4 is 1 as two votes beat one and one; best-of-4 by log-prob is 0, and
    best-of-2 the share of the pairs whose likelier member is right. Sorted by
    log-prob the labels are 1, 1, 0, 0: only the pair of the first two wins, 1 of 6.
    """
    problem = ProblemCounts(
        "a",
        4,
        2,
        correct=[1, 0, 1, 0],
        answers=[0, 1, 0, 2],
        logprobs=[-3.0, -1.0, -2.0, -0.5],
        tokens=[10, 20, 30, 40],
        ended=[1, 1, 1, 0],
    )
    found = summary([problem])
    assert found["maj@k"][3][0] == pytest.approx(1)
    assert found["best_of_k"][1][0] == pytest.approx(1 / 6)
    assert found["best_of_k"][3][0] == 0
    assert found["tokens"] == 25
    assert found["truncated_share"] == pytest.approx(0.25)


def test_behaviours_are_judged_over_problems():
    """BEH-03: three problems whose eight completions are all alike are three cases, not
    24: what 24 would show (a difference of 1, surely above .4) these do not."""
    wait, plain = ("Wait, again: 4.",) * 8, ("It is 4.",) * 8
    problems = [
        ProblemCounts("a", 8, 8, correct=[1] * 8, completions=wait),
        ProblemCounts("b", 8, 0, correct=[0] * 8, completions=plain),
        ProblemCounts("c", 8, 0, correct=[0] * 8, completions=plain),
    ]
    mean, low, high = summary(problems)["behaviours"]["reflection"][
        "accuracy_difference"
    ]
    assert mean == high == 1
    assert low < 0.4


def test_published_models_compared():
    """PK-22, PK-11, PK-25 from files: Yang, Zhang, Chen 2026 certify the crossing."""
    base, other = (
        read_counts(DATA / f"deepscaler32k_{name}.jsonl.gz") for name in ("base", "rl")
    )
    # 400 draws are enough for the interval; the full 4,000 are in test_paired.py.
    found = compare(base, other[::-1], resamples=400)
    assert found["crosses"]
    assert found["finding"] == "sharpening + coverage loss"
    assert found["verdicts"][0] == "gain"
    assert found["verdicts"][-1] == "loss"
    assert found["first_loss"][0] in (11, 12)
    matrix = np.array(found["transitions"])
    assert matrix.sum() == found["problems"] == 1060
    # The sets do not nest: 12 problems are new, 33 are lost (counted from the files).
    assert found["solved"]["gained"] == matrix[0, 1:].sum() == 12
    assert found["solved"]["lost"] == matrix[1:, 0].sum() == 33
    assert not found["solved"]["is_subset"]


def test_a_model_against_itself():
    """PK-24: nothing is established, and nothing is claimed."""
    problems = counted([0, 1, 4, 8, 3])
    found = compare(problems, problems)
    assert found["finding"] == "no difference established"
    assert set(found["verdicts"]) == {"inconclusive"}
    assert found["sharpening_tax"] == [0, 0]
    assert found["solved"]["is_subset"]


def test_the_quiz():
    """PK-07: pass@1 .30 -> .45 and pass@256 .80 -> .65, both established."""
    assert finding("gain", "loss") == "sharpening + coverage loss"
    # 200 problems that show it: the base solves 160 of them at 96/256, the other 130
    # at 177/256, which is .30 -> .45 (and one sample over) at k = 1.
    base = counted([96] * 160 + [0] * 40, n=256)
    other = counted([177] * 130 + [0] * 70, n=256)
    found = compare(base, other, resamples=400)
    assert summary(base)["pass@k"][0][0] == pytest.approx(0.30)
    assert summary(other)["pass@k"][0][0] == pytest.approx(0.45, abs=0.001)
    assert summary(base)["pass@k"][-1][0] == pytest.approx(0.80)
    assert summary(other)["pass@k"][-1][0] == pytest.approx(0.65)
    assert found["finding"] == "sharpening + coverage loss"


def test_sampling_gap():
    """PK-12: the base reaches .8 at k = 256, the trained model .38 at once: 42 points
    are left on the table (Yue et al. report 42.6 to 43.9 for six algorithms)."""
    assert sampling_gap(0.8, 0.38) == pytest.approx(0.42)
    base, other = counted([4, 4, 0]), counted([8, 6, 0])
    expected = 2 / 3 - (1 + 0.75) / 3
    assert compare(base, other)["sampling_gap"] == pytest.approx(expected)


def test_gains_fall_with_the_base_level():
    """PK-20: a planted negative correlation, and its sign turned around."""
    base = counted([0, 1, 2, 3, 4, 5])
    other = counted([8, 5, 4, 3, 2, 1], n=8)
    gains = [8, 4, 2, 0, -2, -4]
    assert compare(base, other)["gain_by_level"] < 0
    assert rank_correlation(np.arange(6.0), np.array(gains, float)) == -1
    assert rank_correlation(np.arange(6.0), np.arange(6.0) ** 3) == 1
    assert rank_correlation(np.zeros(3), np.arange(3.0)) is None
    # Ranks 0.5, 0.5, 2 and 0, 1, 2: Pearson of the ranks, by hand 1.5 / sqrt(1.5 x 2).
    tied = rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))
    assert tied == pytest.approx(1.5 / np.sqrt(3))


def test_equal_cost_is_compared():
    """PK-35, DIAG-27: the other model writes twice as long, so its k = 1 stands beside
    the base's k = 2: .75 of one problem's pairs hold a right one, and so on."""
    base = counted([4, 0, 2, 8], tokens=[10] * 8)
    other = counted([6, 2, 2, 8], tokens=[20] * 8)
    found = compare(base, other)["matched"]
    assert [(m["base_k"], m["other_k"]) for m in found] == [
        (2, 1),
        (4, 2),
        (6, 3),
        (8, 4),
    ]
    expected = np.mean(pass_at_k(8, [6, 2, 2, 8], 1) - pass_at_k(8, [4, 0, 2, 8], 2))
    assert found[0]["difference"][0] == pytest.approx(expected)


def test_perplexity_of_solutions_under_the_base():
    """PK-10: uniform over 4 tokens is exp(log 4) = 4 per token, over 2 it is 2."""
    four, two = -np.log(4), -np.log(2)
    problems = [
        ProblemCounts("a", 3, 2, correct=[1, 1, 0], base_logprobs=[two, two, four]),
        ProblemCounts("b", 1, 0, correct=[0], base_logprobs=[four]),
    ]
    assert perplexities(problems) == {
        "correct": pytest.approx(2),
        "wrong": pytest.approx(4),
    }
    assert summary(problems)["perplexity_correct"] == pytest.approx(2)
    assert perplexities(counted([1])) == {"correct": None, "wrong": None}


def test_new_solutions_are_looked_at_by_themselves():
    """PK-29: only problem 1 is newly solved; its solution has a perplexity of 50 under
    the base, the old one of 2."""
    base = counted([1, 0], n=2)
    other = [
        ProblemCounts("0", 2, 1, correct=[1, 0], base_logprobs=[-np.log(2)] * 2),
        ProblemCounts("1", 2, 1, correct=[1, 0], base_logprobs=[-np.log(50)] * 2),
    ]
    found = compare(base, other)["new_solutions_perplexity"]
    assert found == pytest.approx(50)
