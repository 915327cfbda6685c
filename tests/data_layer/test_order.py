"""PromptOrder: what every step trains on."""

import numpy as np
import pytest

from rlvr_jax.data.order import PromptOrder

SIZES = [(n, p) for n in range(1, 10) for p in range(1, 10)]


def stream(order, steps):
    return np.concatenate([order.indices(step) for step in range(steps)])


@pytest.mark.parametrize("shuffle", [True, False])
def test_every_epoch_holds_each_problem_once(shuffle):
    for size, per_step in SIZES:
        taken = stream(PromptOrder(size, per_step, 3, shuffle), steps=40)
        for epoch in range(40 * per_step // size):
            part = taken[epoch * size : (epoch + 1) * size]
            assert sorted(part.tolist()) == list(range(size)), (size, per_step, epoch)


@pytest.mark.parametrize("shuffle", [True, False])
def test_no_step_holds_a_problem_twice(shuffle):
    for size, per_step in SIZES:
        order = PromptOrder(size, per_step, 5, shuffle)
        for step in range(40 if size >= per_step else 0):
            assert len(set(order.indices(step).tolist())) == per_step, (size, per_step)


def test_steps_are_a_pure_function_of_seed_and_step():
    order = PromptOrder(100, 7, seed=1)
    backwards = [order.indices(step) for step in reversed(range(40))]
    again = PromptOrder(100, 7, seed=1)
    for step, indices in zip(reversed(range(40)), backwards, strict=True):
        np.testing.assert_array_equal(again.indices(step), indices)


def test_a_late_step_needs_no_earlier_ones():
    # 5 million epochs in: fails by time or recursion if steps are walked through.
    order = PromptOrder(3, 2, seed=0)
    assert len(set(order.indices(7_500_000).tolist())) == 2


def test_seeds_and_epochs_differ():
    epochs = [PromptOrder(50, 50, seed=s).indices(e) for s in (0, 1) for e in (0, 1)]
    assert len({tuple(epoch.tolist()) for epoch in epochs}) == 4


def test_without_shuffle_the_order_is_the_files():
    order = PromptOrder(5, 2, seed=9, shuffle=False)
    assert stream(order, 5).tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]


def test_the_permutation_never_changes():
    # Recorded from this code: another order would break the resume of running jobs.
    assert PromptOrder(8, 8, seed=0).indices(0).tolist() == [1, 4, 5, 6, 2, 0, 3, 7]


def test_positions_are_uniform():
    # Problem 0 is equally often at each of 5 places: over 2000 seeds each place has
    # 400 expected, standard deviation sqrt(2000 * .2 * .8) = 17.9; 5 sigma is 90.
    places = [
        PromptOrder(5, 5, seed).indices(0).tolist().index(0) for seed in range(2000)
    ]
    assert np.abs(np.bincount(places, minlength=5) - 400).max() < 90


@pytest.mark.parametrize(
    ("size", "per_step", "seed"), [(0, 1, 0), (1, 0, 0), (1, 1, -1)]
)
def test_impossible_settings_are_refused(size, per_step, seed):
    with pytest.raises(ValueError, match=r"batch\.prompts_per_step of at least 1"):
        PromptOrder(size, per_step, seed)


def test_a_negative_step_is_refused():
    with pytest.raises(ValueError, match="counted from 0, got -1"):
        PromptOrder(4, 2, 0).indices(-1)
