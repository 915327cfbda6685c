"""What a new run learns from: the policy, after the cold start if it has one."""

import time

from rlvr_jax.train.policy import new_state
from rlvr_jax.train.setup import Setup
from rlvr_jax.train.state import TrainState


def first_state(setup: Setup) -> TrainState:
    """The state before step 0; prints what the cold start did."""
    parameters = setup.parameters
    if setup.warmup is not None:
        begun = time.perf_counter()
        parameters, losses = setup.warmup.run(parameters)
        units = {"likelihood": " nats/token", "rectified": " per token, rectified"}
        print(
            f"cold start: {len(losses)} steps, loss {losses[0]:.3f} -> "
            f"{losses[-1]:.3f}{units[setup.config.warmup.loss]}, "
            f"{time.perf_counter() - begun:.0f} s",
            flush=True,
        )
    return new_state(
        parameters,
        setup.step_plan,
        num_problems=len(setup.train.problems),
        reference=setup.reference,
        critic=setup.critic,
    )
