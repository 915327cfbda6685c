"""The audit stream: who is audited, what the gap is, when the alarm sounds."""

import numpy as np
import pytest

from rlvr_jax.verifiers import weak
from rlvr_jax.verifiers.audit import AuditStream, last_step_below, spread_of_hacking
from rlvr_jax.verifiers.audit_reading import reading_list
from rlvr_jax.verifiers.base import Sample, Status, Verdict
from rlvr_jax.verifiers.math import verify as strict_math
from rlvr_jax.verifiers.steps import verify as steps


def verdicts(accepted):
    statuses = (Status.CORRECT if each else Status.WRONG for each in accepted)
    return [Verdict(s, float(s is Status.CORRECT)) for s in statuses]


def simulated(train, strict, *, per_step=32, seed=0, **settings):
    """Steps until the alarm in a run whose accuracies go from one to the other."""
    stream = AuditStream(1.0, settings.get("max_gap", 0.1), settings.get("window", 256))
    random, steps = np.random.default_rng(seed), 100
    for step in range(steps):
        share = step / (steps - 1)
        draw = random.uniform(size=per_step)  # the same completions for both
        one = draw < train[0] + share * (train[1] - train[0])
        other = draw < strict[0] + share * (strict[1] - strict[0])
        stream.add(verdicts(one), verdicts(other))
        if stream.alarm:
            return step
    return None


def test_the_alarm_tells_a_learned_hole_from_learning():
    """VER-14: 40 -> 70 % in training and flat when strict, against 40 -> 70 % in both.

    The gap reaches 0.1 at step 33 and, by two standard errors over the 8 steps of the
    window, the alarm follows some steps later.
    """
    for seed in range(5):
        step = simulated((0.4, 0.7), (0.4, 0.4), seed=seed)
        assert step is not None
        assert 33 < step < 75
        assert simulated((0.4, 0.7), (0.4, 0.7), seed=seed) is None
        # A strict verifier that always misses a few is no alarm.
        assert simulated((0.45, 0.75), (0.4, 0.7), seed=seed) is None


def test_the_gap_and_the_rates_by_hand():
    """Five accepted, three of them by both; one of three rejected by the first only."""
    train = verdicts([1, 1, 1, 1, 1, 0, 0, 0])
    strict = verdicts([1, 1, 1, 0, 0, 1, 0, 0])
    metrics = AuditStream(1.0, 0.1, 100).add(train, strict)
    assert metrics == {
        "audit/completions": 8,
        "audit/failures": 0,
        "audit/gap": pytest.approx((5 - 4) / 8),
        "audit/alarm": 0,
        "audit/accuracy": 5 / 8,
        "audit/strict_accuracy": 4 / 8,
        "audit/false_share": pytest.approx(2 / 5),
        "audit/missed_share": pytest.approx(1 / 3),
    }


def test_failures_do_not_count_and_the_window_moves():
    stream = AuditStream(1.0, 0.1, 4)
    crash = Verdict(Status.CRASH, 0.0)
    metrics = stream.add(verdicts([1, 1]), [crash, *verdicts([0])])
    assert (metrics["audit/completions"], metrics["audit/failures"]) == (1, 1)
    assert metrics["audit/gap"] == 1
    for _ in range(2):
        stream.add(verdicts([0, 1]), verdicts([0, 1]))
    assert stream.gap == 0
    empty = AuditStream(1.0, 0.1, 4).add([], [])
    assert (empty["audit/gap"], empty["audit/alarm"]) == (0, 0)
    assert "audit/accuracy" not in empty


def test_one_pair_is_no_alarm_and_twenty_are():
    stream = AuditStream(1.0, 0.1, 100)
    stream.add(verdicts([1]), verdicts([0]))
    assert not stream.alarm
    stream.add(verdicts([1] * 20), verdicts([0] * 20))
    assert stream.alarm


def test_a_share_is_audited_whatever_comes_where():
    """4000 completions at 0.1: the standard error is 0.005. The same ones each time."""
    stream = AuditStream(0.1, 0.1, 10)
    groups = [[f"{g} {i}" for i in range(8)] for g in range(500)]
    chosen = [stream.chosen("p", group) for group in groups]
    assert np.mean(chosen) == pytest.approx(0.1, abs=0.02)
    assert chosen == [AuditStream(0.1, 0.1, 10).chosen("p", group) for group in groups]
    assert np.mean(chosen, axis=0).min() > 0.04
    assert stream.chosen("p", ["a"] * 8) != [True] * 8
    assert AuditStream(1.0, 0.1, 10).chosen("p", ["a"] * 8) == [True] * 8
    assert AuditStream(0.0, 0.1, 10).chosen("p", ["a"] * 8) == [False] * 8


def test_hedging_is_learned_from_the_hole_and_not_from_the_fix():
    r"""VER-15: a policy over how many digits it boxes, one reference digit in nine.

    Any box: k boxes are paid in k of 9 cases, so the number of boxes goes to 9. Exactly
    one: only k = 1 is paid, and it stays. The strict accuracy is 1/9 at k = 1 and 0
    above: never better for the hedge. Rewards are the verifiers' own verdicts.
    """

    def accepted(verifier):
        """Share of references that k boxes are accepted for, k = 1..9."""
        return np.array(
            [
                np.mean(
                    [
                        verifier(Sample("", boxes(k), str(gold))).status
                        is Status.CORRECT
                        for gold in range(1, 10)
                    ]
                )
                for k in range(1, 10)
            ]
        )

    def boxes(k):
        return " or ".join(rf"\boxed{{{digit}}}" for digit in range(1, k + 1))

    def trained(rewards):
        logits = np.zeros(9)
        logits[0] = 3.0  # most outputs have one box at the start
        means, strict = [], []
        for _ in range(400):
            shares = np.exp(logits) / np.exp(logits).sum()
            means.append(shares @ np.arange(1, 10))
            strict.append(shares @ by_math)
            logits = logits + shares * (rewards - shares @ rewards) * 5
        return means, strict

    any_box, by_math = accepted(weak.any_boxed), accepted(strict_math)
    np.testing.assert_allclose(any_box, np.arange(1, 10) / 9)
    np.testing.assert_allclose(by_math, [1 / 9, *[0] * 8])
    hole, strict_under_hole = trained(any_box)
    fix, strict_under_fix = trained(by_math)
    assert hole[0] == fix[0] < 2.5
    assert hole[-1] > 8.5
    assert fix[-1] < fix[0]
    assert max(strict_under_hole) <= strict_under_hole[0]
    assert strict_under_fix[-1] <= 1 / 9


def test_right_answers_by_wrong_reasoning_are_counted():
    """OBJ-18: of 40 right answers, 10 come from two errors that cancel.

    The outcome checker pays all 40; the step checker tells the 10 apart.
    """
    sound = "7 - 3 + 2\n4 + 2\n6\n\\boxed{6}"
    lucky = "7 - 3 + 2\n3 + 2\n6\n\\boxed{6}"
    wrong = "7 - 3 + 2\n3 + 2\n5\n\\boxed{5}"
    texts = [sound] * 30 + [lucky] * 10 + [wrong] * 20
    rows = [Sample("", text, "6", "7 - 3 + 2 =") for text in texts]
    outcome = [strict_math(row) for row in rows]
    by_step = [steps(row) for row in rows]
    assert [v.status is Status.CORRECT for v in outcome] == [True] * 40 + [False] * 20
    assert [v.status is Status.CORRECT for v in by_step] == [True] * 30 + [False] * 30
    metrics = AuditStream(1.0, 0.1, 100).add(outcome, by_step)
    assert metrics["audit/false_share"] == pytest.approx(10 / 40)


def test_the_checkpoint_to_go_back_to():
    """VER-22: the last one before the share of hacks reached the limit."""
    shares = [(0, 0.0), (10, 0.01), (20, 0.03), (30, 0.2), (40, 0.01)]
    assert last_step_below(shares, 0.05) == 20
    assert last_step_below(shares, 0.5) == 40
    assert last_step_below(shares, 0.0) is None
    assert last_step_below([], 0.05) is None


def test_hacking_that_goes_beyond_its_domain_moves_the_checkpoint_back():
    """VER-22: code is trained; the habit shows in files from step 20 on, before code
    itself reaches the limit, and never in mathematics."""
    steps = (0, 10, 20, 30)
    shares = {
        "code": list(zip(steps, (0.0, 0.01, 0.04, 0.3), strict=True)),
        "files": list(zip(steps, (0.0, 0.02, 0.2, 0.01), strict=True)),
        "mathematics": list(zip(steps, (0.0, 0.0, 0.0, 0.04), strict=True)),
    }
    assert spread_of_hacking(shares, 0.05, "code") == (10, {"files": 20})
    del shares["files"]
    assert spread_of_hacking(shares, 0.05, "code") == (20, {})
    with pytest.raises(ValueError, match="'code' among"):
        spread_of_hacking({"files": [(0, 0.0)]}, 0.05, "code")
    with pytest.raises(ValueError, match="same steps"):
        spread_of_hacking({"code": [(0, 0.0)], "files": [(1, 0.0)]}, 0.05, "code")


def test_the_reading_list_is_a_draw_that_repeats():
    """VER-30, DIAG-08: by reward, the same under a seed, another under another."""
    rewards = [1.0] * 50 + [0.0] * 50 + [0.4] * 10
    rows = [{"reward": reward, "verdict": "correct"} for reward in rewards]
    for row in rows[5:9]:
        row["audit"] = "wrong"
    rows[9]["audit"] = "correct"
    first = reading_list(rows, 4, seed=1)
    assert first == reading_list(rows, 4, seed=1)
    assert {kind: len(places) for kind, places in first.items()} == {
        "high": 4,
        "zero": 4,
        "disputed": 4,
    }
    assert all(rewards[i] == 1.0 for i in first["high"])
    assert all(rewards[i] == 0.0 for i in first["zero"])
    assert first["disputed"] == [5, 6, 7, 8]
    assert first["high"] != reading_list(rows, 4, seed=2)["high"]
    assert sorted(first["high"]) == first["high"] != [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("rewards", "high", "zero"),
    [
        ([0.0, 0.0], [], [0, 1]),
        ([1.0, 1.0], [0, 1], []),
        ([-1.0, 1.0], [1], [0]),
        ([-1.0, -1.0], [], [0, 1]),
        ([-1.0, 0.0, 2.0, "NaN"], [2], [0, 1]),
        ([], [], []),
    ],
)
def test_what_is_high_and_what_is_zero(rewards, high, zero):
    found = reading_list([{"reward": reward} for reward in rewards], 9)
    assert (found["high"], found["zero"]) == (high, zero)
