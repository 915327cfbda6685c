"""What some advantages need beside rewards: parts, greedy answers, problem numbers."""

import dataclasses

import numpy as np
from flax import nnx
from jax.sharding import PartitionSpec
from jaxtyping import Bool, Float, Int

from rlvr_jax.mesh.mesh import fetch, put
from rlvr_jax.rollout.sampler import row_keys, sample
from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train.setup import Setup
from rlvr_jax.train.step import Extras


def extras_for(
    setup: Setup,
    weights: nnx.State,
    indices: Int[np.ndarray, " P"],
    step: int,
    scores: Scores,
    kept: Bool[np.ndarray, " P"] | None = None,
) -> Extras | None:
    """The extras of this step's objective and sampling rules; None for most.

    Args:
      setup: of the run.
      weights: the policy that sampled, for greedy answers.
      indices: the step's problems.
      step: number of the step.
      scores: of its completions.
      kept: groups that the loss takes; None where no rule leaves any out.
    """
    extras = _of_advantage(setup, weights, indices, step, scores)
    if kept is None:
        return extras
    return dataclasses.replace(
        extras or Extras(), kept_groups=setup.batches.put(np.asarray(kept))
    )


def _of_advantage(setup, weights, indices, step, scores) -> Extras | None:
    rows, mesh = setup.batches.put, setup.mesh
    match setup.config.objective.advantage:
        case "gdpo":
            part_weights = np.array(scores.part_weights, np.float32)
            return Extras(
                reward_parts=rows(scores.parts),
                part_weights=put(part_weights, mesh, PartitionSpec()),
            )
        case "remax":
            rewards = _greedy_rewards(setup, weights, indices, step)
            return Extras(greedy_rewards=rows(rewards))
        case "running_mean":
            return Extras(problem_ids=rows(np.asarray(indices, np.int32)))
    return None


def _greedy_rewards(
    setup: Setup, weights: nnx.State, indices: Int[np.ndarray, " P"], step: int
) -> Float[np.ndarray, " P"]:
    """Of the most likely answer to each prompt."""
    batches = dataclasses.replace(setup.sampled_batches, num_generations=1)
    tokens, lengths = batches.arrays(indices)
    keys = row_keys(setup.config.seed, step, batches.put(indices), 1)
    rollouts = sample(
        setup.sampler.graphdef,
        weights,
        tokens,
        lengths,
        keys,
        sampling=dataclasses.replace(
            setup.sampling, num_generations=1, temperature=0.0
        ),
    )
    host: tuple[np.ndarray, ...] = fetch(
        (rollouts.completion_tokens, rollouts.completion_lengths, rollouts.ended)
    )
    return setup.scorer(np.asarray(indices), *host).rewards[:, 0]
