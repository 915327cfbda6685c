"""A toy whose problems share strategies: what lifts most of them starves a few.

pi over strategies is one for all problems; strategy s solves problem x with chance
M[x, s]. A step of exact policy gradient in the natural metric tilts pi by the mean
success: pi(s) ~ pi(s) exp(step * mean_x M[x, s]).
"""

import numpy as np

from rlvr_jax.analysis.counts import ProblemCounts

PROBLEMS, STRATEGIES = 200, 8


def success(seed: int) -> np.ndarray:
    """Strategy 0 solves four of five problems half of the time; each other one alone
    solves some of the rest; a tenth of the problems nobody solves."""
    rng = np.random.default_rng(seed)
    solved = np.zeros((PROBLEMS, STRATEGIES))
    common = PROBLEMS * 7 // 10
    solved[:common, 0] = rng.uniform(0.4, 0.9, common)
    for problem in range(common, PROBLEMS * 9 // 10):
        solved[problem, rng.integers(1, STRATEGIES)] = rng.uniform(0.4, 0.9)
    return solved


def base_policy() -> np.ndarray:
    """Strategy 0 is the most likely one, and no other is rare."""
    return np.array([0.3] + [0.1] * (STRATEGIES - 1))


def trained(solved: np.ndarray, step: float, steps: int) -> np.ndarray:
    """The policy after `steps` tilts."""
    policy = base_policy()
    for _ in range(steps):
        policy = policy * np.exp(step * solved.mean(axis=0))
        policy = policy / policy.sum()
    return policy


def counts(solved, policy, n: int, seed: int, domain: str = "") -> list[ProblemCounts]:
    """n completions of every problem by this policy."""
    rng = np.random.default_rng(seed)
    correct = rng.binomial(n, solved @ policy)
    return [ProblemCounts(str(i), n, int(c), domain) for i, c in enumerate(correct)]
