"""Two models on the same problems: bands over k, what crosses, what was lost or won."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

_DRAWS_AT_ONCE = 128
_NO_SPREAD = 1e-12


class Band(NamedTuple):
    """A mean difference for each k, and a band that holds all of them at once."""

    mean: Float[np.ndarray, " K"]
    error: Float[np.ndarray, " K"]
    """Standard error over problems."""
    low: Float[np.ndarray, " K"]
    high: Float[np.ndarray, " K"]
    critical: float
    """How many standard errors the band is wide, each way."""


class Crossing(NamedTuple):
    """What a band establishes; the ks are those of the grid."""

    gains: list[int]
    """k at which the whole band is above 0."""
    losses: list[int]
    """k at which it is below 0."""
    crosses: bool
    """A gain at some k and a loss at a larger one."""
    first_loss: tuple[int, int | None] | None
    """[one past the gains that begin at k = 1, first loss]: the first k at which the
    mean is below 0 lies in it. None where the grid leaves out whole numbers."""


class SupportChange(NamedTuple):
    """Problems by who solves them (Invisible Leash)."""

    preserved: int
    gained: int
    lost: int
    neither: int

    @property
    def retention(self) -> float:
        """SRR: of what the base solves, the share that is still solved."""
        return _share(self.preserved, self.preserved + self.lost)

    @property
    def discovery(self) -> float:
        """NDR: of what is solved now, the share that the base does not solve."""
        return _share(self.gained, self.preserved + self.gained)

    @property
    def balance(self) -> float:
        """SDS: the harmonic mean of retention and discovery."""
        return _share(
            2 * self.retention * self.discovery, self.retention + self.discovery
        )

    @property
    def net(self) -> float:
        """NSCR: (gained - lost) / all that either solves."""
        return _share(self.gained - self.lost, self.preserved + self.gained + self.lost)

    @property
    def is_subset(self) -> bool:
        """All that is solved now was solved by the base."""
        return self.gained == 0


def paired_band(
    differences: Float[np.ndarray, "N K"],
    *,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> Band:
    r"""A band over all k at once for the mean of paired differences.

    Problems are the unit. With standard errors s_k over them (ddof 1) and normal
    multipliers e, one per problem:

        M = max_k |sum_i e_i (d_ik - mean_k)| / (N s_k)
        band_k = mean_k -+ critical s_k,    critical = the `level` quantile of M

    so that the whole curve lies inside with probability `level`; intervals of their own
    for each k would not allow to look for the k that shows something. A column without
    spread cannot say how uncertain it is and gets [-1, 1].

    Args:
      differences: one row per problem, one column per k; as
        pass_curve(n, other) - pass_curve(n, base). In -1..1.
      level: how often all columns are inside.
      resamples: draws of the multipliers.
      seed: of the draws.

    Returns:
      The `Band`.

    Raises:
      ValueError: fewer than two problems, no column, or values that are not finite.

    References:
      Yang, Zhang, Chen 2026, RLVR is a Kernel, Not a Function.
      https://arxiv.org/abs/2609.22547

    Example:
      >>> band = paired_band(np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.1]]))
      >>> print(band.mean.round(3), round(band.critical, 2))
      [0.2   0.033] 1.7
    """
    if differences.ndim != 2 or len(differences) < 2 or differences.shape[1] == 0:
        raise ValueError(
            "paired_band: needs differences of at least 2 problems at 1 k or more, got "
            f"shape {differences.shape}. Evaluate more problems."
        )
    if not np.isfinite(differences).all():
        raise ValueError("paired_band: differences must be finite.")
    count = len(differences)
    mean = differences.mean(axis=0)
    centred = differences - mean
    error = differences.std(axis=0, ddof=1) / np.sqrt(count)
    rng = np.random.default_rng(seed)
    largest = []
    for start in range(0, resamples, _DRAWS_AT_ONCE):
        rows = min(_DRAWS_AT_ONCE, resamples - start)
        sums = rng.standard_normal((rows, count)) @ centred
        largest.append(
            np.abs(sums / (count * np.maximum(error, _NO_SPREAD))).max(axis=1)
        )
    critical = float(np.quantile(np.concatenate(largest), level))
    low, high = mean - critical * error, mean + critical * error
    silent = error < _NO_SPREAD
    return Band(
        mean,
        error,
        np.where(silent, -1.0, low),
        np.where(silent, 1.0, high),
        critical,
    )


def crossing(
    ks: Sequence[int] | np.ndarray,
    low: Float[np.ndarray, " K"],
    high: Float[np.ndarray, " K"],
) -> Crossing:
    """Where a band is above 0, where below, and where the first loss can be.

    Args:
      ks: rising.
      low: lower ends of a band that holds at all ks together.
      high: upper ends.

    Returns:
      The `Crossing`. All that is neither in `gains` nor in `losses` is inconclusive:
      no difference was shown, which does not show that there is none.

    Raises:
      ValueError: the lengths differ, ks do not rise, or an end is above the other.

    Example:
      >>> crossing([1, 2, 3], np.array([0.1, -0.1, -0.3]), np.array([0.3, 0.1, -0.1]))
      Crossing(gains=[1], losses=[3], crosses=True, first_loss=(2, 3))
    """
    grid = np.asarray(ks, np.int64)
    if not len(grid) or low.shape != grid.shape or high.shape != grid.shape:
        raise ValueError(
            f"crossing: needs one low and one high per k, got {low.shape} and "
            f"{high.shape} for {len(grid)} ks."
        )
    if np.any(np.diff(grid) <= 0) or np.any(low > high):
        raise ValueError("crossing: ks must rise, and low must not exceed high.")
    gains, losses = grid[low > 0], grid[high < 0]
    first = None
    if np.array_equal(grid, np.arange(1, len(grid) + 1)):
        prefix = len(grid) if (low > 0).all() else int(np.argmin(low > 0))
        first = (prefix + 1, int(losses[0]) if len(losses) else None)
    return Crossing(
        gains.tolist(),
        losses.tolist(),
        bool(len(gains) and len(losses) and gains[0] < losses[-1]),
        first,
    )


def label(low: float, high: float) -> str:
    """ "gain", "loss" or "inconclusive", of one interval for a difference.

    Example:
      >>> label(0.01, 0.2), label(-0.2, -0.01), label(-0.1, 0.1)
      ('gain', 'loss', 'inconclusive')
    """
    if low > 0:
        return "gain"
    return "loss" if high < 0 else "inconclusive"


LEVELS = ("unsolved", "rare", "moderate", "solved")


def solve_levels(
    rates: Float[np.ndarray, " N"], rare: float = 0.25, solved: float = 0.75
) -> Int[np.ndarray, " N"]:
    """Places in `LEVELS`: none correct, below `rare`, below `solved`, the rest."""
    return np.where(rates <= 0, 0, 1 + (rates >= rare) + (rates >= solved)).astype(int)


def transition_matrix(
    before: Float[np.ndarray, " N"],
    after: Float[np.ndarray, " N"],
    *,
    rare: float = 0.25,
    solved: float = 0.75,
) -> Int[np.ndarray, "4 4"]:
    """How many problems went from which of `LEVELS` (rows) to which (columns).

    Two averages may agree while problems are traded: the first column below its first
    row is what was lost altogether, the first row after its first column what was won.

    Args:
      before: success rates c/n of the base.
      after: of the other model, problem by problem; compare at the same compute.
      rare: rates above 0 and below this are rare.
      solved: from this rate on a problem counts as solved.

    Returns:
      Counts; row sums are the base's levels, column sums the other's.

    Example:
      >>> print(transition_matrix(np.array([0, 0.1, 1.0]), np.array([0.5, 0, 1.0])))
      [[0 0 1 0]
       [1 0 0 0]
       [0 0 0 0]
       [0 0 0 1]]
    """
    found = np.zeros((4, 4), int)
    pair = solve_levels(before, rare, solved), solve_levels(after, rare, solved)
    np.add.at(found, pair, 1)
    return found


def support_change(
    base: Float[np.ndarray, " N"], other: Float[np.ndarray, " N"], above: float = 0.0
) -> SupportChange:
    """Which problems both solve, only one, or neither; solved is a rate above `above`.

    Example:
      >>> support_change(np.array([0.5, 0, 0.1, 0]), np.array([0.9, 0.2, 0, 0]))
      SupportChange(preserved=1, gained=1, lost=1, neither=1)
    """
    was, now = base > above, other > above
    return SupportChange(
        int((was & now).sum()),
        int((~was & now).sum()),
        int((was & ~now).sum()),
        int((~was & ~now).sum()),
    )


def sharpening_tax(
    base: Float[np.ndarray, " K"], post: Float[np.ndarray, " K"]
) -> tuple[float, float]:
    """What training took from sampling more: (Tax_A, Tax_S), base less trained.

        A(K) = sum_{k<K} (pass@K - pass@k),    S(K) = A(K) / ((K - 1) (1 - pass@1))

    Args:
      base: mean pass@k of the base for k = 1..K.
      post: of the trained model.

    Returns:
      the two differences; above 0 the base gains more from sampling.

    References:
      Oh et al. 2026. https://arxiv.org/abs/2610.01509
    """
    taxes = np.subtract(sampling_gain(base), sampling_gain(post))
    return float(taxes[0]), float(taxes[1])


def sampling_gain(curve: Float[np.ndarray, " K"]) -> tuple[float, float]:
    """A(K) and S(K) of one pass@k curve, as in `sharpening_tax`.

    Example:
      >>> gain = sampling_gain(1 - 0.5 ** np.arange(1, 5))
      >>> print(round(gain[0], 4), round(gain[1], 4))
      0.6875 0.4583
    """
    area = float((curve[-1] - curve).sum())
    room = (len(curve) - 1) * (1 - float(curve[0]))
    return area, area / room if room > 0 else 0.0


def matched_budgets(
    base_tokens: float | int,
    other_tokens: float | int,
    max_base: int,
    max_other: int,
    *,
    tolerance: float = 0.01,
) -> list[tuple[int, int]]:
    """Pairs (k of the base, k of the other model) that cost the same tokens.

    A model that writes three times as long may only be compared with three times as
    many samples of the base.

    Args:
      base_tokens: mean tokens of a completion of the base.
      other_tokens: of the other model.
      max_base: completions per problem that there are.
      max_other: of the other model.
      tolerance: largest relative difference of the two costs.

    Returns:
      pairs in rising order, the best base k for each other k; may be empty.

    Raises:
      ValueError: a length that is not above 0.

    Example:
      >>> matched_budgets(100, 300, 16, 4)
      [(3, 1), (6, 2), (9, 3), (12, 4)]
    """
    if not (base_tokens > 0 and other_tokens > 0):
        raise ValueError(
            "matched_budgets: needs lengths above 0, got "
            f"{base_tokens} and {other_tokens}."
        )
    pairs = []
    for k in range(1, max_other + 1):
        wanted = k * other_tokens
        nearest = round(wanted / base_tokens)
        if not 1 <= nearest <= max_base:
            continue
        if abs(nearest * base_tokens - wanted) <= tolerance * wanted:
            pairs.append((nearest, k))
    return pairs


def _share(part: float | int, whole: float | int) -> float:
    return part / whole if whole else 0.0
