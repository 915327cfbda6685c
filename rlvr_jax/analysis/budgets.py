"""Which way to spend samples at test time, by how hard a problem is.

A table says how often each strategy is right on each problem at one budget. Problems
are put into bins of difficulty, and the best strategy of each bin is chosen on other
problems than it is judged on.

A last pair of functions asks the same of a larger model: what it costs to train and to
sample, against a smaller one that samples more.

References:
  Snell et al. 2024. https://arxiv.org/abs/2408.03314
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rlvr_jax.core.passk import Scores


def difficulty_bins(
    scores: Float[np.ndarray, " N"], bins: int = 5
) -> tuple[Int[np.ndarray, " N"], Float[np.ndarray, " E"]]:
    """Problems by quantiles of a score: 0 is the hardest bin.

    Args:
      scores: what says how easy a problem is: pass@1 of many samples (oracle), or the
        mean score of a verifier on them (predicted, no label needed).
      bins: equal shares of the problems; 5 for quintiles. Equal scores share a bin.

    Returns:
      the bin of each problem, and the bins - 1 edges; a score on an edge is above it.

    Raises:
      ValueError: fewer problems than bins.

    Example:
      >>> found, edges = difficulty_bins(np.array([0.1, 0.2, 0.8, 0.9]), bins=2)
      >>> found.tolist(), edges.tolist()
      ([0, 0, 1, 1], [0.5])
    """
    if not 1 <= bins <= len(scores):
        raise ValueError(f"difficulty_bins: {bins} bins of {len(scores)} problems")
    edges = np.quantile(scores, np.arange(1, bins) / bins)
    return np.searchsorted(edges, scores, side="right"), edges


def best_strategies(
    accuracy: Mapping[str, Float[np.ndarray, " _"]],
    bins: Int[np.ndarray, " N"],
    *,
    folds: int = 2,
    seed: int = 0,
) -> dict[str, Any]:
    r"""theta*(q, N) = argmax_theta E[1{y = y*}] within each bin, cross-validated.

    Args:
      accuracy: strategy -> its mean correctness on each problem, all at one budget.
      bins: of `difficulty_bins`.
      folds: the strategy of a fold is chosen on the others.
      seed: of the folds.

    Returns:
      "choice" (per bin, on all problems), "accuracy" (of the chosen ones on problems
      that did not choose them), "single" (the same for one strategy for all bins).

    Raises:
      ValueError: no strategy, or rows of different lengths.
    """
    names, table = list(accuracy), np.array(list(accuracy.values()), np.float64)
    if table.ndim != 2 or table.shape[1] != len(bins):
        raise ValueError(
            "best_strategies: needs one value per problem and strategy, got "
            f"{table.shape} for {len(bins)} problems"
        )
    fold = np.random.default_rng(seed).permutation(len(bins)) % folds
    adaptive, single = np.zeros(len(bins)), np.zeros(len(bins))
    for number in range(folds):
        held, rest = fold == number, fold != number
        single[held] = table[table[:, rest].mean(axis=1).argmax(), held]
        for level in np.unique(bins[held]):
            here = held & (bins == level)
            seen = rest & (bins == level) if (rest & (bins == level)).any() else rest
            adaptive[here] = table[table[:, seen].mean(axis=1).argmax(), here]
    choice = {
        int(level): names[table[:, bins == level].mean(axis=1).argmax()]
        for level in np.unique(bins)
    }
    return {
        "choice": choice,
        "accuracy": float(adaptive.mean()),
        "single": float(single.mean()),
    }


def allocated(
    curves: Float[np.ndarray, "bins N"], shares: Float[np.ndarray, " bins"]
) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
    """Samples given to the bins where the next one helps most.

    Args:
      curves: accuracy of a bin with 1, 2, ..., N samples per problem; concave ones are
        spent on in the best order.
      shares: of the problems in each bin; they sum to 1.

    Returns:
      (mean samples per problem, accuracy) after each choice, from one sample each on.

    Example:
      >>> curves = np.array([[0.5, 0.8], [0.9, 0.9]])
      >>> cost, right = allocated(curves, np.array([0.5, 0.5]))
      >>> print(cost, right)
      [1.  1.5 2. ] [0.7  0.85 0.85]
    """
    used = np.ones(len(curves), int)
    cost, right = [1.0], [float(shares @ curves[:, 0])]
    while (used < curves.shape[1]).any():
        gains = [
            curves[b, n] - curves[b, n - 1] if n < curves.shape[1] else -np.inf
            for b, n in enumerate(used)
        ]
        best = int(np.argmax(gains))
        cost.append(cost[-1] + float(shares[best]))
        right.append(right[-1] + float(shares[best] * gains[best]))
        used[best] += 1
    return np.array(cost), np.array(right)


def budget_for(target: float, budgets: Scores, accuracy: Scores) -> float:
    """The budget at which a rising curve reaches an accuracy, between points by log.

    The ratio of two strategies' budgets at one accuracy says how many times the compute
    one of them needs.

    Args:
      target: the accuracy.
      budgets: of the points, rising and above 0.
      accuracy: at each.

    Returns:
      the budget; inf where the curve never reaches the target.

    Example:
      >>> round(budget_for(0.5, [1, 4, 16], [0.2, 0.4, 0.6]), 9)
      8.0
    """
    points = np.asarray(budgets, np.float64)
    reached = np.maximum.accumulate(np.asarray(accuracy, np.float64))
    place = int(np.searchsorted(reached, target))
    if place == len(reached):
        return float("inf")
    if place == 0:
        return float(points[0])
    low, high = reached[place - 1], reached[place]
    ends = np.log(points[place - 1 : place + 1])
    return float(np.exp(ends[0] + (target - low) / (high - low) * (ends[1] - ends[0])))


def inference_multiplier(
    size_ratio: int | float, inference_share: int | float
) -> float:
    r"""How much more a small model may sample for the FLOPs of a larger one.

        M + 3 (D_pre / D_inf) (M - 1)

    A model of n parameters takes 6 n D_pre to pretrain on D_pre tokens and 2 n D_inf to
    sample D_inf. One that is M times larger, on the same tokens, takes M times both;
    the multiplier is what the small one's D_inf can grow by at the same sum.

    Args:
      size_ratio: M, the larger model's parameters over the smaller one's.
      inference_share: R = D_inf / D_pre, tokens that are sampled over the lifetime per
        token of pretraining: below 1 for a model that improves itself, far above for
        one in production.

    Returns:
      the factor; M where inference is all (R to infinity).

    Raises:
      ValueError: `size_ratio` below 1, or `inference_share` not above 0.

    References:
      Snell et al., sec. 7. https://arxiv.org/abs/2408.03314

    Example:
      >>> [round(inference_multiplier(14, share), 2) for share in (0.16, 0.79, 22)]
      [257.75, 63.37, 15.77]
    """
    if size_ratio < 1 or not inference_share > 0:
        raise ValueError(
            "inference_multiplier: needs size_ratio >= 1 and inference_share > 0, got "
            f"{size_ratio!r} and {inference_share!r}."
        )
    return size_ratio + 3 * (size_ratio - 1) / inference_share


def ranking_flops(
    samples: int | float,
    tokens: int | float,
    *,
    generator: int | float,
    verifier: int | float = 0,
) -> float:
    r"""FLOPs of sampling completions and scoring each of them, per problem.

        2 tokens samples (generator + verifier)

    Two per parameter and token; attention, the prompt and a value head are left out.

    Args:
      samples: how many are drawn.
      tokens: mean length of one.
      generator: parameters that a token goes through when it is sampled.
      verifier: the same when it is scored; 0 for a vote or a program that checks.

    Returns:
      FLOPs.

    Example:
      >>> one = ranking_flops(1, 200, generator=175e9)
      >>> ranked = ranking_flops(1, 200, generator=6e9, verifier=6e9)
      >>> round(one / ranked, 1)
      14.6
    """
    return 2.0 * tokens * samples * (generator + verifier)
