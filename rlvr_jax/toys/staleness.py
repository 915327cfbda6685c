"""How hard each method pulls a token, as the policy drifts from the one that sampled.

The pull is the factor on A grad log pi: d loss / d log pi over -A. PPO's is the ratio
until it meets a bound, then 0; CISPO's the ratio up to a cap; GSPO's one ratio for the
whole response; SAPO's fades smoothly.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.core import losses, ratios, weighted_losses

TOKENS = (
    "The", " answer", " is", " 12", ".", " Wait", ",", " check", ":", " 3", " *", " 5",
    " =", " 15",
)  # fmt: skip
"""A response with one rare token: a change of mind."""
OLD_PROBS = (
    0.7, 0.8, 0.95, 0.6, 0.9, 0.01, 0.9, 0.3, 0.8, 0.7, 0.8, 0.7, 0.95, 0.6,
)  # fmt: skip
"""Probability of each under the policy that sampled it."""

Loss = Callable[
    [Float[Array, "1 T"], Float[Array, "1 T"], Float[Array, "1 T"]], Float[Array, "1 _"]
]


def _gspo(policy, log_ratio, advantages):
    mask = jnp.ones(policy.shape)
    return losses.clipped_loss(
        ratios.sequence_log_ratio(log_ratio, mask),
        advantages[:, :1],
        epsilon_low=0.03,
        epsilon_high=0.04,
    )


def _clipped(epsilon_low: float, epsilon_high: float) -> Loss:
    return lambda policy, log_ratio, advantages: losses.clipped_loss(
        log_ratio, advantages, epsilon_low=epsilon_low, epsilon_high=epsilon_high
    )


METHODS: dict[str, Loss] = {
    "PPO, GRPO (0.2)": _clipped(0.2, 0.2),
    "DAPO (0.2, 0.28)": _clipped(0.2, 0.28),
    "CISPO (cap 1.28)": lambda policy, log_ratio, advantages: (
        weighted_losses.cispo_loss(policy, log_ratio, advantages, epsilon_high=0.28)
    ),
    # Bounds a hundred times the paper's (3e-4, 4e-4): the response has 14 tokens only.
    "GSPO (0.03, 0.04)": _gspo,
}
"""Name -> loss per token of (log pi, log ratio, advantages)."""


def response(staleness: float | Float[Array, ""]) -> Float[Array, " T"]:
    """Log ratios of the 14 tokens: drift in proportion to how unlikely a token was.

        log ratio = 0.3 staleness (1 - p_old)^2

    The rare token moves most, likely ones have nowhere to go (a ratio is at most
    1 / p_old).
    """
    return 0.3 * staleness * (1 - jnp.array(OLD_PROBS)) ** 2


def pull(
    method: str, log_ratio: Float[Array, " T"], advantage: float = 1.0
) -> Float[Array, " T"]:
    """Weight of A grad log pi at each token of one response.

    Args:
      method: of `METHODS`.
      log_ratio: log(pi / pi_old) of each token.
      advantage: of the response, not 0.

    Returns:
      weights; for GSPO times the number of tokens, so that 1 means on policy for all.
    """
    drift = log_ratio[None]
    advantages = jnp.full(drift.shape, advantage)

    def loss(change):
        # The policy's log-probs move the ratio; their level is of no account.
        return METHODS[method](-1.0 + change, drift + change, advantages).sum()

    weights = -jax.grad(loss)(jnp.zeros_like(drift))[0] / advantage
    return weights * (drift.shape[1] if method.startswith("GSPO") else 1)
