"""Do two figures go together, in rank?"""

import numpy as np


def rank_correlation(left: np.ndarray, right: np.ndarray) -> float | None:
    """Spearman's coefficient, ties at their mean rank; None where one is constant.

    Example:
      >>> rank_correlation(np.array([0.1, 0.2, 0.9]), np.array([3.0, 2.0, 2.5]))
      -0.5
    """
    ranks = [_ranks(values) - (len(values) - 1) / 2 for values in (left, right)]
    norm = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / norm if norm > 0 else None


def _ranks(values: np.ndarray) -> np.ndarray:
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    for value in np.unique(values):
        ranks[values == value] = ranks[values == value].mean()
    return ranks
