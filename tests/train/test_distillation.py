"""On-policy distillation in the train step: the teacher pays, the verdicts do not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train.step import train_step
from tests import bigram, tiny

RATE = 0.1


@pytest.fixture(scope="module")
def rollouts():
    return tiny.rollouts(*tiny.policy())


def logprobs_of(parameters, rollouts):
    """Of every sampled token under a bigram, [P, G, T]."""
    embedding, head = (parameters[n].get_value() for n in ("embedding", "head"))
    shape = rollouts.completion_tokens.shape
    last = jnp.broadcast_to(rollouts.prompt_tokens[:, None, -1:], (*shape[:2], 1))
    before = jnp.concatenate([last, rollouts.completion_tokens[..., :-1]], axis=-1)
    logprobs = jax.nn.log_softmax(embedding[before] @ head.T)
    chosen = rollouts.completion_tokens[..., None]
    return jnp.take_along_axis(logprobs, chosen, -1)[..., 0]


def test_a_step_is_paid_by_the_teacher_alone(rollouts):
    """SFT-12: SGD's move is the mean over tokens of A grad log pi, A = log pi_T - log
    pi_S, a constant, by autodiff of a bigram written here; rewards change nothing."""
    graphdef, student = bigram.policy()
    _, teacher = bigram.policy(seed=1)
    objective = Objective(name="opd", **PRESETS["opd"])
    plan = tiny.plan(graphdef, objective, optimizer=optax.sgd(RATE))
    step = jax.jit(functools.partial(train_step, plan=plan))
    zeros = jnp.zeros(rollouts.ended.shape)
    moved = [
        step(tiny.state(student, plan, teacher), rollouts, rewards, zeros)[0].parameters
        for rewards in (zeros, tiny.rewards())
    ]
    assert tiny.largest_difference(*moved) == 0

    mask = rollouts.token_mask
    paid = logprobs_of(teacher, rollouts) - logprobs_of(student, rollouts)

    def gain(parameters):
        return (
            jnp.sum(logprobs_of(parameters, rollouts) * paid, where=mask) / mask.sum()
        )

    gradient = jax.jit(jax.grad(gain))(student)
    expected = jax.tree.map(lambda leaf, slope: leaf + RATE * slope, student, gradient)
    assert tiny.largest_difference(moved[0], expected) < 1e-6
    assert tiny.largest_difference(moved[0], student) > 1e-3


def test_a_student_that_is_its_teacher_stays(rollouts):
    """SFT-12: S = T: no token is paid."""
    graphdef, student = bigram.policy()
    objective = Objective(name="opd", **PRESETS["opd"])
    plan = tiny.plan(graphdef, objective, optimizer=optax.sgd(RATE))
    state = tiny.state(student, plan, jax.tree.map(jnp.copy, student))
    step = jax.jit(functools.partial(train_step, plan=plan))
    new, metrics = step(state, rollouts, tiny.rewards(), tiny.rewards())
    assert tiny.largest_difference(new.parameters, bigram.policy()[1]) == 0
    assert np.isfinite(float(metrics["loss/policy"]))
