"""The temperature at which a policy has a given entropy. NumPy, float64."""

import numpy as np
from jaxtyping import Float


def mean_entropy(logits: Float[np.ndarray, "N V"], temperature: float) -> float:
    """Mean entropy of softmax(logits / temperature) over rows, in nats.

    Example:
      >>> round(mean_entropy(np.zeros((2, 4)), 1.0), 4)
      1.3863
    """
    scaled = logits / temperature
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    weights = np.exp(scaled)
    total = weights.sum(axis=1, keepdims=True)
    # -sum p log p = log Z - sum p z; a logit of -inf has p = 0.
    inner = np.where(weights > 0, weights * np.where(weights > 0, scaled, 0.0), 0.0)
    return float((np.log(total[:, 0]) - inner.sum(axis=1) / total[:, 0]).mean())


def temperature_for_entropy(
    logits: Float[np.ndarray, "N V"],
    target: float,
    *,
    lowest: float = 1e-3,
    highest: float = 1e3,
) -> float:
    """Solves mean entropy = target for the temperature, by bisection.

    Entropy rises with the temperature, so there is one solution. Evaluating a trained
    policy at the temperature that gives it the base's entropy separates what training
    took from the spread of the policy from what it took from its support.

    Args:
      logits: of the policy, one row per position.
      target: entropy in nats.
      lowest: bounds of the search.
      highest: as `lowest`.

    Returns:
      the temperature.

    Raises:
      ValueError: the target lies outside of what the bounds give.

    References:
      Yue et al. 2025. https://arxiv.org/abs/2504.13837

    Example:
      >>> logits = np.log(np.array([[0.7, 0.2, 0.1]]))
      >>> target = mean_entropy(logits, 1.0)
      >>> print(round(temperature_for_entropy(3 * logits, target), 6))
      3.0
    """
    ends = mean_entropy(logits, lowest), mean_entropy(logits, highest)
    if not ends[0] <= target <= ends[1]:
        raise ValueError(
            f"temperature_for_entropy: target={target} nats is outside of "
            f"{ends[0]:.4g} to {ends[1]:.4g}, the entropies at temperature {lowest} "
            f"and {highest}."
        )
    low, high = np.log(lowest), np.log(highest)
    for _ in range(100):
        middle = (low + high) / 2
        if mean_entropy(logits, float(np.exp(middle))) < target:
            low = middle
        else:
            high = middle
    return float(np.exp((low + high) / 2))


def recovered_share(base: float, trained: float, trained_at_matched: float) -> float:
    """Of the base's lead at large k, the share that a matched entropy gives back.

    Args:
      base: pass@k of the base.
      trained: of the trained policy at its own temperature.
      trained_at_matched: at the temperature of `temperature_for_entropy`.

    Returns:
      0: nothing comes back, 1: all; NaN where the base does not lead.

    Example:
      >>> round(recovered_share(0.8, 0.6, 0.65), 2)
      0.25
    """
    lead = base - trained
    return (trained_at_matched - trained) / lead if lead > 0 else float("nan")
