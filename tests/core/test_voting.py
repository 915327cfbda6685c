"""maj@k and best-of-k against all subsets; votes with weights; the ROC curve."""

import collections
import itertools

import numpy as np
import pytest
from scipy import stats

from rlvr_jax.core.passk import pass_curve
from rlvr_jax.core.voting import auc, best_of_k, majority_at_k, weighted_vote


def by_enumeration(answers, correct, k):
    """Every subset of k votes; ties share, and -1 is no answer."""
    value = {
        answer: np.mean(
            [c for a, c in zip(answers, correct, strict=True) if a == answer]
        )
        for answer in answers
    }
    won = []
    for subset in itertools.combinations(answers, k):
        votes = collections.Counter(a for a in subset if a >= 0)
        top = [a for a in votes if votes[a] == max(votes.values())]
        won.append(np.mean([value[a] for a in top]) if top else 0.0)
    return np.mean(won)


@pytest.mark.parametrize("seed", range(6))
def test_majority_equals_all_subsets(seed):
    """PK-33: exact for every k, with ties, missing answers and mixed verdicts."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(-1, 4, 9).tolist()
    correct = [float(a == 2) for a in answers]
    if seed == 5:  # A verifier may accept only some writings of an answer.
        correct = rng.integers(0, 2, 9).astype(float).tolist()
    expected = [by_enumeration(answers, correct, k) for k in range(1, 10)]
    np.testing.assert_allclose(majority_at_k(answers, correct), expected, atol=1e-14)


def test_majority_goes_to_the_mode():
    """PK-33, PK-37: (.4, .35, .25) -> 1 and (.35, .4, .25) -> 0 for the first answer as
    k grows; pass@1 and cons@k come from the same samples."""
    for shares, limit in (((0.4, 0.35, 0.25), 1), ((0.35, 0.4, 0.25), 0)):
        answers = np.repeat([0, 1, 2], np.round(np.array(shares) * 400).astype(int))
        found = majority_at_k(answers, answers == 0)
        assert found[0] == pytest.approx(shares[0])
        assert found[-1] == limit
        # Halfway there at 64 votes: nearer to the limit than the mean was.
        assert abs(found[63] - limit) < abs(found[0] - limit)


def test_reweighting_within_the_support_lifts_the_vote_alone():
    """PK-08: the right answer goes from second to first; what can be reached stays.

    Counts of 100 samples (30 right, 40 of a wrong answer, 30 different ones) become
    45, 25, 30: maj@32 rises by half, pass@32 was and stays 1 to three digits.
    """
    vote, reach = [], []
    for right, wrong in ((30, 40), (45, 25)):
        answers = np.concatenate(
            [np.zeros(right, int), np.ones(wrong, int), 2 + np.arange(30)]
        )
        vote.append(majority_at_k(answers, answers == 0)[31])
        reach.append(pass_curve(100, [right])[0, 31])
    assert vote[1] > vote[0] + 0.5
    assert abs(reach[1] - reach[0]) < 1e-3


def test_votes_that_cannot_be_counted():
    with pytest.raises(ValueError, match="1 to 1000 samples"):
        majority_at_k([], [])
    with pytest.raises(ValueError, match="answer and a verdict"):
        majority_at_k([1, 2], [1.0])
    np.testing.assert_array_equal(majority_at_k([-1, -1], [0, 0]), [0, 0])


def test_chances_do_not_pass_1():
    """64 samples of which 60 agree: rounding alone would say 1 + 4e-16."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        answers = np.minimum(rng.integers(0, 40, 64), rng.integers(1, 9))
        for found in (
            majority_at_k(answers, np.ones(64)),
            best_of_k(rng.random(64), np.ones(64)),
        ):
            assert found.max() <= 1
            np.testing.assert_allclose(found, 1, atol=1e-12)


def test_best_of_k_equals_all_subsets():
    """TT-29 (FORMULAS F-92): k = 1 is the mean, k = n the label of the top sample."""
    scores = [0.3, 0.9, 0.1, 0.5, 0.7]
    correct = [1.0, 0.0, 1.0, 1.0, 0.0]
    expected = [
        np.mean(
            [
                correct[max(subset, key=lambda i: scores[i])]
                for subset in itertools.combinations(range(5), k)
            ]
        )
        for k in range(1, 6)
    ]
    np.testing.assert_allclose(best_of_k(scores, correct), expected, atol=1e-14)
    assert best_of_k(scores, correct)[0] == pytest.approx(np.mean(correct))
    assert best_of_k(scores, correct)[-1] == 0


def test_best_by_the_label_is_pass_at_k():
    """FORMULAS F-92; and a score that says nothing is the mean for every k."""
    labels = np.array([1.0, 0, 0, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(
        best_of_k(labels, labels), pass_curve(8, [2])[0], atol=1e-14
    )
    np.testing.assert_allclose(best_of_k(np.zeros(8), labels), np.full(8, 0.25))
    with pytest.raises(ValueError, match="score and a verdict"):
        best_of_k([], [])


def test_a_vote_weighted_by_scores():
    """TT-05: sums by hand, and equal scores are a plain vote of all."""
    answers, correct = [0, 0, 1, 2, -1], [1, 1, 0, 0, 0]
    assert weighted_vote(answers, [0.3, 0.3, 0.5, 0.1, 9], correct) == 1
    assert weighted_vote(answers, [0.2, 0.3, 0.6, 0.1, 9], correct) == 0
    # A tie shares; an answer that the verifier takes now and then counts its share.
    assert weighted_vote(answers, [0.25, 0.25, 0.5, 0.1, 9], correct) == 0.5
    assert weighted_vote([0, 0], [1, 1], [1, 0]) == 0.5
    assert weighted_vote([-1, -1], [1, 1], [0, 0]) == 0
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = rng.integers(-1, 3, 9)
        right = (drawn == 0) * 1
        plain = majority_at_k(drawn, right)[-1]
        assert weighted_vote(drawn, np.ones(9), right) == pytest.approx(plain)
    with pytest.raises(ValueError, match="an answer, a score and a verdict per sample"):
        weighted_vote([0], [1, 1], [1])


def test_the_area_under_the_curve_is_that_of_mann_and_whitney():
    """TT-08: against scipy's U / (n m), with ties."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        correct = rng.random(40) < 0.4
        scores = rng.integers(0, 6, 40) + 2 * correct
        u = stats.mannwhitneyu(scores[correct], scores[~correct]).statistic
        expected = u / (correct.sum() * (~correct).sum())
        assert auc(scores, correct) == pytest.approx(expected)
    assert auc([1, 2], [1, 1]) == 0.5
    with pytest.raises(ValueError, match="a score and a verdict per sample"):
        auc([1.0], [1, 0])
