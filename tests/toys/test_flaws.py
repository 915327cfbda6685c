"""Judges of steps and of answers on a policy whose right answers are often flawed."""

import dataclasses

import jax
import numpy as np

from rlvr_jax.toys.flaws import Policy, judged

POLICY = Policy()
JUDGES = (0.0, 0.25, 0.5, 0.75, 1.0)


def of(judge, policy=POLICY):
    return [float(x) for x in judged(jax.random.key(0), policy, judge)]


def test_best_of_n_rises_while_the_errors_are_found_less():
    """PROC-10: from a judge of steps to one of answers best-of-8 goes up, F1 of the
    first error down, and the solutions chosen are sound less often.

    2,000 problems: a standard error of .011 on a share; margins are five of them.
    """
    rows = np.array([of(judge) for judge in JUDGES])
    by_steps, by_answers, f1 = rows[0], rows[-1], rows[:, 2]
    assert by_answers[0] > by_steps[0] + 0.055
    assert by_answers[1] < by_steps[1] - 0.055
    assert f1[0] > 0.6
    assert f1[-1] < 0.1
    assert (np.diff(f1) < 0).all()


def test_without_flawed_right_answers_the_two_agree():
    """PROC-10: if every flawed solution also has a wrong answer, a judge of steps is
    as good at best-of-8: the inflation comes from the flawed ones alone."""
    honest = dataclasses.replace(POLICY, lucky=0.0)
    by_steps, by_answers = of(0.0, honest), of(1.0, honest)
    assert abs(by_steps[0] - by_answers[0]) < 0.055
    assert by_steps[0] == by_steps[1]  # a right answer is a sound solution
