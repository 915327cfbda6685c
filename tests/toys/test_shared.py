"""A policy over strategies that problems share: what a tilt can and cannot do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.logprobs import entropy_from_logits
from rlvr_jax.core.passk import expected_pass_at_k
from rlvr_jax.core.temperature import temperature_for_entropy
from rlvr_jax.toys import shared

ETAS = (0.0, 1.0, 4.0, 16.0, 64.0)


def specialists(seed=0, problems=60, strategies=20):
    """Each problem is solved by one strategy alone; some strategies suit more of them.

    The policy starts near equal chances.
    """
    rng = np.random.default_rng(seed)
    suits = rng.choice(strategies, problems, p=rng.dirichlet(np.full(strategies, 1.0)))
    solves = np.eye(strategies)[suits] * rng.uniform(0.3, 1.0, (problems, 1))
    return jnp.array(rng.normal(0, 0.3, strategies)), jnp.array(solves)


def pass_at(logits, solves, k):
    rates = np.asarray(shared.solve_rates(logits, solves), float)
    return expected_pass_at_k(np.clip(rates, 0, 1), k).mean()


@pytest.mark.parametrize("seed", range(5))
def test_every_gain_of_specialists_lowers_some_problem(seed):
    """PK-26: exclusive strategies: pass@1 up, some p down; p = 0 stays 0.

    A tilt has no way to a strategy that pi does not hold.
    """
    logits, solves = specialists(seed)
    logits = logits.at[3].set(-jnp.inf)
    before = shared.solve_rates(logits, solves)
    for eta in ETAS[1:]:
        after = shared.solve_rates(shared.tilt(logits, solves, eta), solves)
        assert after.mean() > before.mean()
        assert (after < before).any()
        np.testing.assert_array_equal(after[before == 0], 0.0)


def test_no_crossover_where_one_strategy_serves_all():
    """PK-26: a strategy that is best for every problem: pass@k rises at every k."""
    solves = jnp.stack([jnp.full(40, 0.9), jnp.linspace(0.01, 0.5, 40)], axis=1)
    logits = jnp.log(jnp.array([0.1, 0.9]))
    tilted = shared.tilt(logits, solves, 5.0)
    assert (
        shared.solve_rates(tilted, solves) > shared.solve_rates(logits, solves)
    ).all()
    for k in (1, 8, 64):
        assert pass_at(tilted, solves, k) > pass_at(logits, solves, k)


@pytest.mark.parametrize("seed", range(5))
def test_the_boundary_narrows_as_training_goes_on(seed):
    """PK-13, PK-09: pass@1 rises and pass@256 falls at every step; the curves cross.

    Base and tilted policy on the same 60 problems, exact rates.
    """
    logits, solves = specialists(seed)
    steps = [shared.tilt(logits, solves, eta) for eta in (0, 20, 40, 80, 160)]
    one = np.array([pass_at(step, solves, 1) for step in steps])
    many = np.array([pass_at(step, solves, 256) for step in steps])
    assert (np.diff(one) > 0).all()
    assert (np.diff(many) < 0).all()
    wins = [
        pass_at(steps[-1], solves, k) > pass_at(logits, solves, k) for k in (1, 1024)
    ]
    assert wins == [True, False]


def test_a_higher_temperature_recovers_some_of_the_gap():
    """PK-14: at the base's entropy pass@256 is higher again, but not all of it.

    Ten strategies that the base prefers solve hard problems in .02 of their tries, ten
    others solve easy ones in .9. Heating keeps the order that training gave: what it
    spreads is not the base.
    """
    solves = jnp.eye(20) * jnp.where(jnp.arange(20) < 10, 0.02, 0.9)[:, None]
    logits = jnp.where(jnp.arange(20) < 10, 1.5, 0.0)
    tilted = shared.tilt(logits, solves, 160.0)
    target = float(entropy_from_logits(logits))
    row = np.asarray(tilted, float)[None]
    temperature = temperature_for_entropy(row, target)
    assert temperature > 1
    heated = tilted / temperature
    np.testing.assert_allclose(entropy_from_logits(heated), target, rtol=1e-4)
    low, middle, high = (pass_at(z, solves, 256) for z in (tilted, heated, logits))
    assert low + 0.03 < middle < high - 0.03


def test_rl_stays_within_the_support_and_imitation_leaves_it():
    """PK-32, SFT-06: pi(a) = 0: the RL gradient is exactly 0, that of SFT is not.

    Both closed forms against jax.grad.
    """
    policy = jnp.array([0.7, 0.3, 0.0])
    rewards, teacher = jnp.array([0.0, 0.2, 1.0]), jnp.array([0.0, 0.0, 1.0])
    by_reward = shared.expected_reward_gradient(policy, rewards)
    assert by_reward[2] == 0.0
    assert by_reward[1] > 0
    assert shared.imitation_gradient(policy, teacher)[2] == 1.0
    logits = jnp.array([0.3, -0.5, 1.0])
    pi = jax.nn.softmax(logits)
    np.testing.assert_allclose(
        jax.grad(lambda z: jax.nn.softmax(z) @ rewards)(logits),
        shared.expected_reward_gradient(pi, rewards),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        jax.grad(lambda z: teacher @ jax.nn.log_softmax(z))(logits),
        shared.imitation_gradient(pi, teacher),
        atol=1e-6,
    )


def test_a_teacher_of_other_support_widens_coverage():
    """PK-16, SFT-20: problems at p = 1e-12: RL gains 0 there, distillation > .9.

    Strategy 2 alone solves the second half; the teacher uses it half of the time.
    """
    solves = jnp.array([[1.0, 0.2, 0.0]] * 5 + [[0.0, 0.0, 1.0]] * 5)
    start = jnp.log(jnp.array([0.5, 0.5, 1e-12]))
    teacher = jnp.array([0.5, 0.0, 0.5])

    def train(gradient):
        def update(logits, _):
            return logits + 0.5 * gradient(jax.nn.softmax(logits)), None

        return jax.lax.scan(update, start, length=300)[0]

    by_rl = train(lambda p: shared.expected_reward_gradient(p, solves.mean(0)))
    distilled = train(lambda p: shared.imitation_gradient(p, teacher))
    hard = solves[5:]
    assert pass_at(by_rl, hard, 1024) < 1e-6
    assert pass_at(by_rl, solves, 1) > pass_at(start, solves, 1) + 0.1
    assert pass_at(distilled, hard, 1024) > 0.9


def test_skills_that_are_practised_compose():
    """PK-36, PK-19: a problem of five skills, each at 5%: base pass@1024 is 3e-4.

    Exact gradient of the joint problem barely moves; practising each skill alone makes
    the joint one likely, at the same number of updates. A tilt over whole solutions
    that the base never samples keeps p = 0.
    """
    skills = jnp.full(5, jnp.log(0.05 / 0.95))
    base = float(shared.joint_rate(skills))
    assert base == pytest.approx(0.05**5, rel=1e-4)
    chance = expected_pass_at_k(np.array([base]), 1024)[0]
    assert chance == pytest.approx(1 - (1 - 0.05**5) ** 1024, rel=1e-3)
    assert chance < 4e-4
    alone = shared.practise(skills, steps=100, learning_rate=1.0, joint=False)
    whole = shared.practise(skills, steps=100, learning_rate=1.0, joint=True)
    assert shared.joint_rate(alone) > 0.8
    assert shared.joint_rate(whole) < 2 * base
    never = jnp.array([0.0, -jnp.inf])
    tilted = shared.tilt(never, jnp.array([[0.0, 1.0]]), 50.0)
    assert float(shared.solve_rates(tilted, jnp.array([[0.0, 1.0]]))[0]) == 0.0
