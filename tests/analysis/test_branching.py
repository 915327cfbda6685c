"""Traces that branch: the filter on a planted corpus."""

import numpy as np
import pytest

from rlvr_jax.analysis.branching import branch_share, without_branching

WORDS = ("Wait, not so.", "Perhaps 7 fits.", "Alternatively, divide.", "What if x = 2?")
PLAIN = ("Then 3 + 4 = 7.", "Both sides are even.", "So x is 5.", "This waits for us.")


def trace(branching, steps, *, longer=0):
    """So many steps, the first ones with a word of branching; shuffled by the count."""
    lines = [WORDS[i % 4] for i in range(branching)]
    lines += [PLAIN[i % 4] + " and so on" * longer for i in range(steps - branching)]
    np.random.default_rng(branching * 31 + steps).shuffle(lines)
    return "\n\n".join(lines)


def test_a_planted_corpus_loses_exactly_those_that_branch_most():
    """SFT-10: forty traces of 20 steps with 0, 1/20, ..., 19/20 of branching, each
    twice, in a drawn order: of every q the q N with the highest share go, no other."""
    planted = np.repeat(np.arange(20), 2)
    np.random.default_rng(0).shuffle(planted)
    corpus = [trace(count, 20) for count in planted]
    shares = [branch_share(each) for each in corpus]
    np.testing.assert_allclose(shares, planted / 20)
    for drop in (0.0, 0.05, 0.1, 0.25, 0.3, 0.5, 0.95):
        stays = without_branching(corpus, drop)
        gone = round(drop * 40)
        assert (~stays).sum() == gone
        if 0 < gone:
            assert planted[~stays].min() >= planted[stays].max()


def test_it_is_not_a_filter_of_length():
    """SFT-10, the control: traces that branch most here have about the mean number of
    words, and the longest tenth shares nothing with them. What stays is as long as the
    corpus, to 5 %, where leaving out the longest tenth takes more than 10 % off."""
    corpus = [trace(8, 20, longer=13) for _ in range(10)]
    corpus += [trace(1, 20, longer=i % 9) for i in range(80)]
    corpus += [trace(1, 20, longer=20) for _ in range(10)]
    words = np.array([len(each.split()) for each in corpus])
    by_length = np.ones(100, bool)
    by_length[np.argsort(words)[-10:]] = False
    stays = without_branching(corpus, 0.1)
    assert (~stays & ~by_length).sum() == 0
    assert words[stays].mean() == pytest.approx(words.mean(), rel=0.05)
    assert words[by_length].mean() < 0.9 * words.mean()


def test_of_equal_ones_the_first_stay():
    assert without_branching([WORDS[0]] * 4, 0.5).tolist() == [True, True, False, False]


@pytest.mark.parametrize("drop", [-0.1, 1.0])
def test_a_share_is_asked_for(drop):
    with pytest.raises(ValueError, match=f"drop is in .0, 1., got {drop}"):
        without_branching(["a"], drop)
