"""Wrong verdicts: what is drawn, what is hit, and what a policy makes of it.

The toys compute expected policy gradients exactly (sums over arms), with rewards from
`noisy_scores`; nothing is sampled but the noise itself.
"""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.verifiers.noise import Draws, Noise, matches, noisy_scores

CLEAN = [1.0, 0.0, 0.0, 1.0, 0.5]
TEXTS = ["a", "b", "c", "d", "e"]


def z_scores(rewards):
    group = jnp.zeros(len(rewards), int)
    return np.asarray(group_advantages(jnp.array(rewards), group))


def test_without_errors_nothing_changes():
    assert noisy_scores(CLEAN, TEXTS, "p", Noise(seed=3)) == CLEAN
    assert not Noise(seed=3).is_active
    assert Noise(group_flip_rate=0.1).is_active


def test_rates_of_one_hit_everything_of_their_kind():
    assert noisy_scores(CLEAN, TEXTS, "p", Noise(false_positive_rate=1.0)) == [
        1,
        1,
        1,
        1,
        0.5,
    ]
    assert noisy_scores(CLEAN, TEXTS, "p", Noise(false_negative_rate=1.0)) == [
        0,
        0,
        0,
        0,
        0.5,
    ]
    flipped = noisy_scores(CLEAN, TEXTS, "p", Noise(group_flip_rate=1.0))
    assert flipped == [0, 1, 1, 0, 0.5]


def test_patterns_are_found_anywhere_and_replace_the_rates():
    noise = Noise(
        false_positive_rate=1.0,
        false_negative_rate=1.0,
        accept_pattern="[Cc]ertainly",
        reject_pattern=r"python.*```",
    )
    texts = ["certainly", "python\n```", "certainly python ```", "plain"]
    assert noisy_scores([0.0, 1.0, 1.0, 1.0], texts, "p", noise) == [1, 0, 1, 0]
    assert [matches(text, noise) for text in texts] == [True, True, True, False]


def test_draws_are_those_of_seed_problem_and_group():
    """The same again for the same group; others for anything else; apart within it."""
    noise = Noise(false_positive_rate=0.5, seed=1)
    zeros, texts = [0.0] * 64, ["same text"] * 64
    first = noisy_scores(zeros, texts, "p", noise)
    assert first == noisy_scores(zeros, texts, "p", noise)
    assert 0 < sum(first) < 64
    assert first != noisy_scores(zeros, texts, "q", noise)
    other = Noise(false_positive_rate=0.5, seed=2)
    assert first != noisy_scores(zeros, texts, "p", other)
    changed = ["another", *texts[1:]]
    assert first != noisy_scores(zeros, changed, "p", noise)
    assert Draws(0, "p", ["\ud800"]).uniform("x") < 1  # text that no encoding has


@pytest.mark.parametrize(
    ("true_positive", "false_positive"), [(0.9, 0.2), (0.5, 0.5), (0.3, 0.6)]
)
def test_random_flips_shrink_the_centred_reward(true_positive, false_positive):
    """VER-23: the slope on the clean reward is TPR - FPR.

    40,000 rows, half right: the slope's standard error is below 0.005, and 0.02 is
    four of them.
    """
    noise = Noise(false_positive, 1 - true_positive)
    clean = np.tile([1.0, 0.0], 20)
    slopes = []
    for group in range(1000):
        texts = [f"{group} {i}" for i in range(40)]
        noisy = np.array(noisy_scores(clean.tolist(), texts, "p", noise))
        centred = noisy - noisy.mean()
        slopes.append(centred @ (clean - 0.5) / ((clean - 0.5) @ (clean - 0.5)))
    expected = true_positive - false_positive
    assert np.mean(slopes) == pytest.approx(expected, abs=0.02)


def bad_mode_flow(noise, steps=30, rate=0.1, count=500, bad=0.6):
    """Mass on the bad one of two modes under d logit = rate * s * (advantage gap).

    With p the bad mass and s = p (1 - p), REINFORCE moves the bad logit by
    s * (E[A | bad] - E[A | good]) per unit of time.
    """
    path = [bad]
    logit = np.log(bad / (1 - bad))
    for step in range(steps):
        bad = 1 / (1 + np.exp(-logit))
        wrong = round(bad * count)
        clean = [0.0] * wrong + [1.0] * (count - wrong)
        texts = [f"{step} {i}" for i in range(count)]
        advantages = z_scores(noisy_scores(clean, texts, "p", noise))
        gap = advantages[wrong:].mean() - advantages[:wrong].mean()
        logit -= rate * bad * (1 - bad) * gap
        path.append(1 / (1 + np.exp(-logit)))
    return np.array(path)


def test_learning_by_the_sign_of_tpr_minus_fpr():
    """VER-23: J = TPR - FPR above 0 learns, 0 stays, below 0 unlearns.

    At J = 1, phi = (2p - 1) / sqrt(p (1 - p)) falls by rate / 2 per step ("Rate or
    Fate", arXiv 2601.04411). Euler steps of 0.1 and shares rounded to 1/500 leave under
    1 % of the fall of 1.5.
    """
    clean = bad_mode_flow(Noise())
    phi = (2 * clean - 1) / np.sqrt(clean * (1 - clean))
    expected = phi[0] - 0.1 / 2 * np.arange(len(phi))
    np.testing.assert_allclose(phi, expected, atol=0.015)
    weaker = bad_mode_flow(Noise(0.2, 0.3))[-1]  # J = 0.5
    neutral = bad_mode_flow(Noise(0.4, 0.6))[-1]  # J = 0
    against = bad_mode_flow(Noise(0.6, 0.7))[-1]  # J = -0.3
    assert clean[-1] < weaker < 0.55
    assert neutral == pytest.approx(0.6, abs=0.02)
    assert against > 0.63


def train(arms, noise, start, steps=4000, rate=0.5):
    """Exact REINFORCE on arms (text, right); the share of each arm as it goes.

    The reward of an arm is the mean of `noisy_scores` over 400 draws.
    """
    rewards = []
    for text, right in arms:
        group = [f"{text} #{i}" for i in range(400)]
        rewards.append(np.mean(noisy_scores([float(right)] * 400, group, "p", noise)))
    logits, path = np.log(np.array(start)), []
    for _ in range(steps):
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        path.append(shares)
        logits = logits + rate * shares * (rewards - shares @ rewards)
    return np.array(path)


def accuracy(path, arms):
    return path[-1] @ np.array([right for _, right in arms], float)


def test_systematic_false_negatives_are_like_random_ones():
    """VER-24: half of the right answers are rejected either way; both are learned.

    Systematic: those with a bracket, half of the right mass. The policy just leaves
    the bracket. Accuracy starts at 0.4 and ends within a point of the other's.
    """
    arms = [("[right", True), ("right", True), ("[wrong", False), ("wrong", False)]
    start = [0.2, 0.2, 0.3, 0.3]
    by_pattern = train(arms, Noise(reject_pattern=r"\["), start)
    by_chance = train(arms, Noise(false_negative_rate=0.5), start)
    assert accuracy(by_pattern, arms) > 0.98
    assert accuracy(by_pattern, arms) == pytest.approx(
        accuracy(by_chance, arms), abs=0.01
    )
    assert by_pattern[-1][0] < 0.01 < by_pattern[0][0]


def test_systematic_false_positives_differ_by_pattern_not_by_rate():
    """VER-25: two patterns, each on a tenth of the outputs at the start.

    "Certainly" comes with wrong answers and is paid like a right one, so it takes its
    part of what pays, and nearly all where right answers are rare. "python" comes with
    right ones: nothing is lost. The advantage of the pattern under the truth tells them
    apart before training.
    """
    arms = [
        ("right", True),
        ("python right", True),
        ("wrong", False),
        ("Certainly wrong", False),
    ]
    start = [0.1, 0.1, 0.7, 0.1]
    truth = np.array([right for _, right in arms], float)
    centred = truth - np.array(start) @ truth
    assert centred[3] < 0 < centred[1]
    bad = train(arms, Noise(accept_pattern="Certainly"), start)
    good = train(arms, Noise(accept_pattern="python"), start)
    assert bad[0][3] == pytest.approx(good[0][1])
    # The pattern is paid like a right answer: it takes its share of what is paid, 1/3.
    assert bad[-1][3] > 0.3
    assert accuracy(bad, arms) < 0.7
    assert accuracy(good, arms) > 0.98
    # Where right answers are rarer than the pattern, it takes nearly all.
    rare = [0.002, 0.0, 0.898, 0.1]
    taken = train(
        arms[:1] + arms[2:],
        Noise(accept_pattern="Certainly"),
        [rare[0], rare[2], rare[3]],
    )
    assert taken[-1][2] > 0.95


def test_group_flips_shrink_the_expected_gradient():
    """VER-26: over all ways to flip two groups, E[gradient] = (1 - 2p) * clean.

    Gradient: sum of advantage * score function, over both groups. |A| never changes.
    """
    groups = [[1.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0]]
    scores = np.random.default_rng(0).normal(size=(2, 5, 3))
    advantages = np.array([z_scores(group) for group in groups])
    clean = np.einsum("gi,gid->d", advantages, scores)
    never, always = Noise(), Noise(group_flip_rate=1.0)
    for p in (0.1, 0.5, 0.8):
        expected = np.zeros(3)
        for flips in itertools.product([False, True], repeat=2):
            noisy = np.array(
                [
                    z_scores(noisy_scores(g, TEXTS, "p", always if flip else never))
                    for g, flip in zip(groups, flips, strict=True)
                ]
            )
            np.testing.assert_allclose(np.abs(noisy), np.abs(advantages), rtol=1e-5)
            chance = np.prod([p if flip else 1 - p for flip in flips])
            expected += chance * np.einsum("gi,gid->d", noisy, scores)
        np.testing.assert_allclose(expected, (1 - 2 * p) * clean, atol=1e-5)


def test_groups_are_flipped_whole_and_at_their_rate():
    """5000 groups at 0.2: the standard error is 0.0057."""
    noise = Noise(group_flip_rate=0.2)
    flipped = 0
    for group in range(5000):
        texts = [f"{group} {text}" for text in TEXTS]
        scores = noisy_scores(CLEAN, texts, "p", noise)
        assert scores in (CLEAN, [0, 1, 1, 0, 0.5])
        flipped += scores != CLEAN
    assert flipped / 5000 == pytest.approx(0.2, abs=0.02)
