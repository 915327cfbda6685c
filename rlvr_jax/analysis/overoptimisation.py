"""A proxy goes on rising, and what it stands for turns down: where, and by how much."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Turnover(NamedTuple):
    """Where the gold score peaks while the proxy is optimised."""

    place: int
    """Of the peak, among the points."""
    at: float
    """How much optimisation that is: steps, nats of KL, or n of best-of-n."""
    gold: float
    fall: float
    """From the peak to the last point; 0 where the peak is the last point."""
    proxy_rise: float
    """Of the proxy over the same stretch: gold falls and proxy rises is Goodhart."""

    @property
    def is_hacked(self) -> bool:
        """Gold falls while the proxy does not."""
        return self.fall > 0 and self.proxy_rise >= 0


def turnover(
    amount: Float[np.ndarray, " N"],
    gold: Float[np.ndarray, " N"],
    proxy: Float[np.ndarray, " N"],
    *,
    window: int = 1,
    tolerance: float = 0.0,
) -> Turnover:
    """Finds the peak of the gold curve.

    Args:
      amount: of optimisation, rising.
      gold: what is wanted, as by a stricter verifier.
      proxy: what is paid.
      window: points of a running mean, an odd number, against noise.
      tolerance: a fall no larger than this is none: the peak is then the last point.

    Returns:
      the `Turnover`, of the smoothed curves.

    Raises:
      ValueError: an even window, or one longer than the curve.

    References:
      Gao et al. 2023. https://arxiv.org/abs/2210.10760
    """
    if window % 2 == 0 or window > len(gold):
        raise ValueError(
            f"turnover: window must be odd and at most {len(gold)}, got {window}."
        )
    smooth_gold, smooth_proxy = _running(gold, window), _running(proxy, window)
    peak, last = int(smooth_gold.argmax()), len(gold) - 1
    if smooth_gold[peak] - smooth_gold[-1] <= tolerance:
        peak = last
    return Turnover(
        peak,
        float(amount[peak]),
        float(smooth_gold[peak]),
        float(smooth_gold[peak] - smooth_gold[-1]),
        float(smooth_proxy[-1] - smooth_proxy[peak]),
    )


def hacking_gap(
    gold: Float[np.ndarray, " N"], proxy: Float[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """How much more the proxy has gained than the gold score, since the first point.

    Example:
      >>> gold, proxy = np.array([0.2, 0.4, 0.3]), np.array([0.3, 0.5, 0.7])
      >>> print(hacking_gap(gold, proxy).round(1))
      [0.  0.  0.3]
    """
    return (proxy - proxy[0]) - (gold - gold[0])


def _running(values: Float[np.ndarray, " N"], window: int) -> Float[np.ndarray, " N"]:
    """A centred mean; at the ends over the points that there are."""
    ones = np.convolve(np.ones(len(values)), np.ones(window), "same")
    return np.convolve(values, np.ones(window), "same") / ones
