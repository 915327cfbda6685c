"""What the settings say of the train step, of a run or of one that is only planned."""

import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh

from rlvr_jax.config import Config
from rlvr_jax.train.optimizer import make_critic_optimizer, make_optimizer
from rlvr_jax.train.state import StepPlan


def step_plan_of(config: Config, graphdef: nnx.GraphDef, mesh: Mesh) -> StepPlan:
    """The static part of the step.

    Args:
      config: valid settings.
      graphdef: of the policy.
      mesh: that it trains on.
    """
    critic = {}
    if config.objective.advantage == "gae":
        critic["critic"] = config.critic
        critic["critic_optimizer"] = make_critic_optimizer(config)
    return StepPlan(
        graphdef=graphdef,
        optimizer=make_optimizer(config),
        objective=config.objective,
        batch=config.batch,
        max_completion_tokens=config.rollout.max_completion_tokens,
        temperature=config.rollout.temperature,
        mesh=mesh,
        dtype=jnp.dtype(config.model.dtype),
        logprob_kernel=config.model.logprob_kernel,
        replay_routing=config.rollout.replay_routing,
        seed=config.seed,
        **critic,
    )
