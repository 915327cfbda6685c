"""What a teacher adds that RL does not find, and what RL adds to it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.paired import transition_matrix
from rlvr_jax.core.passk import expected_pass_at_k
from rlvr_jax.toys import boundary, teachers

SEEDS, STEPS, FIRST = 8, 200, 20
"""Bases; steps of every arm; those of distillation where RL follows."""
SURE = 0.7
"""Chance that the teacher says a letter that it knows."""
KNOWN, HALF = boundary.LETTERS // 2, boundary.TASKS // 2
"""Letters that it knows, and tasks that consist of these alone."""


def keys(seed):
    return jax.random.split(jax.random.key(seed), SEEDS)


@functools.cache
def bases():
    """The first half of the tasks has letters that the teacher knows, the rest none."""
    found = jax.vmap(boundary.draw)(keys(0))
    letters = found.hard % KNOWN
    return found._replace(hard=letters.at[:, HALF:].add(KNOWN))


@functools.cache
def taught():
    teach = lambda base: teachers.teacher(
        base, jnp.arange(boundary.LETTERS) < KNOWN, SURE
    )
    return jax.vmap(teach)(bases())


@functools.cache
def distilled(on_policy):
    return teachers.distilled(
        keys(1), bases(), taught(), steps=STEPS, on_policy=on_policy
    )


@functools.cache
def reinforced(start=None):
    """RL for the steps that are left, from the base or after some distillation."""
    if start is None:
        return boundary.reinforced(keys(2), bases(), steps=STEPS, diverse=False)
    on_policy, first = start
    begun = bases()._replace(logits=distilled(on_policy)[:, first - 1])
    return boundary.reinforced(keys(2), begun, steps=STEPS - first, diverse=False)


def rates(logits):
    """Exact chances of (supported, unsupported) tasks, each [SEEDS x HALF]."""
    found = np.asarray(jax.vmap(boundary.rates)(logits, bases().hard), float)
    return found[:, :HALF].ravel(), found[:, HALF:].ravel()


def pass_at(logits, k, part=0):
    return expected_pass_at_k(rates(logits)[part], k).mean()


def test_a_teacher_is_the_base_where_it_knows_nothing():
    """SURE ^ 8 = .0576 of the words whose letters it knows."""
    known, unknown = rates(taught())
    np.testing.assert_allclose(known, SURE**boundary.HARD, rtol=1e-4)
    np.testing.assert_allclose(unknown, rates(bases().logits)[1], rtol=1e-4)


def test_a_tenth_of_the_words_by_a_teacher_widen_what_rl_does_not():
    """SFT-13: pass@64 of tasks that the base never solves: RL on them for 200 steps
    leaves it below .02; 20 steps of on-policy distillation, a tenth of the words, lift
    it above .9, where the teacher's own is .978."""
    base, rl = bases().logits, reinforced()[:, -1]
    short = distilled(True)[:, FIRST - 1]
    assert pass_at(base, 64) < 0.02
    assert pass_at(rl, 64) < 0.02
    assert 0.9 < pass_at(short, 64) <= pass_at(taught(), 64) + 0.001
    assert abs(pass_at(taught(), 64) - (1 - (1 - SURE**8) ** 64)) < 1e-3


def test_distillation_opens_what_the_teacher_supports_and_nothing_else():
    """SFT-14: per problem, before and after: tasks of known letters leave the lowest
    bin, all of them; those of letters that the teacher has no more of than the base
    stay where they were, in rate to 1e-6 (its update is 0 there) and in bin. RL
    afterwards does not open them either.

    128 samples a task, NumPy seed 0.
    """
    rng = np.random.default_rng(0)
    after = rates(distilled(True)[:, -1])
    both = rates(reinforced((True, FIRST))[:, -1])
    before = rates(bases().logits)
    np.testing.assert_allclose(after[1], before[1], atol=1e-6)
    shares = [
        [rng.binomial(128, each) / 128 for each in parts]
        for parts in (before, after, both)
    ]
    assert (shares[0][0] == 0).mean() > 0.95
    opened = [
        transition_matrix(shares[0][part], shares[1][part])[0, 1:].sum()
        / max(1, (shares[0][part] == 0).sum())
        for part in (0, 1)
    ]
    assert opened[0] > 0.95
    assert opened[1] < 0.05
    assert both[1].max() < 0.05


def test_distil_first_then_reinforce():
    """REC-32, SFT-14, as Li et al. 2026 order them (logic, pass@1 / pass@32: 80.6 /
    98.3 for on-policy distillation and then RL, 53.9 / 94.9 for the first alone, 49.4 /
    68.1 for the second alone): at an equal number of words, here, pass@1 of supported
    tasks is 0 by RL, the teacher's .058 by distillation and above .9 by both; pass@32
    in the same order. Either kind of distillation will do."""
    rl = reinforced()[:, -1]
    for on_policy in (True, False):
        alone = distilled(on_policy)[:, -1]
        both = reinforced((on_policy, FIRST))[:, -1]
        one = [pass_at(each, 1) for each in (rl, alone, both)]
        many = [pass_at(each, 32) for each in (rl, alone, both)]
        assert one[0] < 0.001
        np.testing.assert_allclose(one[1], SURE**8, atol=0.003)
        assert one[2] > 0.9
        assert many[0] < 0.02 < 0.8 < many[1] < many[2]


def test_a_student_of_traces_beats_one_of_rewards_at_equal_words():
    """SFT-11: likelihood of the teacher's words against RL from the same base, at 20,
    50 and 200 steps of as many words each: the student of traces is ahead in every
    base, and never ahead of its teacher by more than sampling error."""
    for steps in (20, 50, 200):
        by_traces = np.asarray(distilled(False)[:, steps - 1])
        by_rewards = np.asarray(reinforced()[:, steps - 1])
        of = lambda logits: rates(logits)[0].reshape(SEEDS, -1).mean(1)
        assert (of(by_traces) > of(by_rewards) + 0.02).all()
        assert (of(by_traces) < of(taught()) * 1.25).all()
