"""Signs that cancel: paid by the answer, or by the step."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.toys.signs import (
    account,
    answer_rate,
    nearest_pattern,
    sound_rate,
    starts,
    trained,
)

PROBLEMS, STEPS = 1000, 5
START = starts(jax.random.key(0), problems=PROBLEMS, steps=STEPS)


@functools.cache
def errors(paid):
    _, found = trained(jax.random.key(1), START, paid=paid, updates=600)
    return type(found)(*map(np.asarray, found))


def test_lucky_solutions_become_a_strategy_unless_steps_are_paid():
    """PROC-04: of all solutions the share with a right answer and a wrong step rises by
    more than twenty points under the outcome reward (.41 to .67), and goes to 0 when
    steps are paid; answers get right under both. 1,000 problems: a standard error of
    .016."""
    outcome, process = errors("outcome"), errors("process")
    assert outcome.lucky[0] == process.lucky[0] == pytest.approx(0.41, abs=0.05)
    assert outcome.lucky[-1] > outcome.lucky[0] + 0.2
    assert process.lucky[-1] < 0.01
    for each in (outcome, process):
        assert each.answer[-1] < 0.05


def test_equal_errors_of_answers_at_unequal_traces():
    """PROC-05: the report of a head-to-head: error of answers, error of the traces of
    right answers, solutions and labels. At an error of one in ten they are equal in
    answers; outcome traces are wrong in more than half, process traces in under one of
    a hundred, from less than a third of the solutions (and no more labels, though each
    solution takes five)."""
    outcome, process = (account(errors(paid), 0.1) for paid in ("outcome", "process"))
    assert abs(outcome.answer - process.answer) < 0.01
    assert outcome.trace > 0.5
    assert process.trace < 0.01
    assert process.solutions < outcome.solutions / 3
    assert outcome.labels == outcome.solutions
    assert process.labels == STEPS * process.solutions
    assert process.labels < outcome.labels * 1.05
    with pytest.raises(ValueError, match="stays above -1"):
        account(errors("outcome"), -1.0)


def test_where_an_outcome_reward_ends_is_known_from_the_start():
    """PROC-04: the exact gradient of the expected reward, from jax.grad: the sign of
    every step ends as the start says, with an even number wrong; no idea at all
    (ability 0) leaves 15 of 16 problems with a lucky pattern, 1 - 2^-(S - 1)."""
    gradient = jax.grad(lambda z: answer_rate(z).sum())
    climbed = jax.lax.fori_loop(0, 4000, lambda _, z: z + gradient(z), START)
    solved = np.asarray(answer_rate(climbed)) > 0.9
    assert solved.mean() > 0.97
    predicted = np.asarray(nearest_pattern(START))
    same = (np.sign(np.asarray(climbed)) == predicted).all(axis=1)
    assert same[solved].mean() > 0.98
    assert (np.prod(predicted, axis=1) == 1).all()
    none = starts(jax.random.key(2), problems=20_000, steps=STEPS, ability=0.0)
    lucky = (nearest_pattern(none) < 0).any(axis=1).mean()
    assert abs(lucky - 15 / 16) < 4 * np.sqrt(15 / 256 / 20_000)


def test_rates_are_those_of_all_patterns():
    """PROC-04: sums over the 32 patterns of five signs."""
    patterns = np.indices((2,) * STEPS).reshape(STEPS, -1).T
    p = np.asarray(jax.nn.sigmoid(START[:20]))[:, None]
    chances = np.prod(np.where(patterns == 1, p, 1 - p), axis=-1)
    even = (STEPS - patterns.sum(axis=1)) % 2 == 0
    np.testing.assert_allclose(
        answer_rate(START[:20]), chances @ even, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(sound_rate(START[:20]), chances[:, -1], rtol=1e-5)
    assert jnp.isfinite(START).all()
