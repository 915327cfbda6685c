"""Samples of an old policy, with and without SAO's mask, with and without a critic.

The policy is that of `features`. A step samples from weights of `lag` steps ago and
makes two updates. Without the mask the ratio is to the trainer's own old policy, as in
GRPO and VAPO: a stale sample with a negative advantage is pushed down however unlikely
it has become. The mask (DIS) drops a token once the policy has left its sampler.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.losses import clipped_loss
from rlvr_jax.core.weighted_losses import dis_loss
from rlvr_jax.toys import features
from rlvr_jax.toys.features import POSITIONS, PROMPTS

MAX_LAG = 16
ROWS, GENERATIONS, UPDATES, STEPS = 32, 8, 2, 120
RATE, CRITIC_RATE = 30.0, 0.2
"""Of gradient descent; and how far the critic moves to a reward."""


class Arm(NamedTuple):
    """One way to train; scalars, or one per arm."""

    critic: Bool[Array, "..."]
    """A single completion per sampled prompt and a learned value, else groups of 8."""
    mask: Bool[Array, "..."]
    """DIS, (0.7, 6) around the sampler's probability; else the clip of DAPO."""
    lag: Int[Array, "..."]
    """Steps that the sampler is behind, at most MAX_LAG."""


@jax.jit
def train(keys: Key[Array, " seeds"], arms: Arm) -> Float[Array, "arms seeds K"]:
    """Accuracy after every step; a seed draws the same world in every arm.

    Args:
      keys: consumed.
      arms: arrays of one length.
    """
    return jax.lax.map(lambda arm: jax.vmap(lambda key: _run(key, arm))(keys), arms)


def _run(key, arm: Arm):
    draw, run = jax.random.split(key)
    world = features.world(draw)

    def step(carry, key):
        past, values = carry
        choose, shuffle = jax.random.split(key)
        order = jax.random.permutation(choose, PROMPTS)
        prompts = jnp.where(
            arm.critic,
            jnp.tile(order, ROWS // PROMPTS),
            jnp.repeat(order[: ROWS // GENERATIONS], GENERATIONS),
        )
        sampler = features.log_policy(past[MAX_LAG - arm.lag], world.features)[prompts]
        tokens = jax.random.categorical(jax.random.fold_in(choose, 1), sampler)
        # One mistake is forgiven.
        right = (tokens == world.right[prompts]).sum(1) >= POSITIONS - 1
        rewards = right.astype(jnp.float32)
        advantages = jnp.where(
            arm.critic, rewards - values[prompts], group_advantages(rewards, prompts)
        )
        # Centred rewards are about half as large as those divided by their std.
        rate = RATE * jnp.where(arm.critic, 2, 1)
        values = values.at[prompts].add(CRITIC_RATE * (rewards - values[prompts]))
        batch = (prompts, tokens, advantages, features.of_tokens(sampler, tokens))
        weights = _updates(past[-1], batch, shuffle, rate, world, arm)
        past = jnp.concatenate([past[1:], weights[None]])
        return (past, values), features.accuracy(weights, world)

    past = jnp.repeat(world.start[None], MAX_LAG + 1, axis=0)
    start = (past, jnp.full(PROMPTS, 0.5))
    return jax.lax.scan(step, start, jax.random.split(run, STEPS))[1]


def _updates(weights, batch, key, rate, world, arm: Arm):
    """Gradient descent on the parts of a batch."""
    prompts, tokens, advantages, sampled = batch

    def logprobs(weights, rows):
        policy = features.log_policy(weights, world.features)[prompts[rows]]
        return features.of_tokens(policy, tokens[rows])

    old = logprobs(weights, jnp.arange(ROWS))

    def loss(weights, rows):
        policy, paid = logprobs(weights, rows), advantages[rows]
        clipped = clipped_loss(
            policy - old[rows], paid, epsilon_low=0.2, epsilon_high=0.28
        )
        masked = dis_loss(
            policy, policy - sampled[rows], paid, epsilon_low=0.3, epsilon_high=5.0
        )
        return jnp.where(arm.mask, masked, clipped).mean()

    for rows in jax.random.permutation(key, ROWS).reshape(UPDATES, -1):
        weights = weights - rate * jax.grad(loss)(weights, rows)
    return weights


def two_by_two(lag: int) -> Arm:
    """(critic, mask) off/off, off/on, on/off, on/on, all at one lag."""
    switches = [(c, m) for c in (False, True) for m in (False, True)]
    critic, mask = (jnp.array(column) for column in zip(*switches, strict=True))
    return Arm(critic, mask, jnp.full(len(switches), lag))
