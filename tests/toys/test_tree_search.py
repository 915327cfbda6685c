"""Tree search beside sampling on trees whose size is known."""

import numpy as np
import pytest

from rlvr_jax.toys.tree_search import (
    Tree,
    endings,
    leaf_digits,
    sampled,
    searched,
    values,
)

TRIES = 100


def share(tree, found, problems=100):
    """Of problems whose right sequence was found."""
    draw = lambda seed: np.random.default_rng(1000 + seed)
    rights = [
        tuple(draw(seed).integers(tree.vocabulary, size=tree.depth).tolist())
        for seed in range(problems)
    ]
    return np.mean([found(tree, right, seed) for seed, right in enumerate(rights)])


def by_sampling(tree, right, seed):
    return sampled(tree, right, TRIES, seed)


def by_value(noise):
    def found(tree, right, seed):
        return searched(tree, right, values(tree, right, noise), TRIES, seed)

    return found


def by_endings(tree, right, seed):
    return searched(tree, right, endings(tree, right), TRIES, seed)


@pytest.mark.parametrize("vocabulary", [2, 3, 10])
def test_nodes_are_a_geometric_sum(vocabulary):
    """TT-27, REC-09: V^T leaves, (V^(T+1) - 1) / (V - 1) nodes."""
    tree = Tree(vocabulary, 7)
    assert tree.leaves == vocabulary**7
    assert tree.nodes == (vocabulary**8 - 1) // (vocabulary - 1)


def test_tokens_branch_more_than_moves():
    """REC-09: 500 tokens of Qwen2.5's vocabulary, in digits, as Python counts them;
    whole games of Go, of 250 moves for 150 turns, have 360."""
    assert leaf_digits(152_064, 500) == len(str(152_064**500)) == 2592
    assert leaf_digits(250, 150) == len(str(250**150)) == 360


def test_an_exact_value_finds_the_way_down():
    """TT-27: in 100 evaluations, always, among 4,096 leaves; sampling finds few."""
    assert share(Tree(4, 6), by_value(0.0)) == 1
    assert share(Tree(4, 6), by_sampling) < 0.1


def test_a_value_model_must_be_good():
    """TT-27: with noise of a tenth of the range nearly all are found, of .8 few."""
    found = [share(Tree(4, 6), by_value(noise)) for noise in (0.1, 0.2, 0.4, 0.8)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.95
    assert found[-1] < 0.2


def test_verdicts_alone_are_no_guide():
    """TT-27, REC-09: of 256 leaves 100 random sequences find 1 - (255/256)^100 = .324,
    and search by verdicts on random endings not more; a standard error is .027."""
    tree, problems = Tree(2, 8), 300
    assert abs(share(tree, by_sampling, problems) - 0.324) < 0.081
    assert share(tree, by_endings, problems) < 0.324 + 0.081
