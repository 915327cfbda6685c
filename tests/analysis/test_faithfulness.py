"""Hints, hacks and edits of chains, on planted transcripts."""

import numpy as np
import pytest

from rlvr_jax.analysis.faithfulness import (
    Hinted,
    change_rate,
    hacks_by_environment,
    hint_verbalisation,
    monitorability_tax,
    rise_then_plateau,
)


def planted(used: int, mentioned: int, others: int = 0) -> list[Hinted]:
    """`used` answers follow the hint, `mentioned` of them say so. What does not count:
    unmoved answers, answers that were the hinted one anyway, and moves elsewhere."""
    transcripts = [Hinted("A", "B", "B", i < mentioned) for i in range(used)]
    transcripts += [Hinted("A", "C", "B", True)] * others
    return [*transcripts, Hinted("A", "A", "B", True), Hinted("B", "B", "B", True)]


@pytest.mark.parametrize(
    ("used", "mentioned", "expected"),
    [(200, 50, 0.25), (200, 78, 0.39), (10, 0, 0.0)],
)
def test_planted_hints(used, mentioned, expected):
    """DIAG-16: the published averages, 25 % and 39 %, planted."""
    found = hint_verbalisation(planted(used, mentioned))
    assert found.switched == used
    assert found.rate == pytest.approx(expected)
    assert found.low <= expected <= found.high
    assert found.normalised == found.rate


def test_switches_by_chance_are_taken_out():
    """DIAG-16: 20 answers went to one of the two other choices of four, so 10 of the 50
    on the hint are chance, and 20 mentions are half of the 40 that used it."""
    found = hint_verbalisation(planted(50, 20, others=20), num_answers=4)
    assert found.rate == pytest.approx(0.4)
    assert found.normalised == pytest.approx(0.5)
    with pytest.raises(ValueError, match="none of 2 answers"):
        hint_verbalisation(planted(0, 0))


def test_faithfulness_that_rises_and_stops():
    """DIAG-17: planted: .1 to .4 over 60 of 100 steps, noise of a point."""
    steps = np.arange(0.0, 101.0, 5)
    rng = np.random.default_rng(0)
    values = 0.1 + 0.3 * np.minimum(steps / 60, 1) + rng.normal(0, 0.01, len(steps))
    found = rise_then_plateau(steps, values)
    assert found.until == pytest.approx(60, abs=5)
    assert found.level == pytest.approx(0.4, abs=0.01)
    # A line that goes on rising has no bend before its end.
    assert rise_then_plateau(steps, 0.1 + 0.002 * steps).until == 100
    with pytest.raises(ValueError, match="4 points"):
        rise_then_plateau(steps[:3], values[:3])


def test_hacks_that_are_not_admitted():
    """DIAG-18: six environments, all hacked; five admit 1 of 100 and one 10 of 100."""
    environments = {
        f"env {i}": [(True, j < (10 if i == 5 else 1)) for j in range(100)]
        for i in range(6)
    }
    environments["clean"] = [(False, False)] * 10
    found = hacks_by_environment(environments)
    assert found["below"] == 5
    assert found["environments"]["env 5"] == {"hack_rate": 1, "verbalised": 0.1}
    assert found["environments"]["clean"] == {"hack_rate": 0, "verbalised": None}


def test_the_price_of_leaving_chains_alone():
    """DIAG-20: a difference of means over the same problems."""
    optimised = np.repeat([1.0, 0.0], [70, 30])
    left_alone = np.repeat([1.0, 0.0], [64, 36])
    tax, low, high = monitorability_tax(optimised.tolist(), left_alone.tolist())
    assert tax == pytest.approx(0.06)
    # Six problems of 100 differ, all one way: sd sqrt(.06 x .94 x 100/99) = .2387.
    assert high - tax == pytest.approx(1.96 * 0.2387 / 10, abs=1e-4)
    assert low == pytest.approx(2 * tax - high)


def test_a_chain_that_is_not_read():
    """DIAG-22: a model that ignores its chain never changes its answer under an edit;
    one that reads its last number always does."""
    asked = [
        (f"{a} + {b}", f"So {a} and {b} make {a + b}") for a, b in [(1, 2), (3, 4)]
    ]

    def ignoring(question, chain):
        return str(sum(int(part) for part in question.split("+")))

    def reading(question, chain):
        return chain.split()[-1]

    def turned(chain):
        return chain + "0"

    assert change_rate(ignoring, asked, turned) == 0
    assert change_rate(reading, asked, turned) == 1
