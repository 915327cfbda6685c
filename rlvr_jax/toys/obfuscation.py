"""A penalty on what a monitor reads in the chain of thought: what goes, what hides.

Three ways to answer: honestly, hacking in the open (the chain says so), and hacking
with a chain that does not say so. The hack is paid more. A monitor reads the chain and
its suspicion is taken off the reward:

    reward - penalty * P(monitor flags | way)

The open hack goes first, and with it the hack rate; what is left of the hack is what
the monitor does not see, and that is paid in full.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

WAYS = ("honest", "open hack", "hidden hack")


class Obfuscation(NamedTuple):
    """Curves over training, [steps + 1]."""

    policy: Float[np.ndarray, "N 3"]
    """Chances of `WAYS`."""
    hack_rate: Float[np.ndarray, " N"]
    recall: Float[np.ndarray, " N"]
    """Of the hacks, the share that the monitor flags."""


def train_against_a_monitor(
    penalty: float,
    *,
    steps: int = 400,
    step: float = 0.1,
    start: tuple[float, float, float] = (0.6, 0.399, 0.001),
    rewards: tuple[float, float, float] = (0.6, 1.0, 1.0),
    flagged: tuple[float, float, float] = (0.02, 0.95, 0.05),
) -> Obfuscation:
    """Exact natural policy gradient: log-odds move by the rewards' differences.

    Args:
      penalty: taken off per flagged chain; 0 leaves chains alone.
      steps: of training.
      step: size of one.
      start: chances of `WAYS` at first.
      rewards: mean reward of each way before the penalty.
      flagged: how often the monitor flags each.

    Returns:
      the curves.

    References:
      Baker et al. 2025. https://arxiv.org/abs/2503.11926
    """
    paid = np.array(rewards) - penalty * np.array(flagged)
    logits = np.log(np.array(start)) + step * np.arange(steps + 1)[:, None] * paid
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    policy = weights / weights.sum(axis=1, keepdims=True)
    hacks = policy[:, 1:]
    rate = hacks.sum(axis=1)
    return Obfuscation(policy, rate, hacks @ np.array(flagged[1:]) / rate)
