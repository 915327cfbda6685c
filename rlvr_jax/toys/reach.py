"""Sharpening and expansion: what training makes of pass@k over many problems.

Each problem has its own chance p of a right sample; some have none. Sharpening gives
every chance the boost of choosing among a few samples; some of the rare successes are
lost on the way, and perhaps a share of the impossible problems becomes possible. The
curves are exact in p: no samples, no noise.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from rlvr_jax.core.passk import expected_pass_at_k

RARE = 0.05
"""Problems solved less often than this can be lost."""


@dataclasses.dataclass(frozen=True)
class World:
    """The problems before training."""

    problems: int = 500
    impossible: float = 0.25
    """Share of the problems with p = 0."""
    logit_mean: float = -2.0
    logit_std: float = 2.5
    """Of log(p / (1 - p)) over the other problems: from rare to certain."""


@dataclasses.dataclass(frozen=True)
class Training:
    """What it does to the chances."""

    sharpening: float = 4.0
    """p becomes 1 - (1 - p)^sharpening: pass@1 is then the old pass@4."""
    lost: float = 0.5
    """Share of the rare problems (p < 0.05) that end at 0."""
    opened: float = 0.0
    """Share of the impossible problems that become possible (ProRL's claim)."""
    opened_rate: float = 0.2
    """Their chance afterwards."""


class Rates(NamedTuple):
    """Chances of a right sample, [problems] each."""

    before: Float[Array, " N"]
    after: Float[Array, " N"]
    lost: Bool[Array, " N"]
    opened: Bool[Array, " N"]


@functools.partial(jax.jit, static_argnames=("world", "training"))
def draw(keys: Key[Array, " seeds"], world: World, training: Training) -> Rates:
    """One set of problems per key (consumed), before and after; arrays [seeds, N]."""

    def one(key):
        chance, which = jax.random.split(key)
        shape = (world.problems,)
        logits = world.logit_mean + world.logit_std * jax.random.normal(chance, shape)
        possible = jnp.arange(world.problems) >= world.impossible * world.problems
        before = jnp.where(possible, jax.nn.sigmoid(logits), 0.0)
        coin = jax.random.uniform(which, shape)
        lost = possible & (before < RARE) & (coin < training.lost)
        opened = ~possible & (coin < training.opened)
        # 1 - (1 - p)^m without the cancellation at small p.
        sharper = -jnp.expm1(training.sharpening * jnp.log1p(-before))
        after = jnp.where(lost, 0.0, sharper)
        after = jnp.where(opened, training.opened_rate, after)
        return Rates(before, after, lost, opened)

    return jax.vmap(one)(keys)


def curve(rates: Float[np.ndarray, " N"], ks: tuple[int, ...]) -> np.ndarray:
    """Mean pass@k over problems, at each of `ks`, from the chances themselves."""
    return np.array([expected_pass_at_k(rates, k).mean() for k in ks])
