"""Planted first errors, labelled by completers of every strength and by a judge."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.step_labels import expected_hard_label
from rlvr_jax.toys.completers import (
    STEPS,
    completer_labels,
    filtered,
    grades,
    judge_labels,
    solutions,
    success_rates,
)

COUNT = 20_000
ERROR = solutions(jax.random.key(0), COUNT)
STRENGTHS = jnp.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])
"""Skills; to repair is rarer than to go on: skill^10."""


def test_labels_are_those_of_the_completer_and_not_of_the_step():
    """PROC-08: a grid of planted steps x strength. The perfect completer calls every
    wrong step good, the hopeless one every good step bad that is not the last; in
    between wrong steps are called good the more often the stronger it is, good ones bad
    the less often, and the place of the error is found best somewhere in the middle."""
    key = jax.random.key(1)
    graded = jax.jit(
        jax.vmap(lambda s: grades(completer_labels(key, ERROR, s, s**10), ERROR))
    )
    bad_called_good, good_called_bad, located = map(np.asarray, graded(STRENGTHS))
    assert bad_called_good[0] == 0
    assert bad_called_good[-1] == pytest.approx(1)
    assert good_called_bad[-1] == 0
    # Of right steps only the last one of a sound solution has nothing left to spoil.
    good = np.where(ERROR < 0, STEPS, ERROR).sum()
    assert good_called_bad[0] == pytest.approx(1 - (ERROR < 0).sum() / good)
    assert (np.diff(bad_called_good) >= 0).all()
    assert (np.diff(bad_called_good)[2:] > 0).all()
    assert (np.diff(good_called_bad) < 0).all()
    best = located.argmax()
    assert 0 < best < len(STRENGTHS) - 1
    assert located[best] > max(located[0], located[-1]) + 0.1


def test_each_cell_has_its_closed_form():
    """PROC-08, PROC-07: the share of labels of 1 at every step, for errors at every
    place, is 1 - (1 - q)^8 within five standard errors: a strong completer on a bad
    step .99, a weak one on a good step .05."""
    for strength in (0.3, 0.9):
        labels = completer_labels(jax.random.key(2), ERROR, strength, strength)
        for error in range(-1, STEPS - 1):
            rows = np.asarray(ERROR) == error
            q = success_rates(jnp.array([error]), strength, strength)
            expected = np.asarray(expected_hard_label(q, completions=8))[0]
            found = np.asarray(labels)[rows].mean(axis=0)
            noise = np.sqrt(expected * (1 - expected) / rows.sum())
            assert (abs(found - expected) < 5 * noise + 1e-6).all()
    # By hand, S = 6: five to one steps left, then a wrong one, then nothing to repair.
    by_hand = [1 / 32, 1 / 16, 1 / 8, 1 / 4, 0.3, 0]
    found = success_rates(jnp.array([4]), 0.5, 0.3)[0]
    np.testing.assert_allclose(found, by_hand, rtol=1e-6)
    strong = success_rates(jnp.array([0]), 0.9, 0.9)[0, 0]
    weak = success_rates(jnp.array([-1]), 0.3, 0.3)[0, 0]
    assert expected_hard_label(strong, completions=8) > 0.99
    assert expected_hard_label(weak, completions=8) < 0.05


def test_what_completer_and_judge_agree_on_is_right():
    """PROC-09: completions are the worse source (skill .8, repair .1), a judge sees 8
    of 10; where both put the first error at the same step 98 of 100 are right. They err
    independently, so both are right with the product of their chances."""
    labels = completer_labels(jax.random.key(3), ERROR, 0.8, 0.1)
    judged = judge_labels(jax.random.key(4), ERROR)
    by_completer, by_judge = (grades(x, ERROR).located for x in (labels, judged))
    # Right by sight, or by a guess among the six steps and none.
    assert abs(by_judge - (0.8 + 0.2 / (STEPS + 1))) < 4 * np.sqrt(0.14 / COUNT)
    assert by_completer < by_judge - 0.05
    kept, right = filtered(labels, judged, ERROR)
    assert right > by_judge + 0.1
    assert right > 0.97
    assert abs(kept * right - by_completer * by_judge) < 4 * np.sqrt(0.25 / COUNT)
    assert 0.5 < kept < 0.7


def test_a_filter_cannot_mend_what_both_get_wrong():
    """PROC-09: agreement of a completer that calls all good with a judge that never
    objects: everything is kept, and no error is found."""
    blind = jnp.ones((COUNT, STEPS))
    kept, right = filtered(blind, blind, ERROR)
    assert kept == 1
    assert right == (ERROR < 0).mean()
