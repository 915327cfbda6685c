"""Random rewards: no drift without a clip, sharpening with one."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.core.losses import clipped_loss
from rlvr_jax.toys.random_rewards import Recipe, train

START = np.array([0.9, 0.09, 0.01])
NEVER = dict(epsilon_low=1.0, epsilon_high=1e9)


def runs(**settings):
    keys = jax.random.split(jax.random.key(0), 20_000)
    return np.asarray(train(keys, jnp.array(START), Recipe(**settings)))


def drift(**settings):
    """Change of the likely token's logit above the others, in standard errors."""
    logits = runs(**settings)
    change = logits - np.log(START)
    change = change[:, 0] - change.mean(1)
    return change.mean() / (change.std() / math.sqrt(len(change)))


def entropy_change(**settings):
    logprobs = np.asarray(jax.nn.log_softmax(runs(**settings)))
    entropy = -(np.exp(logprobs) * logprobs).sum(1)
    return (entropy + START @ np.log(START)).mean()


def test_the_likely_token_goes_up_under_a_clip_and_only_then():
    """ENT-22, SPU-16: .9 can reach a ratio of 1/.9 = 1.11 < 1.2, never the bound.

    Sixteen minibatches with the bounds .2/.2 sharpen; without bounds, or with one
    minibatch (ratio 1), the mean stays. 20,000 seeds, in standard errors.
    """
    assert drift() > 20
    assert abs(drift(**NEVER)) < 4
    assert abs(drift(minibatches=1)) < 4
    assert entropy_change() < -0.005


def test_lower_and_upper_bound_move_entropy_in_opposite_ways():
    """ENT-22: the lower bound alone raises entropy, the upper alone lowers it more.

    As arXiv 2509.26114 derives; with both at .2 the upper one wins.
    """
    lower = entropy_change(epsilon_low=0.2, epsilon_high=1e9)
    upper = entropy_change(epsilon_low=1.0, epsilon_high=0.2)
    assert lower > 0.02
    assert upper < -0.03
    assert abs(upper) > lower


def gain(start, **settings):
    """Change of the right answer's chance (token 0), and its standard error."""
    keys = jax.random.split(jax.random.key(1), 20_000)
    logits = train(keys, jnp.array(start), Recipe(**settings))
    change = np.asarray(jax.nn.softmax(logits))[:, 0] - start[0]
    return change.mean(), change.std() / math.sqrt(len(change))


def test_random_rewards_raise_a_contaminated_benchmark_and_no_clean_one():
    """REC-20, SPU-08, SPU-09: Olmo 3's check.

    On a benchmark seen before, the right answer has a chance of .85; on a clean one it
    is one of ten equal guesses, and by symmetry its expected gain is 0. Random rewards
    gain on the first alone, and not even there without the clip.
    """
    seen, clean = np.array([0.85, *[0.15 / 9] * 9]), np.full(10, 0.1)
    mean, error = gain(seen)
    assert mean > 5 * error
    mean, error = gain(clean)
    assert abs(mean) < 3 * error
    mean, error = gain(seen, **NEVER)
    assert mean < 0 + 3 * error


def test_expected_gradient_of_the_clipped_loss_over_the_coin():
    """ENT-22: E_A[dJ/dr] = +mu below 1 - eps, 0 inside, -mu above; mu = E|A| / 2.

    Spurious Rewards, appendix B (arXiv 2506.10947): with A = +-1, mu = 1/2. Ratios are
    bounded by 1 / p, so tokens above 1 / 1.2 = .8333 never reach the last zone.
    """
    ratio = jnp.array([[0.5, 0.79, 0.81, 1.0, 1.19, 1.21, 3.0]])

    def objective(ratio):
        both = [
            -clipped_loss(
                jnp.log(ratio), jnp.array([sign]), epsilon_low=0.2, epsilon_high=0.2
            )
            for sign in (1.0, -1.0)
        ]
        return (sum(both) / 2).sum()

    expected = [[0.5, 0.5, 0, 0, 0, -0.5, -0.5]]
    np.testing.assert_allclose(jax.grad(objective)(ratio), expected, atol=1e-6)
