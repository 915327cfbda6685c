"""Planted causes of a gain under random rewards, and what the verdicts make of them."""

import numpy as np
import pytest

from rlvr_jax.analysis import hypotheses
from rlvr_jax.analysis.claims import MINIMUM_BAR
from rlvr_jax.analysis.sweeps import SweepRow

SEEDS = range(5)
LETTERS = "abcde"


def arm(role, gain, *, rise=0.0, spread=1.0, seeds=SEEDS, runs=()):
    """An arm whose score goes from 40 to 40 + gain, with noise over the seeds."""
    noise = np.random.default_rng(list(role.encode())).normal(0, spread, len(seeds))
    return SweepRow(
        name=role,
        role=role,
        paper=None,
        seeds=list(seeds),
        before=dict.fromkeys(seeds, 40.0),
        after={s: 40.0 + gain + e for s, e in zip(seeds, noise, strict=True)},
        behaviour={
            s: (65.0, 65.0 + rise + e) for s, e in zip(seeds, noise, strict=True)
        },
        watched={},
        runs=list(runs),
    )


def world(cause, **options):
    """The arms in a world with one cause: who gains 20 points there.

    a: only the family that has the way to answer gains, and shows it more often.
    b: nobody gains without clipping. c: nobody gains on fresh problems. d: form alone
    brings as much. e: what is paid as wrong is right, so that checked labels, and
    rewards that are really random, bring nothing.
    """
    all_gain = {"random", "clip_off", "fresh", "other_family"}
    gains = {
        "a": all_gain - {"other_family"},
        "b": all_gain - {"clip_off"},
        "c": all_gain - {"fresh"},
        "d": all_gain | {"format"},
        "e": {"incorrect"},
    }[cause] | {"truth"}
    roles = [*all_gain, "truth", "format", "incorrect", "reverified"]
    rise = 20.0 if cause == "a" else -5.0
    return {
        role: arm(role, 20.0 if role in gains else 0.0, rise=rise, **options)
        for role in roles
    }


def letters(found, verdict):
    return {one.name[0] for one in found if one.verdict == verdict}


@pytest.mark.parametrize("cause", LETTERS)
def test_the_matrix_identifies_the_planted_cause_and_no_other(cause):
    """SPU-15: five worlds, each with one cause; its hypothesis alone is supported."""
    found = hypotheses.hypotheses(world(cause))
    assert [one.name[0] for one in found] == list(LETTERS)
    assert letters(found, hypotheses.SUPPORTED) == {cause}
    if cause == "e":
        # Random rewards brought nothing there: no cause of a gain to look for.
        assert letters(found, hypotheses.NOTHING) == set("abcd")
    else:
        assert letters(found, hypotheses.AGAINST) == set("abcd") - {cause}
        assert letters(found, hypotheses.NOTHING) == {"e"}


def test_wide_intervals_and_single_seeds_decide_nothing():
    assert not letters(
        hypotheses.hypotheses(world("b", spread=60.0)), hypotheses.SUPPORTED
    )
    single = hypotheses.hypotheses(world("b", seeds=range(1)))
    assert letters(single, hypotheses.UNCLEAR) == set(LETTERS)


def test_what_is_not_run_is_not_tested():
    arms = {role: arm(role, 20.0) for role in ("truth", "random")}
    found = hypotheses.hypotheses(arms)
    assert letters(found, hypotheses.UNTESTED) == set("bcde")
    assert "needs the arm clip_off" in found[1].seen


def lacking(arms):
    found = hypotheses.minimum_bar(arms)
    return [
        name
        for name, words in MINIMUM_BAR.items()
        if any(one.seen == words and one.verdict == "MISSING" for one in found)
    ]


class _Run:
    """As much of a run as the budget is read from."""

    def __init__(self, **settings):
        self.settings = {
            "steps": 80,
            "batch.prompts_per_step": 16,
            "rollout.num_generations": 8,
        } | settings

    def setting(self, name):
        return self.settings[name]


FAMILIES, FRESH, SPURIOUS, LABELS = MINIMUM_BAR


@pytest.mark.parametrize(
    ("without", "lacks"),
    [
        ("", []),
        ("other_family", [FAMILIES]),
        ("fresh", [FRESH]),
        ("random", [SPURIOUS]),
        ("truth", [SPURIOUS]),
        ("reverified", [LABELS]),
    ],
)
def test_a_claim_fails_when_any_item_of_the_bar_is_missing(without, lacks):
    """SPU-14: the four items, each left out in turn."""
    arms = {
        role: arm(role, 20.0, runs=[_Run()])
        for role in ("truth", "random", "fresh", "other_family", "incorrect")
    } | {"reverified": arm("reverified", 0.0)}
    arms.pop(without, None)
    assert lacking(arms) == lacks


def test_other_budgets_and_unfinished_arms_do_not_count():
    """SPU-14: a control with half of the steps, and an arm that never finished."""
    arms = {
        "truth": arm("truth", 20.0, runs=[_Run()]),
        "random": arm("random", 20.0, runs=[_Run(steps=40)]),
        "fresh": arm("fresh", 20.0, seeds=()),
        "other_family": arm("other_family", 20.0),
    }
    # No noise arm, so nothing to verify again.
    assert lacking(arms) == [FRESH, SPURIOUS]


def test_the_table_in_both_forms():
    found = hypotheses.hypotheses(world("b"))
    assert hypotheses.markdown(found).count("\n") == 6
    assert "| b: clipping favours what is likely | supported | random +" in (
        hypotheses.markdown(found)
    )
    assert "supported" in hypotheses.section(found)


def test_seeds_that_agree_are_no_certainty():
    """Two seeds with the same gain of 20 points have no spread to judge it by: open."""
    found = hypotheses.hypotheses(world("b", spread=0.0, seeds=range(2)))
    assert {one.verdict for one in found[:2]} == {hypotheses.UNCLEAR}
    assert found[1].seen.startswith("random +20.0 (no interval)")
