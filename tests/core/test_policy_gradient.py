"""What advantages do to the expected update: exact sums over enumerable policies.

A policy over a few answers is a softmax of its logits; the expectation over groups is
the sum over all G-tuples of answers, so every statement here is exact.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import centred_rewards, group_advantages
from rlvr_jax.core.kl import kl_estimate
from rlvr_jax.core.losses import reinforce_loss
from tests.core.variants import run

LOGITS = np.array([0.3, -0.8, 0.5])
REWARDS = np.array([1.0, 0.0, 0.4])
jit_group_advantages = jax.jit(
    group_advantages, static_argnames=("baseline", "scale", "epsilon")
)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def scores(probs):
    """grad log pi of each answer with respect to the logits, one row per answer."""
    return np.eye(len(probs)) - probs


def exact_gradient(probs, rewards):
    """grad E[r] = sum_o pi(o) r(o) grad log pi(o)."""
    return (probs * rewards) @ scores(probs)


def expected_update(probs, rewards, size, **options):
    """E over all groups of `size` answers of (1/G) sum_i A_i grad log pi(o_i)."""
    groups = np.array(list(itertools.product(range(len(probs)), repeat=size)))
    chances = np.prod(probs[groups], axis=1)
    advantages = run(
        "vmap",
        lambda r: jit_group_advantages(r, jnp.zeros(size, jnp.int32), **options),
        rewards[groups],
    )
    updates = np.einsum("ng,ngd->nd", advantages, scores(probs)[groups]) / size
    return chances @ updates


def angle(a, b):
    return math.acos(min(1.0, a @ b / np.linalg.norm(a) / np.linalg.norm(b)))


def test_estimator_with_any_baseline_is_the_gradient():
    """PG-01, PG-02: E[(r - b) grad log pi] = grad E[r], for any constant b."""
    probs = softmax(LOGITS)
    expected = exact_gradient(probs, REWARDS)
    autodiff = jax.grad(lambda x: jax.nn.softmax(x) @ jnp.asarray(REWARDS))(
        jnp.asarray(LOGITS)
    )
    np.testing.assert_allclose(expected, autodiff, atol=1e-6)
    for baseline in (0.0, 0.7, -30.0):
        found = exact_gradient(probs, REWARDS - baseline)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_baseline_that_reads_the_answer_is_biased():
    """PG-02: with b(o) = r(o) nothing is left of the gradient."""
    probs = softmax(LOGITS)
    reads_answer = exact_gradient(probs, REWARDS - REWARDS)
    assert np.linalg.norm(reads_answer - exact_gradient(probs, REWARDS)) > 0.05


def test_without_a_baseline_all_right_still_moves():
    """PG-03: rewards +1 for all: the sampled step is not 0; with a baseline it is."""
    probs = softmax(LOGITS)
    sample = np.array([0, 0, 2, 1])
    step = scores(probs)[sample].mean(0)
    assert np.linalg.norm(step) > 0.1
    found = jit_group_advantages(jnp.ones(4), jnp.zeros(4, int), scale="none")
    np.testing.assert_array_equal(found, 0)


def test_the_baseline_lowers_the_variance():
    """PG-03: trace-variance of r g against (r - E r) g, with rewards 10 to 11."""
    probs, rewards = softmax(LOGITS), REWARDS + 10

    def variance(advantages):
        samples = advantages[:, None] * scores(probs)
        return probs @ (samples**2).sum(1) - ((probs @ samples) ** 2).sum()

    assert variance(rewards) > 100 * variance(rewards - probs @ rewards)


@pytest.mark.parametrize("size", [2, 8])
def test_the_group_mean_estimates_the_value_of_the_prompt(size):
    """PG-05: over all groups of 0/1 rewards, E[mean] = p and Var = p (1 - p) / G."""
    p = 0.3
    groups = np.array(list(itertools.product([0.0, 1.0], repeat=size)))
    chances = np.prod(np.where(groups, p, 1 - p), axis=1)
    zeros = jnp.zeros(size, jnp.int32)
    centred = run("vmap", lambda r: centred_rewards(r, zeros), groups)
    means = (groups - centred)[:, 0]
    np.testing.assert_allclose(chances @ means, p, atol=1e-12)
    np.testing.assert_allclose(
        chances @ (means - p) ** 2, p * (1 - p) / size, atol=1e-12
    )


@pytest.mark.parametrize("size", [2, 3, 5])
def test_rloo_is_unbiased_and_the_mean_short_by_its_own_share(size):
    """PG-09, PG-10, PG-11: RLOO gives grad E[r], the group mean (G-1)/G of it."""
    probs = softmax(LOGITS)
    exact = exact_gradient(probs, REWARDS)
    options = dict(scale="none")
    rloo = expected_update(probs, REWARDS, size, baseline="leave_one_out", **options)
    mean = expected_update(probs, REWARDS, size, **options)
    np.testing.assert_allclose(rloo, exact, atol=1e-12)
    np.testing.assert_allclose(mean, (size - 1) / size * exact, atol=1e-12)


@pytest.mark.parametrize(("size", "factor"), [(8, 0.875), (64, 0.984375)])
def test_centring_is_rloo_times_its_own_share(size, factor):
    """PG-09, PG-11: r_i - mean = (G-1)/G (r_i - mean of the others), to 1e-12."""
    rewards = np.random.default_rng(size).normal(size=(1, size))
    zeros = jnp.zeros(size, jnp.int32)
    both = run(
        "jit",
        lambda r: jnp.stack(
            [
                centred_rewards(r, zeros),
                centred_rewards(r, zeros, baseline="leave_one_out"),
            ]
        ),
        rewards,
    )[0]
    np.testing.assert_allclose(both[0], factor * both[1], atol=1e-12)


def two_prompts(**options):
    """Expected update of a hard (p = .15) and an even (p = .5) prompt, groups of 8.

    Returns (expected update, gradient of the summed pass rate), over both prompts' own
    two logits.
    """
    right = np.array([1.0, 0.0])
    policies = [np.array([p, 1 - p]) for p in (0.15, 0.5)]
    updates = [expected_update(probs, right, 8, **options) for probs in policies]
    exact = [exact_gradient(probs, right) for probs in policies]
    return np.concatenate(updates), np.concatenate(exact)


def test_dividing_by_the_std_turns_the_gradient():
    """PG-12: E[GRPO update] is not parallel to the gradient of the summed pass rate.

    It weighs the hard prompt 19% more, an angle of 4.2 degrees here.
    """
    update, exact = two_prompts(scale="group")
    assert angle(update, exact) > 0.05
    assert update[0] / exact[0] > 1.15 * update[2] / exact[2]


def test_mean_only_follows_the_gradient_of_the_summed_pass_rate():
    """PG-12, PG-20: without the std the direction is exact."""
    assert angle(*two_prompts(scale="none")) < 1e-7


@pytest.mark.parametrize(("p", "expected"), [(0.1, 3.3333), (0.5, 2.0), (0.9, 3.3333)])
def test_grpo_ascends_twice_arcsin_sqrt_p(p, expected):
    """PG-13: E[update] / grad p -> 1 / sqrt(p (1 - p)) = (2 arcsin sqrt p)'.

    Exact expectation over k ~ Bin(G, p) correct answers at G = 1024; what is left is of
    order 1/G. With p = sigmoid(theta), grad log pi is 1 - p or -p and grad p = p (1-p).
    """
    size = 1024
    counts = np.arange(size + 1)
    log_chance = (
        [
            math.lgamma(size + 1) - math.lgamma(k + 1) - math.lgamma(size - k + 1)
            for k in counts
        ]
        + counts * math.log(p)
        + (size - counts) * math.log(1 - p)
    )
    chances = np.exp(log_chance)
    likely = chances > 1e-12
    rewards = np.arange(size) < counts[likely, None]
    zeros = jnp.zeros(size, jnp.int32)
    advantages = run("vmap", lambda r: jit_group_advantages(r, zeros), rewards)
    updates = (advantages * np.where(rewards, 1 - p, -p)).mean(1)
    found = chances[likely] @ updates / (p * (1 - p))
    np.testing.assert_allclose(found, expected, rtol=0.01)
    slope = jax.grad(lambda x: 2 * jnp.arcsin(jnp.sqrt(x)))(p)
    np.testing.assert_allclose(slope, expected, rtol=1e-4)


@pytest.mark.parametrize("right", range(1, 8))
def test_binary_closed_forms(right):
    """PG-14: A+ = sqrt((1-p)/p), A- = -sqrt(p/(1-p)), p = k/8, and their identities."""
    p = right / 8
    rewards = np.arange(8) < right
    zeros = jnp.zeros(8, jnp.int32)
    found = run(
        "jit", lambda r: jit_group_advantages(r, zeros, epsilon=0.0), rewards[None]
    )
    up, down = found[0, 0], found[0, -1]
    np.testing.assert_allclose(up, math.sqrt((1 - p) / p), rtol=1e-6)
    np.testing.assert_allclose(down, -math.sqrt(p / (1 - p)), rtol=1e-6)
    np.testing.assert_allclose(p * up + (1 - p) * down, 0, atol=1e-6)
    np.testing.assert_allclose(p * up**2 + (1 - p) * down**2, 1, rtol=1e-6)
    np.testing.assert_allclose(up * down, -1, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "sums"),
    [
        (dict(scale="group", epsilon=0.0), (5.2915, 6.9282, 7.7460, 8.0)),
        (dict(scale="none"), (1.75, 3.0, 3.75, 4.0)),
        (
            dict(scale="none", baseline="leave_one_out"),
            (2.0, 3.4286, 4.2857, 4.5714),
        ),
    ],
)
def test_signal_per_prompt_by_difficulty(options, sums):
    """PG-15, PG-16: sum |A| over a group of 8 with k = 1..4 right; 5..7 mirror it.

    2 G p (1 - p) for the mean, times 1/sqrt(p (1-p)) for GRPO, 8/7 for RLOO.
    """
    zeros = jnp.zeros(8, jnp.int32)
    rewards = (np.arange(8) < np.arange(9)[:, None]).astype(float)
    found = np.abs(
        run("vmap", lambda r: jit_group_advantages(r, zeros, **options), rewards)
    ).sum(1)
    np.testing.assert_allclose(found[1:5], sums, atol=5e-5)
    np.testing.assert_allclose(found, found[::-1], atol=1e-6)
    assert found[0] == found[8] == 0


def test_difficulty_bias_of_the_std():
    """PG-15, PG-17: GRPO over mean-only is 2.0 at 4/8, 3.0237 at 1/8; ratio 1.512."""
    zeros = jnp.zeros(8, jnp.int32)
    rewards = (np.arange(8) < np.array([[4], [1]])).astype(float)

    def factor(r):
        scaled = jit_group_advantages(r, zeros, epsilon=0.0)
        return scaled / jit_group_advantages(r, zeros, scale="none")

    found = run("vmap", factor, rewards)
    np.testing.assert_allclose(found[0], 2.0, rtol=1e-6)
    np.testing.assert_allclose(found[1], 3.0237, rtol=1e-4)
    np.testing.assert_allclose(found[1, 0] / found[0, 0], 1.512, atol=5e-4)


@pytest.mark.parametrize(("p", "wasted"), [(0.9, 0.4305), (0.5, 0.0078)])
def test_share_of_groups_without_signal(p, wasted):
    """PG-19: p^8 + (1-p)^8 of all groups of 8 get 0 everywhere."""
    groups = np.array(list(itertools.product([0.0, 1.0], repeat=8)))
    chances = np.prod(np.where(groups, p, 1 - p), axis=1)
    zeros = jnp.zeros(8, jnp.int32)
    advantages = run("vmap", lambda r: jit_group_advantages(r, zeros), groups)
    silent = (advantages == 0).all(1)
    np.testing.assert_allclose(chances[silent].sum(), wasted, atol=5e-5)


def test_silent_groups_have_no_gradient_but_that_of_the_kl():
    """PG-18: sixteen right answers: exactly 0 at beta 0, beta grad k3 otherwise."""
    advantages = jit_group_advantages(jnp.full(16, 0.7), jnp.zeros(16, int))
    logprobs, reference = jnp.full((16, 4), -1.5), jnp.full((16, 4), -1.0)

    def loss(x, beta):
        kl = kl_estimate(x, reference)
        return (reinforce_loss(x, advantages) + beta * kl).sum()

    np.testing.assert_array_equal(jax.grad(loss)(logprobs, 0.0), 0)
    # d/dx [e^(ref - x) - (ref - x) - 1] = 1 - e^(ref - x), here 1 - e^.5.
    expected = np.full((16, 4), 0.04 * (1 - math.exp(0.5)))
    np.testing.assert_allclose(jax.grad(loss)(logprobs, 0.04), expected, rtol=1e-5)


def test_batch_scale_pools_the_centred_rewards():
    """PG-22: 1 of 8 and 4 of 8: std sqrt((7/64 + 1/4) / 2) = .423896."""
    rewards = jnp.concatenate([jnp.arange(8) < 1, jnp.arange(8) < 4])
    prompt = jnp.repeat(jnp.arange(2), 8)
    found = jit_group_advantages(rewards, prompt, scale="batch", epsilon=0.0)
    np.testing.assert_allclose(found[0], 0.875 / 0.423896, rtol=1e-5)
    np.testing.assert_allclose(found[8], 0.5 / 0.423896, rtol=1e-5)


def test_normalising_within_minibatches():
    """PG-22: centred rewards, then the same function with the minibatch as the group.

    Minibatch 0 holds the 1-of-8 prompt (std .330719), minibatch 1 the 4-of-8 one (.5).
    """
    rewards = jnp.concatenate([jnp.arange(8) < 1, jnp.arange(8) < 4])
    prompt = jnp.repeat(jnp.arange(2), 8)
    centred = jit_group_advantages(rewards, prompt, scale="none")
    found = jit_group_advantages(centred, prompt, epsilon=0.0)
    np.testing.assert_allclose(found[0], 0.875 / 0.330719, rtol=1e-5)
    np.testing.assert_allclose(found[8], 1.0, rtol=1e-6)
    both = jit_group_advantages(centred, jnp.zeros(16, int), epsilon=0.0)
    expected = jit_group_advantages(rewards, prompt, scale="batch", epsilon=0.0)
    np.testing.assert_allclose(both, expected, atol=1e-6)


def test_leave_one_out_expects_what_the_true_value_gives():
    """PG-24: averaged over the other rewards, A_i = r_i - p for r_i = 0 and 1."""
    p, size = 0.3, 4
    others = np.array(list(itertools.product([0.0, 1.0], repeat=size - 1)))
    chances = np.prod(np.where(others, p, 1 - p), axis=1)
    zeros = jnp.zeros(size, jnp.int32)
    for reward in (0.0, 1.0):
        groups = np.concatenate([np.full((len(others), 1), reward), others], axis=1)
        found = run(
            "vmap",
            lambda r: centred_rewards(r, zeros, baseline="leave_one_out"),
            groups,
        )
        np.testing.assert_allclose(chances @ found[:, 0], reward - p, atol=1e-12)


def test_one_advantage_for_all_tokens_finds_the_useful_one_by_averaging():
    """PG-26: reward = token 0 of 20 coin flips; credit = mean_i A_i (x_it - 1/2).

    Its signal on token 0 against the noise on the others grows as sqrt(N): about 2x
    from 400 to 1600 completions (here over 40 repetitions, 25% slack for noise).
    """
    rng = np.random.default_rng(0)

    def signal_to_noise(completions):
        ratios = []
        for _ in range(40):
            tokens = rng.integers(0, 2, size=(completions, 20)).astype(float)
            advantages = tokens[:, 0] - tokens[:, 0].mean()
            credit = advantages @ (tokens - 0.5) / completions
            ratios.append((credit[0], credit[1:].std()))
        signal, noise = np.mean(ratios, axis=0)
        return signal / noise

    np.testing.assert_allclose(
        signal_to_noise(1600) / signal_to_noise(400), 2, rtol=0.25
    )


def test_a_sequence_is_one_action():
    """PG-27: grad of A log pi(sequence) is the sum of the tokens' gradients, each A."""
    logprobs, advantages = jnp.full((2, 3), -0.5), jnp.array([2.0, -1.0])
    whole = jax.grad(lambda x: -(advantages * x.sum(1)).sum())(logprobs)
    tokens = jax.grad(lambda x: reinforce_loss(x, advantages).sum())(logprobs)
    np.testing.assert_array_equal(tokens, whole)
    np.testing.assert_array_equal(tokens, [[-2.0] * 3, [1.0] * 3])


def test_the_noise_of_a_larger_group_falls_as_one_over_its_size():
    """DATA-18: a sweep over the published sizes, 8 to 64, on one prompt.

    RLOO's update is a U-statistic of h(x, y) = (r_x - r_y)(s_x - s_y) / 2, s the score,
    whose variance is Hoeffding's (1948), with z1 = Var E[h | x] and z2 = Var h:

        4 (G - 2) / (G (G - 1)) z1 + 2 / (G (G - 1)) z2   ->   4 z1 / G

    20,000 groups per size (NumPy seed 0): a variance has a relative error near 1 %.
    """
    rng = np.random.default_rng(0)
    probs = softmax(LOGITS)
    scores = np.eye(len(probs)) - probs  # grad log pi of each choice
    pairs = (REWARDS[:, None] - REWARDS)[..., None] * (scores[:, None] - scores) / 2
    mean = np.einsum("x,y,xyv->v", probs, probs, pairs)
    given = np.einsum("y,xyv->xv", probs, pairs)
    z1 = (probs @ (given - mean) ** 2).sum()
    z2 = np.einsum("x,y,xyv->", probs, probs, (pairs - mean) ** 2)
    for size in (8, 16, 32, 64):
        drawn = rng.choice(len(probs), (20_000, size), p=probs)
        rewards = jnp.asarray(REWARDS[drawn])
        groups = jnp.zeros(size, int)
        advantages = run(
            "vmap",
            lambda r, groups=groups: centred_rewards(
                r, groups, baseline="leave_one_out"
            ),
            rewards,
        )
        updates = np.einsum("ng,ngv->nv", advantages, scores[drawn]) / size
        expected = (4 * (size - 2) * z1 + 2 * z2) / (size * (size - 1))
        np.testing.assert_allclose(updates.var(axis=0).sum(), expected, rtol=0.04)
        np.testing.assert_allclose(size * expected, 4 * z1, rtol=2.5 / size)
