"""A policy over a few strategies, some of them rare and good: does GRPO find them?

One prompt, a softmax over N strategies, each right with its own chance. A batch is G
samples with 0/1 rewards; GRPO takes several clipped steps of plain gradient descent on
it. Many seeds run at once under `jax.vmap`. The losses are those of `core`.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.entropy import adapt_entropy_coefficient
from rlvr_jax.core.logprobs import entropy_from_logits
from rlvr_jax.core.losses import clipped_loss
from rlvr_jax.core.ranking import top_tokens
from rlvr_jax.core.selection import token_count, token_covariance
from rlvr_jax.core.weighted_losses import cispo_loss


@dataclasses.dataclass(frozen=True)
class World:
    """Where the policy starts, and how often each strategy is right."""

    start: tuple[float, ...]
    """Probabilities of the strategies at the start; they sum to 1."""
    success: tuple[float, ...]
    """Chance of reward 1, per strategy."""


def sixteen_strategies() -> World:
    """A comfortable strategy, thirteen poor ones, and two rare ones that work.

    s0 has 55% of the mass and is right in .679 of its tries; s7 (1.5%) and s11 (1%) in
    .95 and .90. The chance of s0 and of the others, .105 to .434, and the step size of
    `Recipe` were fitted (by others) so that 16 seeds gave about the published counts.
    """
    start, success = np.full(16, 0.425 / 13), np.zeros(16)
    start[[0, 7, 11]] = 0.55, 0.015, 0.010
    others = np.delete(np.arange(16), [0, 7, 11])
    success[others] = np.linspace(0.105, 0.434, 13)
    success[[0, 7, 11]] = 0.679, 0.95, 0.90
    return World(tuple(start), tuple(success))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How the policy is trained."""

    surrogate: str = "clip"
    """"clip", or "cispo", which reads epsilon_high alone."""
    epsilon_low: float = 0.2
    epsilon_high: float = 0.2
    clip_cov: float = 0.0
    """Share of the samples whose loss is dropped: those of highest covariance."""
    entropy_bonus: float = 0.0
    target_entropy: float | None = None
    """In nats; the bonus climbs while entropy is below it, from `entropy_bonus` on."""
    num_generations: int = 16
    updates_per_batch: int = 4
    learning_rate: float = 1.04
    batches: int = 300


class Trace(NamedTuple):
    """What the policy became, and what it was before every batch."""

    policy: Float[Array, " N"]
    entropy: Float[Array, " K"]
    history: Float[Array, "K N"]
    """Probabilities; times the chances of success they give the exact pass rate."""


@functools.partial(jax.jit, static_argnames=("world", "recipe"))
def train(keys: Key[Array, " seeds"], world: World, recipe: Recipe) -> Trace:
    """One run per key.

    Args:
      keys: consumed.
      world: start and rewards.
      recipe: settings of the training.

    Returns:
      final probabilities, [seeds, N]; entropies in nats, [seeds, batches]; and the
      probabilities before every batch, [seeds, batches, N].
    """
    return jax.vmap(lambda key: _run(key, world, recipe))(keys)


def _run(key: Key[Array, ""], world: World, recipe: Recipe) -> Trace:
    logits = jnp.log(jnp.array(world.start))
    success = jnp.array(world.success)
    group_id = jnp.zeros(recipe.num_generations, int)

    def batch(state, key):
        logits, coefficient = state
        policy, entropy = jax.nn.softmax(logits), entropy_from_logits(logits)
        bonus = coefficient
        if recipe.target_entropy is not None:
            coefficient, bonus = adapt_entropy_coefficient(
                coefficient, entropy, target=recipe.target_entropy
            )
        draw, judge = jax.random.split(key)
        samples = jax.random.categorical(draw, logits, shape=group_id.shape)
        rewards = jax.random.bernoulli(judge, success[samples])
        advantages = group_advantages(rewards, group_id)
        old = jax.nn.log_softmax(logits)[samples]

        def update(logits, _):
            gradient = jax.grad(_loss)(logits, samples, old, advantages, bonus, recipe)
            return logits - recipe.learning_rate * gradient, None

        logits, _ = jax.lax.scan(update, logits, length=recipe.updates_per_batch)
        return (logits, coefficient), (entropy, policy)

    state = (logits, jnp.asarray(recipe.entropy_bonus, logits.dtype))
    (logits, _), (entropies, history) = jax.lax.scan(
        batch, state, jax.random.split(key, recipe.batches)
    )
    return Trace(jax.nn.softmax(logits), entropies, history)


def _loss(
    logits: Float[Array, " N"],
    samples: Int[Array, " G"],
    old: Float[Array, " G"],
    advantages: Float[Array, " G"],
    bonus: Float[Array, ""],
    recipe: Recipe,
) -> Float[Array, ""]:
    logprobs = jax.nn.log_softmax(logits)[samples][:, None]
    log_ratio = logprobs - old[:, None]
    if recipe.surrogate == "cispo":
        per_sample = cispo_loss(
            logprobs, log_ratio, advantages, epsilon_high=recipe.epsilon_high
        )
    else:
        per_sample = clipped_loss(
            log_ratio,
            advantages,
            epsilon_low=recipe.epsilon_low,
            epsilon_high=recipe.epsilon_high,
        )
    if recipe.clip_cov:
        every = jnp.ones(logprobs.shape, bool)
        covariance = token_covariance(logprobs, advantages, every)
        dropped = top_tokens(covariance, every, token_count(every, recipe.clip_cov))
        per_sample = jnp.where(dropped, 0.0, per_sample)
    return per_sample.mean() - bonus * entropy_from_logits(logits)
