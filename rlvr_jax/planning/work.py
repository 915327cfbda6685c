"""The sizes a step works through: rows, tokens, passes. Everything else follows."""

import dataclasses
import math
from collections.abc import Mapping

import jax.numpy as jnp

from rlvr_jax.config import Config
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.lora import adapter_shapes
from rlvr_jax.rollout.passage import Program
from rlvr_jax.train.kernels import why_chunked, why_dense
from rlvr_jax.train.micro_batches import micro_batch_shape
from rlvr_jax.train.selected import needs_selection


@dataclasses.dataclass(frozen=True)
class Work:
    """One step of a recipe at its limits: every prompt and completion full."""

    architecture: Architecture
    prompts: int
    """P, of a step."""
    generations: int
    """G."""
    slots: int
    """S: prompt tokens."""
    length: int
    """T: completion tokens."""
    engine: str
    """As rollout.engine."""
    at_once: int
    """Prompts that are read at the same time."""
    decoding: int
    """Completions that decode at the same time."""
    behaviours: int
    """Policies of batches under way while an update runs (rollout.staleness)."""
    micro: tuple[int, int]
    """Prompts, and completions of each, of one micro-batch."""
    updates: int
    """Optimizer updates of a step; each sees prompts / minibatches."""
    minibatches: int
    extra_forwards: int
    """Passes without a gradient over the whole batch: old policy, reference."""
    remat: str
    """As model.remat."""
    chunk_tokens: int
    """Positions of a chunk of the LM head."""
    copies: int
    """Of the parameters that stay in float32: policy, and a reference with KL."""
    critic_updates: int
    """Of the value model, per update of the policy; 0 without one."""
    selection: bool
    """Whether an update starts with a pass over its minibatch (train/selected.py)."""
    weight_bytes: int
    """Of a number in the type that is computed with."""
    moment_bytes: int
    """Of both moments of Adam, per trained number."""
    adapters: int
    """Numbers of LoRA, which every device has whole; if any, they alone are trained."""
    why_dense: str = ""
    """Why attention goes without the splash kernel; "" if it does not."""
    why_chunked: str = ""
    """Why the LM head goes by chunks; "" if its kernel is taken."""

    @property
    def rows(self) -> int:
        """Completions of a step."""
        return self.prompts * self.generations

    @property
    def tokens(self) -> int:
        """Completion tokens of a step, at most."""
        return self.rows * self.length

    @property
    def epochs(self) -> int:
        """Updates that see each completion."""
        return self.updates // self.minibatches

    @property
    def micros_per_update(self) -> int:
        """Forward-backward passes per update."""
        return self.rows // self.minibatches // (self.micro[0] * self.micro[1])

    @property
    def trained_micros(self) -> int:
        """Micro-batches with a gradient, of a step; the value model's are like the
        policy's."""
        return self._micros * self.epochs * (1 + self.critic_updates)

    @property
    def read_micros(self) -> int:
        """Micro-batches without one; the value model reads the batch once."""
        reads = self.extra_forwards + self.epochs * self.selection
        return self._micros * (reads + bool(self.critic_updates))

    @property
    def weight_passes(self) -> int:
        """Times that learning goes through the weights: once to read a micro-batch,
        three times to train on it (forward, again, backward)."""
        return 3 * self.trained_micros + self.read_micros

    @property
    def _micros(self) -> int:
        """Of all completions of a step, once."""
        return self.micros_per_update * self.minibatches

    @property
    def sampling_rounds(self) -> int:
        """Times that completions decode from the first to the last token."""
        return -(-self.rows // self.decoding)

    @property
    def prefills(self) -> int:
        """Groups of prompts that are read, one after the other."""
        return -(-self.prompts // self.at_once)


def work_of(
    config: Config, architecture: Architecture, pod: Mapping[str, int] | None = None
) -> Work:
    """What a step of `config` comes to.

    Args:
      config: validated settings.
      architecture: of the decoder.
      pod: sizes of the mesh axes of a TPU slice, for the kernels that "auto" takes
        there; None for one device of another kind.

    Raises:
      ConfigError: a kernel is asked for that does not take these shapes.
    """
    model, tpu, sizes = config.model, pod is not None, pod or {"tensor": 1}
    batch, rollout, objective = config.batch, config.rollout, config.objective
    updates = batch.updates_per_step
    in_reward = objective.beta > 0 and objective.kl_placement == "reward"
    minibatch = batch.prompts_per_step // batch.minibatches_per_step
    at_once = rollout.prompts_at_once or batch.prompts_per_step
    decoding = at_once * rollout.num_generations
    if rollout.engine == "slots":
        at_once = Program.prompts_per_prefill
        decoding = min(rollout.slots, batch.prompts_per_step * rollout.num_generations)
    return Work(
        architecture=architecture,
        prompts=batch.prompts_per_step,
        generations=rollout.num_generations,
        slots=-(-config.data.max_prompt_tokens // 8) * 8,
        length=rollout.max_completion_tokens,
        engine=rollout.engine,
        at_once=at_once,
        decoding=decoding,
        behaviours=rollout.staleness,
        micro=micro_batch_shape(
            minibatch, rollout.num_generations, batch.micro_batch_size
        ),
        updates=updates,
        minibatches=batch.minibatches_per_step,
        # As train/step.py: a single update is its own old policy.
        extra_forwards=int(updates > 1 or in_reward) + int(objective.beta > 0),
        remat=model.remat,
        chunk_tokens=batch.logprob_chunk_tokens,
        copies=1 + int(objective.beta > 0),
        critic_updates=config.critic.updates_per_minibatch
        if objective.advantage == "gae"
        else 0,
        selection=needs_selection(objective),
        weight_bytes=jnp.dtype(model.dtype).itemsize,
        moment_bytes=4 + jnp.dtype(config.optimizer.moment_dtype).itemsize,
        adapters=sum(map(math.prod, adapter_shapes(architecture, model.lora_rank))),
        why_dense=why_dense(
            model.attention, architecture, sizes, tpu, packed=batch.packing
        ),
        why_chunked=why_chunked(
            model.logprob_kernel,
            architecture.vocab_size,
            sizes,
            tpu,
            kept_sets=rollout.top_p < 1 or rollout.top_k > 0 or rollout.min_p > 0,
            rounded=model.head_dtype == "model" and model.dtype != "float32",
        ),
    )
