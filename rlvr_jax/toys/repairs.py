"""Four repairs of GRPO, on and off in all sixteen ways: what does each bring?

The policy is that of `features`; prompts need answers of 1 to T tokens. Each step
samples groups and makes several updates, so that ratios leave 1. The switches:

    length    "constant" in place of "sequence_mean" (Dr. GRPO)
    scale     centred rewards, not divided by the group's std (Dr. GRPO)
    clip      an upper bound of 1.28 in place of 1.2 (DAPO)
    ratio     of the whole answer in place of each token (GSPO)
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from rlvr_jax.core import aggregation, ratios
from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.losses import clipped_loss
from rlvr_jax.toys import features
from rlvr_jax.toys.features import POSITIONS, PROMPTS

ROWS, GENERATIONS, UPDATES, STEPS = 64, 8, 8, 40
LENGTHS = 1 + jnp.arange(PROMPTS) % POSITIONS
"""Tokens of an answer, per prompt."""
NAMES = ("length", "scale", "clip", "ratio")


class Switches(NamedTuple):
    """Which repairs are on; one entry per run."""

    length: Bool[Array, "..."]
    scale: Bool[Array, "..."]
    clip: Bool[Array, "..."]
    ratio: Bool[Array, "..."]


def factorial() -> Switches:
    """All sixteen combinations, the last switch turning fastest."""
    rows = list(itertools.product((False, True), repeat=len(NAMES)))
    return Switches(*(jnp.array(column) for column in zip(*rows, strict=True)))


@jax.jit
def train(
    keys: Key[Array, " seeds"], runs: Switches, rate: float | Float[Array, ""]
) -> Float[Array, "runs seeds K"]:
    """Exact pass rates after every step; a seed draws the same world in every run.

    Args:
      keys: consumed.
      runs: arrays of one length.
      rate: of gradient descent. At 8 the policy of all runs climbs smoothly; at 30 it
        is near the edge, where plain GRPO loses what it had.
    """
    return jax.lax.map(
        lambda run: jax.vmap(lambda key: _run(key, run, rate))(keys), runs
    )


def _run(key, on: Switches, rate):
    draw, run = jax.random.split(key)
    world = features.world(draw)
    prompts = jnp.repeat(jnp.arange(PROMPTS), GENERATIONS)
    mask = jnp.arange(POSITIONS) < LENGTHS[prompts][:, None]

    def step(weights, key):
        sample, shuffle = jax.random.split(key)
        policy = features.log_policy(weights, world.features)[prompts]
        tokens = jax.random.categorical(sample, policy)
        right = ((tokens == world.right[prompts]) | ~mask).all(1)
        advantages = jnp.where(
            on.scale,
            # About as large as those divided by a std near 1/2.
            2 * group_advantages(right, prompts, scale="none"),
            group_advantages(right, prompts),
        )
        batch = (tokens, advantages, features.of_tokens(policy, tokens))
        weights = _updates(weights, batch, prompts, mask, shuffle, world, on, rate)
        return weights, _pass_rate(weights, world)

    return jax.lax.scan(step, world.start, jax.random.split(run, STEPS))[1]


def _updates(weights, batch, prompts, mask, key, world, on: Switches, rate):
    """Gradient descent on parts of a batch, each with some rows of every prompt."""

    def loss(weights, rows):
        tokens, advantages, old = (array[rows] for array in batch)
        here = mask[rows]
        policy = features.log_policy(weights, world.features)[prompts[rows]]
        gap = jnp.where(here, features.of_tokens(policy, tokens) - old, 0.0)
        whole = ratios.sequence_token_log_ratio(gap, here)
        gap = jnp.where(on.ratio, whole, gap)
        low, high = (
            clipped_loss(gap, advantages, epsilon_low=0.2, epsilon_high=bound)
            for bound in (0.2, 0.28)
        )
        per_token = jnp.where(on.clip, high, low)
        found = []
        for name in ("sequence_mean", "constant"):
            weight, denominator = aggregation.token_weights(
                here.astype(jnp.float32),
                prompts[rows],
                loss_aggregation=name,
                constant_length=POSITIONS,
            )
            found.append(aggregation.aggregate(per_token, weight, denominator).value())
        # By the mean length in place of the largest: a step of the same size.
        return jnp.where(on.length, found[1] * POSITIONS / LENGTHS.mean(), found[0])

    for rows in jax.random.permutation(key, ROWS).reshape(UPDATES, -1):
        weights = weights - rate * jax.grad(loss)(weights, rows)
    return weights


def _pass_rate(weights, world):
    right = features.of_tokens(
        features.log_policy(weights, world.features), world.right
    )
    counted = jnp.arange(POSITIONS) < LENGTHS[:, None]
    return jnp.exp(jnp.where(counted, right, 0.0).sum(1)).mean()
