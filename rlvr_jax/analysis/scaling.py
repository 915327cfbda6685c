"""Where a run is heading: ScaleRL's curve of reward over compute, fitted."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_POINTS, _ROUNDS = 33, 12
"""Grid points per parameter and round; each round zooms in by four."""


class SigmoidFit(NamedTuple):
    """R(C) = start + (asymptote - start) / (1 + (midpoint / C)^exponent)."""

    start: float
    """Reward before training, R_0; given."""
    asymptote: float
    """A: the reward that no amount of compute exceeds."""
    midpoint: float
    """C_mid: compute at which half of the gain is made."""
    exponent: float
    """B: how fast; larger is more efficient."""
    rmse: float
    """Of the points that were fitted, in the unit of the reward."""

    def at(self, compute: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """The curve at some compute, also beyond the points that were fitted."""
        share = 1 / (1 + (self.midpoint / compute) ** self.exponent)
        return self.start + (self.asymptote - self.start) * share


def fit_sigmoid(
    compute: Float[np.ndarray, " N"],
    rewards: Float[np.ndarray, " N"],
    *,
    start: float,
    exponents: tuple[float, float] = (0.3, 6.0),
) -> SigmoidFit:
    r"""Least squares for the asymptote, the midpoint and the exponent.

        R(C) = R_0 + (A - R_0) / (1 + (C_mid / C)^B)

    For given C_mid and B the best A is a division; those two are searched on a grid
    that is refined around its best point. ScaleRL leaves out the first 1,500 GPU-hours
    and quotes an error of .02 on A; two recipes are compared by A first, then by B.

    Args:
      compute: FLOPs, GPU-hours, steps: any unit above 0.
      rewards: mean reward or pass rate there.
      start: R_0, the reward before training.
      exponents: range that B is searched in.

    Returns:
      the fit. C_mid is searched from a tenth of the least compute to ten times the
      most: a value at either end says that the points do not show the bend.

    Raises:
      ValueError: fewer than four points.

    References:
      ScaleRL, eq. 1. https://arxiv.org/abs/2510.13786
    """
    if len(compute) < 4:
        raise ValueError(
            f"fit_sigmoid: three parameters need at least 4 points, got {len(compute)}."
        )
    bounds = np.log(compute.min() / 10), np.log(compute.max() * 10)
    log_mid, low_mid, high_mid = 0.0, *bounds
    exponent, (low_b, high_b) = 0.0, exponents
    gain = rewards - start
    asymptote = error = 0.0
    for _ in range(_ROUNDS):
        mids = np.linspace(low_mid, high_mid, _POINTS)[:, None, None]
        powers = np.linspace(low_b, high_b, _POINTS)[None, :, None]
        share = 1 / (1 + np.exp(powers * (mids - np.log(compute))))
        height = (share * gain).sum(-1) / (share**2).sum(-1)
        errors = ((height[..., None] * share - gain) ** 2).mean(-1)
        i, j = np.unravel_index(errors.argmin(), errors.shape)
        log_mid, exponent = mids[i, 0, 0], powers[0, j, 0]
        asymptote, error = start + height[i, j], errors[i, j]
        reach_mid, reach_b = (high_mid - low_mid) / 8, (high_b - low_b) / 8
        low_mid = max(log_mid - reach_mid, bounds[0])
        high_mid = min(log_mid + reach_mid, bounds[1])
        low_b = max(exponent - reach_b, exponents[0])
        high_b = min(exponent + reach_b, exponents[1])
    return SigmoidFit(
        start,
        float(asymptote),
        float(np.exp(log_mid)),
        float(exponent),
        float(np.sqrt(error)),
    )
