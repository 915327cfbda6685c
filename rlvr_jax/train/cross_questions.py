"""Completions scored under every other question: does the policy read its input?"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int

from rlvr_jax.config import BatchConfig
from rlvr_jax.core.input_dependence import input_dependence
from rlvr_jax.mesh.mesh import fetch, rows_divide
from rlvr_jax.train.forward import batch_logprobs
from rlvr_jax.train.micro_batches import Prompts, micro_batch_shape
from rlvr_jax.train.state import StepPlan
from rlvr_jax.types import Rollouts


@dataclasses.dataclass(frozen=True)
class CrossQuestions:
    """Measures RAGEN-2's input dependence on one batch of rollouts."""

    plan: StepPlan

    @classmethod
    def of(cls, plan: StepPlan, num_generations: int) -> "CrossQuestions":
        """For batches of `num_generations` completions per question.

        They lie on the plan's mesh. The training's micro-batches are kept where they
        fit; log-probs are the model's own, at temperature 1.
        """
        batch = _fitting(plan, num_generations)
        return cls(dataclasses.replace(plan, temperature=1.0, batch=batch))

    def __call__(
        self, parameters: nnx.State, rollouts: Rollouts, used: int
    ) -> dict[str, float]:
        """Metrics over the first `used` questions of the rollouts.

        Args:
          parameters: of the policy.
          rollouts: P questions with K completions each; P passes over P K rows.
          used: questions that count; the others only fill the batch up.
        """
        rows = []
        for question in range(used):
            found = _scores(parameters, rollouts, jnp.int32(question), plan=self.plan)
            rows.append(np.asarray(fetch(found)).T[:, :used])
        lengths = np.asarray(fetch(rollouts.completion_lengths))[:used]
        found = input_dependence(jnp.asarray(np.stack(rows)), jnp.asarray(lengths))
        return {
            "evaluation/mutual_information": float(found.mutual_information),
            "evaluation/retrieval_accuracy": float(found.retrieval_accuracy),
            "evaluation/mutual_information_z": float(found.z_score),
        }


@functools.partial(jax.jit, static_argnames="plan")
def _scores(
    parameters: nnx.State, rollouts: Rollouts, question: Int[Array, ""], *, plan
) -> Float[Array, "P K"]:
    """log p of the completions of one question, under each of the P questions."""

    def of_one(array):
        chosen = jax.lax.dynamic_index_in_dim(array, question)
        return jnp.broadcast_to(chosen, array.shape)

    logprobs, _ = batch_logprobs(
        parameters,
        Prompts(rollouts.prompt_tokens, rollouts.prompt_lengths),
        of_one(rollouts.completion_tokens),
        None,
        plan,
    )
    return jnp.where(of_one(rollouts.token_mask), logprobs, 0.0).sum(axis=-1)


def _fitting(plan: StepPlan, num_generations: int) -> BatchConfig:
    """The settings, with all rows at once where micro-batches do not divide them, or
    do not themselves divide over the devices."""
    batch = plan.batch
    prompts, size = batch.prompts_per_step, batch.micro_batch_size
    per_micro, rows = micro_batch_shape(prompts, num_generations, size)
    fits = prompts % per_micro == 0 and num_generations % rows == 0
    # The mesh may be that of sampling, which these were not made for.
    fits = fits and rows_divide(plan.mesh, (per_micro, rows))
    return batch if fits else dataclasses.replace(batch, micro_batch_size=0)
