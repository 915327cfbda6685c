"""Nine experts, one student: three domains at three levels of effort."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.distillation import reverse_kl
from rlvr_jax.toys import experts

SEEDS, DOMAINS, EFFORTS, STEPS = 8, 3, 3, 200


@functools.cache
def nine():
    draw = lambda key: experts.experts(key, DOMAINS, EFFORTS)
    return jax.vmap(draw)(jax.random.split(jax.random.key(0), SEEDS))


@functools.cache
def gaps(tagged=True, routed=True, domains=DOMAINS, efforts=EFFORTS):
    """KL to the right expert, [SEEDS, STEPS, domains, efforts]."""
    own = nine()[:, : domains * efforts]
    found = experts.merged(
        jax.random.split(jax.random.key(1), SEEDS),
        own,
        experts.features(domains, efforts, tagged=tagged),
        steps=STEPS,
        routed=routed,
    )
    return np.asarray(found).reshape(SEEDS, STEPS, domains, efforts)


def test_each_domain_comes_closer_to_its_own_teacher():
    """REC-30: three specialists, one per domain, no effort tag: the KL to the right
    teacher falls below .01 nats on each domain in each of 8 draws, from .2 or more.
    Prompts that go to any of the three teachers do not get there."""
    specialists = gaps(efforts=1)
    assert (specialists[:, 0] > 0.15).all()
    assert (specialists[:, -1] < 0.01).all()
    astray = gaps(routed=False, efforts=1)
    assert (astray[:, -20:].mean(axis=1) > 0.05).all()


def test_the_student_is_each_of_nine_experts_in_turn():
    """REC-31: KL to the expert of (domain, effort) below .01 nats for all nine, in each
    of 8 draws."""
    assert (gaps()[:, 0] > 0.15).all()
    assert (gaps()[:, -1] < 0.01).all()


def test_without_the_tag_it_is_the_mean_of_three():
    """REC-31: blind to the effort, the least mean KL over a domain's three experts is
    -log sum_v exp(mean log T_e(v)), that of their geometric mean; the student comes
    within .03 of it (its sampling never rests) and not below, and far from 0."""
    teachers = nine().reshape(SEEDS, DOMAINS, EFFORTS, experts.TOKENS)
    floor = -np.log(np.exp(np.asarray(teachers).mean(2)).sum(-1))
    found = gaps(tagged=False)[:, -50:].mean(axis=(1, 3))
    assert (found > floor - 1e-4).all()
    assert abs(found - floor).mean() < 0.03
    assert floor.mean() > 0.3


def test_the_floor_is_reached_by_the_geometric_mean():
    """The closed form above against `reverse_kl` of that distribution, one by one."""
    teachers = nine()[0, :EFFORTS]
    middle = jax.nn.log_softmax(teachers.mean(0))
    each = [float(reverse_kl(middle, expert)) for expert in teachers]
    floor = -jnp.log(jnp.exp(teachers.mean(0)).sum())
    np.testing.assert_allclose(np.mean(each), floor, rtol=1e-4)
