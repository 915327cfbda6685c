"""A supervised cold start: a decoder imitates worked solutions before RL."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int

from rlvr_jax.config import WarmupConfig
from rlvr_jax.core.imitation import imitation_loss, rectified_imitation_loss
from rlvr_jax.data.order import PromptOrder
from rlvr_jax.train.batches import PromptBatches, right_padded
from rlvr_jax.train.forward import completion_logprobs
from rlvr_jax.train.micro_batches import Prompts
from rlvr_jax.train.state import StepPlan
from rlvr_jax.train.trainable import trainable_of, with_trainable
from rlvr_jax.types import Ratio
from rlvr_jax.validate import ConfigError

SHUFFLE_SEED = 1_000_003
"""Added to the seed: the cold start sees the problems in another order than RL."""

TOKEN_LOSSES: dict[str, Callable[[Array], Array]] = {
    "likelihood": imitation_loss,
    "rectified": rectified_imitation_loss,
}
"""warmup.loss -> the loss per token."""


@dataclasses.dataclass(frozen=True)
class Warmup:
    """Worked solutions to imitate, and how."""

    settings: WarmupConfig
    batches: PromptBatches
    solutions: Sequence[Sequence[Sequence[int]]]
    """Of each problem; one is drawn at each visit."""
    plan: StepPlan
    seed: int

    def __post_init__(self):
        """Refuses solutions longer than a completion can be."""
        longest = max((len(ids) for each in self.solutions for ids in each), default=0)
        if longest > self.plan.max_completion_tokens:
            raise ConfigError(
                f"warmup: the longest worked solution has {longest} tokens, more than "
                "rollout.max_completion_tokens="
                f"{self.plan.max_completion_tokens}; raise it."
            )

    def run(self, parameters: nnx.State) -> tuple[nnx.State, list[float]]:
        """AdamW on the mean of warmup.loss over solution tokens, cosine down to 0.

        Returns:
          the parameters, and the loss of each step per token, in nats for
          "likelihood".
        """
        settings, size = self.settings, self.batches.size
        schedule = optax.cosine_decay_schedule(settings.learning_rate, settings.steps)
        optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
        order = PromptOrder(
            len(self.solutions), size, seed=self.seed + SHUFFLE_SEED, shuffle=True
        )
        step = jax.jit(
            functools.partial(
                _imitate,
                plan=self.plan,
                optimizer=optimizer,
                token_loss=TOKEN_LOSSES[settings.loss],
            ),
            donate_argnums=(0, 1),
        )
        state = jax.jit(optimizer.init)(trainable_of(parameters))
        losses = []
        for index in range(settings.steps):
            indices = order.indices(index)
            prompts = Prompts(*self.batches.arrays(indices))
            random = np.random.default_rng([self.seed, index])
            chosen = [
                self.solutions[i][random.integers(len(self.solutions[i]))]
                for i in indices
            ]
            tokens = right_padded(
                chosen, self.plan.max_completion_tokens, self.batches.pad_id
            )
            lengths = np.array([len(ids) for ids in chosen], np.int32)
            parameters, state, loss = step(
                parameters,
                state,
                prompts,
                self.batches.put(tokens),
                self.batches.put(lengths),
            )
            losses.append(loss)
        return parameters, [float(loss) for loss in losses]


def _imitate(
    parameters: nnx.State,
    state: optax.OptState,
    prompts: Prompts,
    tokens: Int[Array, "N T"],
    lengths: Int[Array, " N"],
    *,
    plan: StepPlan,
    optimizer: optax.GradientTransformation,
    token_loss: Callable[[Array], Array],
) -> tuple[nnx.State, optax.OptState, Float[Array, ""]]:
    mask = jnp.arange(tokens.shape[-1]) < lengths[:, None]

    def loss(trainable):
        whole = with_trainable(parameters, trainable)
        logprobs, _ = completion_logprobs(whole, prompts, tokens[:, None], None, plan)
        total = jnp.where(mask, token_loss(logprobs), 0.0).sum()
        return Ratio(total, mask.sum().astype(jnp.float32)).value()

    trainable = trainable_of(parameters)
    value, gradients = jax.value_and_grad(loss)(trainable)
    changes, state = optimizer.update(gradients, state, trainable)
    new = jax.tree.map(jnp.add, trainable, changes)
    return with_trainable(parameters, new), state, value
