"""When a run's score has stopped rising, and that a resumed run agrees."""

import pytest

from rlvr_jax.train.stall import Stall

SCORES = [0.1, 0.3, 0.2, 0.3, 0.25, 0.26, 0.2, 0.1]


def stalls(patience, scores=SCORES):
    stall = Stall(patience)
    return [step for step, score in enumerate(scores) if stall(step, score)]


def test_planted_plateaus():
    """REC-22: the score falls or stays for so many evaluations in a row. By hand, for
    patience 2: best .3 at step 1, stalls at 3; .3 at 5, as .25 and .26 do not beat
    it; .26 at 7."""
    assert stalls(2) == [3, 5, 7]
    assert stalls(3) == [4]
    assert stalls(1, [0.1, 0.2, 0.3]) == []
    assert stalls(0, [0.5] * 9) == []


@pytest.mark.parametrize("stop", range(1, len(SCORES)))
def test_a_resumed_run_stalls_at_the_same_steps(stop):
    """The step that a run resumes at is evaluated twice, and counts once."""
    first = Stall(2)
    found = [step for step in range(stop + 1) if first(step, SCORES[step])]
    second = Stall(2)
    second.restore(first.state())
    found += [step for step in range(stop, len(SCORES)) if second(step, SCORES[step])]
    assert found == stalls(2)
    assert second.last == found[-1] if found else second.last == -1
    fresh = Stall(2)
    fresh.restore(Stall(2).state())
    assert not fresh(0, 0.0)
