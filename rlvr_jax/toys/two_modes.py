"""A rare behaviour that is right slightly more often: selection, not emergence.

Each answer shows the behaviour with chance x, and is right with another chance with it
than without. Natural policy gradient moves the log-odds of x by the difference alone,

    d log(x / (1 - x)) = step (right_with - right_without)

so x follows a logistic curve from wherever the base model starts, and from 0 nowhere.
"""

import numpy as np
from jaxtyping import Float


def logistic_shares(
    start: float, right_with: float, right_without: float, step: float, steps: int
) -> Float[np.ndarray, " N"]:
    """The share x after 0, 1, ..., `steps` steps of the exact gradient.

    Args:
      start: x of the base model; 0 and 1 stay.
      right_with: chance to be right with the behaviour.
      right_without: without it.
      step: size of a step.
      steps: how many.

    Returns:
      x, [steps + 1].

    Example:
      >>> print(logistic_shares(0.01, 0.6, 0.4, 1.0, 50)[[0, 25, 50]].round(3))
      [0.01  0.6   0.996]
    """
    if start in (0.0, 1.0):
        return np.full(steps + 1, start)
    odds = np.log(start / (1 - start))
    odds = odds + step * (right_with - right_without) * np.arange(steps + 1)
    return 1 / (1 + np.exp(-odds))


def sampled_shares(
    start: float,
    right_with: float,
    right_without: float,
    step: float,
    steps: int,
    *,
    samples: int,
    seeds: int,
) -> Float[np.ndarray, "S N"]:
    """The same from sampled answers, one path per seed.

    Each step draws `samples` answers and their 0/1 rewards r and follows the estimate

        mean_i (r_i - mean r) (b_i - x) / (x (1 - x)),   b_i: shows the behaviour

    whose mean is right_with - right_without, but for a factor 1 - 1/samples.

    Args:
      start: as in `logistic_shares`, as are the next four.
      right_with: see there.
      right_without: see there.
      step: see there.
      steps: see there.
      samples: answers per step.
      seeds: paths.

    Returns:
      x, [seeds, steps + 1].
    """
    rng = np.random.default_rng(0)
    shares = np.full((seeds, steps + 1), start, np.float64)
    for now in range(steps):
        x = shares[:, now]
        shown = rng.random((seeds, samples)) < x[:, None]
        chance = np.where(shown, right_with, right_without)
        rewards = (rng.random((seeds, samples)) < chance).astype(np.float64)
        centred = rewards - rewards.mean(axis=1, keepdims=True)
        spread = x * (1 - x)
        moves = spread > 0
        safe = np.where(moves, spread, 1.0)
        estimate = (centred * (shown - x[:, None])).mean(axis=1) / safe
        odds = np.log(np.where(moves, x, 0.5) / np.where(moves, 1 - x, 0.5))
        stepped = 1 / (1 + np.exp(-(odds + step * estimate)))
        shares[:, now + 1] = np.where(moves, stepped, x)
    return shares
