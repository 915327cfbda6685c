"""Why tree search over tokens did not work: the tree, and what would have to guide it.

One sequence of T tokens of V is right, and a verifier knows it. Search (UCT: go down by
mean value plus a bonus for what was tried seldom, add a node, evaluate it, tell its
ancestors) meets V^T leaves. With an exact value of every prefix it walks down to the
right one of 4,096 within a hundred evaluations; the noisier the value, the nearer it
comes to drawing sequences at random. A verdict on random endings, which are hardly ever
right, is no guide at all.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

Prefix = tuple[int, ...]
Evaluate = Callable[[Prefix, np.random.Generator], float]


@dataclasses.dataclass(frozen=True)
class Tree:
    """Sequences of `depth` tokens."""

    vocabulary: int
    depth: int

    @property
    def leaves(self) -> int:
        """V^T."""
        return self.vocabulary**self.depth

    @property
    def nodes(self) -> int:
        """The root and all prefixes: 1 + V + ... + V^T.

        Example:
          >>> Tree(2, 3).nodes
          15
        """
        return sum(self.vocabulary**length for length in range(self.depth + 1))


def leaf_digits(vocabulary: int, depth: int) -> int:
    """Decimal digits of V^T, which is too large to write down.

    Example:
      >>> leaf_digits(152_064, 1000)
      5183
    """
    return math.floor(depth * math.log10(vocabulary)) + 1


def sampled(tree: Tree, right: Prefix, tries: int, seed: int) -> bool:
    """Best of N: whether one of N random sequences is the right one."""
    drawn = np.random.default_rng(seed).integers(
        tree.vocabulary, size=(tries, tree.depth)
    )
    return bool((drawn == np.array(right)).all(axis=1).any())


def searched(
    tree: Tree,
    right: Prefix,
    evaluate: Evaluate,
    tries: int,
    seed: int,
    *,
    exploration: float = 0.5,
) -> bool:
    """UCT: whether the right sequence is among the nodes of so many evaluations.

    Args:
      tree: what is searched.
      right: the sequence that the verifier accepts.
      evaluate: of a prefix, 0..1: `endings` or `values`.
      tries: evaluations.
      seed: of what is random.
      exploration: weight of the bonus sqrt(log n / n_child).
    """
    random = np.random.default_rng(seed)
    visits: dict[Prefix, int] = {(): 1}
    totals: dict[Prefix, float] = {(): 0.0}
    for _ in range(tries):
        node: Prefix = ()
        while node in visits and len(node) < tree.depth:
            node = _child(node, tree, visits, totals, exploration, random)
        if node == right:
            return True
        value = evaluate(node, random)
        for length in range(len(node) + 1):
            above = node[:length]
            visits[above] = visits.get(above, 0) + 1
            totals[above] = totals.get(above, 0.0) + value
    return False


def _child(node, tree, visits, totals, exploration, random) -> Prefix:
    """The next token: one that was not tried, else the best by value and bonus."""
    children = [(*node, token) for token in range(tree.vocabulary)]
    new = [child for child in children if child not in visits]
    if new:
        return new[random.integers(len(new))]

    tried = math.log(visits[node])
    scores = [
        totals[child] / visits[child] + exploration * math.sqrt(tried / visits[child])
        for child in children
    ]
    return children[scores.index(max(scores))]


def endings(tree: Tree, right: Prefix) -> Evaluate:
    """The verdict on one random ending of a prefix."""

    def evaluate(prefix, random):
        ending = random.integers(tree.vocabulary, size=tree.depth - len(prefix))
        return float((*prefix, *ending.tolist()) == right)

    return evaluate


def values(tree: Tree, right: Prefix, noise: float) -> Evaluate:
    """A value model: how far a prefix is right, of T, and noise of that deviation.

    A prefix has its own error, the same each time, as a model's would be.
    """
    errors: dict[Prefix, float] = {}

    def evaluate(prefix, random):
        wrong = [a != b for a, b in zip(prefix, right, strict=False)]
        good = wrong.index(True) if True in wrong else len(prefix)
        error = errors.setdefault(prefix, noise * random.normal())
        return good / tree.depth + error

    return evaluate
