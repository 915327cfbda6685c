"""What thinking longer buys, and whether its length is under control: s1's measures.

References:
  s1: Simple test-time scaling, sec. 3.2. https://arxiv.org/abs/2501.19393
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from rlvr_jax.analysis.counts import ProblemCounts
from rlvr_jax.analysis.trends import rise


class Forced(NamedTuple):
    """One evaluation of a model whose thinking was held to some length."""

    tokens: float
    """Mean thinking tokens."""
    accuracy: float
    """pass@1."""


def control(tokens: Int[np.ndarray, " N"], *, least: int, most: int) -> float:
    """Share of runs whose thinking tokens lie within [least, most].

    Args:
      tokens: thinking tokens of each run.
      least: a_min.
      most: a_max.

    Raises:
      ValueError: no run, or an empty interval.

    Example:
      >>> control(np.array([90, 100, 150, 400]), least=100, most=200)
      0.5
    """
    if len(tokens) == 0 or least > most:
        raise ValueError(
            f"control: needs runs and least <= most, got {len(tokens)} runs, "
            f"least={least} and most={most}"
        )
    return float(((tokens >= least) & (tokens <= most)).mean())


def scaling(points: Sequence[Forced]) -> float:
    r"""Mean slope between all pairs of evaluations, in accuracy per thinking token.

        Scaling = 1 / C(N, 2) sum_{a < b} (f(b) - f(a)) / (b - a)

    Args:
      points: accuracy f at tokens a; of equal tokens none.

    Raises:
      ValueError: fewer than two, or two of the same length.

    Example:
      >>> points = [Forced(100, 0.2), Forced(200, 0.4), Forced(400, 0.5)]
      >>> round(scaling(points) * 1000, 3)  # (2 + 0.5 + 1) / 3 per 1000 tokens
      1.167
    """
    ordered = sorted(points)
    lengths = np.array([point.tokens for point in ordered])
    if len(ordered) < 2 or (np.diff(lengths) == 0).any():
        raise ValueError(
            "scaling: needs two evaluations or more, each of another thinking length, "
            f"got lengths {lengths.tolist()}"
        )
    accuracies = np.array([point.accuracy for point in ordered])
    first, second = np.triu_indices(len(ordered), 1)
    slopes = (accuracies[second] - accuracies[first]) / (
        lengths[second] - lengths[first]
    )
    return float(slopes.mean())


def performance(points: Sequence[Forced]) -> float:
    """The best accuracy at any length.

    Example:
      >>> performance([Forced(100, 0.2), Forced(400, 0.5), Forced(800, 0.4)])
      0.5
    """
    return max(point.accuracy for point in points)


def log_law(points: Sequence[Forced]) -> tuple[float, float]:
    r"""Least squares of accuracy = a + b log(tokens).

    Args:
      points: accuracy at each mean number of thinking tokens, above 0.

    Returns:
      (a, b): b is the accuracy that e times as many tokens buy; log 2 times it, that of
      a doubling.

    Raises:
      ValueError: fewer than two lengths, or one that is not above 0.

    References:
      Claude's extended thinking, 2025.
      https://www.anthropic.com/news/visible-extended-thinking

    Example:
      >>> a, b = log_law([Forced(100, 0.2), Forced(1000, 0.4)])
      >>> round(a, 3), round(float(b * np.log(10)), 3)
      (-0.2, 0.2)
    """
    lengths = np.array([point.tokens for point in points])
    if len(set(lengths.tolist())) < 2 or (lengths <= 0).any():
        raise ValueError(
            "log_law: needs two different lengths or more, all above 0, got "
            f"{lengths.tolist()}"
        )
    accuracies = np.array([point.accuracy for point in points])
    b, a = np.polyfit(np.log(lengths), accuracies, 1)
    return float(a), float(b)


def thinking_tokens(problems: Sequence[ProblemCounts]) -> Int[np.ndarray, " N"]:
    """Of all completions.

    Raises:
      ValueError: the counts do not have them.
    """
    found = [tokens for problem in problems for tokens in problem.thinking]
    if not found or any(len(problem.thinking) != problem.n for problem in problems):
        raise ValueError(
            "the counts have no thinking tokens: sample them with launch.evaluate and "
            "--thinking_budget or --least_thinking"
        )
    return np.array(found)


def scaling_of(evaluations: Sequence[Sequence[ProblemCounts]]) -> dict[str, Any]:
    """The measures of several evaluations of one model.

    Returns:
      points: (thinking tokens, pass@1) of each; scaling, where there are two or more;
      rise of pass@1 with tokens, where there are three; performance; tokens: of all
      completions, for `control`.

    Raises:
      ValueError: counts without thinking tokens, or equal lengths.
    """
    tokens = [thinking_tokens(problems) for problems in evaluations]
    points = [
        Forced(float(mine.mean()), float(np.mean([p.rate for p in problems])))
        for mine, problems in zip(tokens, evaluations, strict=True)
    ]
    found = {
        "points": [tuple(point) for point in points],
        "performance": performance(points),
        "tokens": np.concatenate(tokens),
    }
    if len(points) > 1:
        found["scaling"] = scaling(points)
    if len(points) > 2:
        found["rise"] = rise(np.array([point.accuracy for point in sorted(points)]))
    return found
