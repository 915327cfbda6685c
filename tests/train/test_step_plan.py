"""What a step is told of the settings, in a run and in its plan alike."""

import pytest

from rlvr_jax.config import Config, Objective
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.train.step_plan import step_plan_of
from tests import bigram


def plan_of(config: Config):
    return step_plan_of(config, bigram.policy()[0], make_mesh((-1, 1, 1)))


@pytest.mark.parametrize("replays", [True, False])
def test_routing_and_seed_are_those_of_the_settings(replays):
    config = Config(seed=7)
    config.rollout.replay_routing = replays
    plan = plan_of(config)
    assert (plan.replay_routing, plan.seed) == (replays, 7)
    assert (plan.objective, plan.batch) == (config.objective, config.batch)
    assert plan.critic_optimizer is None


def test_a_critic_comes_with_its_own_settings():
    config = Config(objective=Objective(advantage="gae"))
    config.critic.pretraining_steps = 3
    plan = plan_of(config)
    assert plan.critic == config.critic
    assert plan.critic_optimizer is not None
