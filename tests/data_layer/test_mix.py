"""Mixes of domains in given shares."""

import numpy as np
import pytest

from rlvr_jax.data.mix import MixedOrder, parse_mix

DOMAINS = [np.arange(20), np.arange(20, 26), np.arange(26, 59)]
DOMAIN_OF = np.repeat([0, 1, 2], [20, 6, 33])


def counts(indices):
    return np.bincount(DOMAIN_OF[indices], minlength=3)


@pytest.mark.parametrize("weights", [(3, 1, 4), (1, 1, 1), (0.7, 0.2, 0.1), (5, 2, 3)])
def test_each_domain_has_its_share_of_every_beginning(weights):
    """DATA-14: counted against the shares themselves."""
    order = MixedOrder(DOMAINS, weights, prompts_per_step=7, seed=3)
    taken = order.take(0, 500)
    shares = np.array(weights) / sum(weights)
    for length in range(1, 501):
        # Two floors, one within the places that the other leaves.
        assert np.abs(counts(taken[:length]) - length * shares).max() < 2


def test_whole_shares_of_a_step_are_exact_and_repeat_no_problem():
    order = MixedOrder(DOMAINS, (4, 2, 2), prompts_per_step=8, seed=1)
    for step in range(200):
        indices = order.indices(step)
        np.testing.assert_array_equal(counts(indices), [4, 2, 2])
        assert len(set(indices.tolist())) == 8


def test_the_problems_of_a_domain_come_in_epochs():
    order = MixedOrder(DOMAINS, (1, 2, 1), prompts_per_step=5, seed=2)
    taken = order.take(0, 1000)
    small = taken[DOMAIN_OF[taken] == 1]
    for epoch in range(len(small) // 6):
        part = small[epoch * 6 : epoch * 6 + 6]
        assert sorted(part.tolist()) == list(range(20, 26))


def test_any_stretch_is_the_same_wherever_one_starts():
    """DATA-14: a function of (seed, step), also millions of steps in."""
    order = MixedOrder(DOMAINS, (0.5, 0.3, 0.2), prompts_per_step=6, seed=4)
    whole = order.take(0, 120)
    np.testing.assert_array_equal(order.indices(7), whole[42:48])
    np.testing.assert_array_equal(order.take(33, 50), whole[33:83])
    late = order.indices(10**9)
    np.testing.assert_array_equal(
        MixedOrder(DOMAINS, (0.5, 0.3, 0.2), 6, 4).indices(10**9), late
    )
    other = MixedOrder(DOMAINS, (0.5, 0.3, 0.2), prompts_per_step=6, seed=5)
    assert other.take(0, 120).tolist() != whole.tolist()


def test_a_mix_is_read_from_json():
    assert parse_mix('{"a": 3, "b": 0.5}', ["a", "b"], "data.mix") == {"a": 3, "b": 0.5}
    assert parse_mix("{}", ["a"], "data.mix") == {}


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ("{", "data.mix is not JSON"),
        ('["a"]', "needs a weight above 0 for each domain"),
        ('{"a": 0}', "needs a weight above 0"),
        ('{"a": NaN}', "needs a weight above 0"),
        ('{"a": true}', "needs a weight above 0"),
        ('{"gms8k": 1}', "unknown domain 'gms8k'; did you mean 'gsm8k'?"),
    ],
)
def test_a_bad_mix_is_explained(mix, message):
    with pytest.raises(ValueError, match=r"data\.mix") as caught:
        parse_mix(mix, ["a", "gsm8k"], "data.mix")
    assert message in str(caught.value)
