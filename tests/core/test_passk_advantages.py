"""pass@k advantages against enumeration of sets and of samples."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.core.advantages import group_advantages
from rlvr_jax.core.passk_advantages import passk_advantages
from tests.core.variants import VARIANTS, run

GROUP_ID = np.array([2, 0, 2, 2, 0, 2, 0, 0, 2, 5, 0], np.int32)
KEPT = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1], bool)


def loop(correct, k, baseline, scale):
    """Means over every set of k completions of the group, as the docstring has it."""
    found = np.zeros(len(correct))
    for i in np.flatnonzero(KEPT):
        group = [j for j in np.flatnonzero(KEPT) if GROUP_ID[j] == GROUP_ID[i]]
        others = [j for j in group if j != i]
        if len(group) < k + (baseline == "leave_one_out"):
            continue

        def paid(rows):
            return float(any(correct[j] for j in rows))

        sets = [paid(s) for s in itertools.combinations(group, k)]
        with_me = [paid((i, *s)) for s in itertools.combinations(others, k - 1)]
        base = sets
        if baseline == "leave_one_out":
            base = [paid(s) for s in itertools.combinations(others, k)]
        found[i] = np.mean(with_me) - np.mean(base)
        if scale == "group":
            spread = np.std(sets)
            found[i] = found[i] / spread if spread > 0 else 0.0
    return found


OPTIONS = list(
    itertools.product([1, 2, 3, 5], ["mean", "leave_one_out"], ["group", "none"])
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_enumeration_of_sets(variant):
    batch = np.random.default_rng(0).uniform(size=(6, 11)) < 0.4
    batch[0] = False
    batch[1] = True

    def ours(correct):
        """All options, one row each."""
        found = [
            passk_advantages(
                correct,
                jnp.asarray(GROUP_ID),
                k=k,
                baseline=baseline,
                scale=scale,
                row_mask=jnp.asarray(KEPT),
            )
            for k, baseline, scale in OPTIONS
        ]
        return jnp.stack(found)

    found = run(variant, ours, batch)
    for n, correct in enumerate(batch):
        for row, options in zip(found[n], OPTIONS, strict=True):
            expected = loop(correct, *options)
            np.testing.assert_allclose(row, expected, atol=1e-12, err_msg=f"{options}")


def test_k_of_one_is_grpo_and_rloo():
    correct, group_id = jnp.array([1, 0, 0, 1, 0], bool), jnp.zeros(5, int)
    np.testing.assert_allclose(
        passk_advantages(correct, group_id, k=1),
        group_advantages(correct, group_id, epsilon=0.0),
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        passk_advantages(
            correct, group_id, k=1, baseline="leave_one_out", scale="none"
        ),
        group_advantages(correct, group_id, baseline="leave_one_out", scale="none"),
        rtol=1e-5,
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_expected_update_is_the_gradient_of_pass_at_k(k):
    """By enumeration of every group of 4: (1/k) d/dtheta [1 - (1 - p)^k].

    With p = sigmoid(theta): dp/dtheta = p (1 - p), so the gradient is (1 - p)^(k-1)
    p (1 - p).
    """
    p, size, total = 0.3, 4, 0.0
    outcomes = np.array(list(itertools.product([False, True], repeat=size)))
    chances = np.prod(np.where(outcomes, p, 1 - p), axis=1)
    advantages = run(
        "vmap",
        lambda c: passk_advantages(
            c, jnp.zeros(size, int), k=k, baseline="leave_one_out", scale="none"
        ),
        outcomes,
    )
    scores = np.where(outcomes, 1 - p, -p)
    total = chances @ (advantages * scores).mean(1)
    np.testing.assert_allclose(total, (1 - p) ** (k - 1) * p * (1 - p), rtol=1e-10)


def test_credit_moves_to_rarely_solved_prompts():
    """Of 8: at k = 4, 5 right leave fewer than 4 wrong, so no set fails: all 0."""
    few, many = jnp.arange(8) < 1, jnp.arange(8) < 5
    group_id = jnp.zeros(8, int)
    assert float(jnp.abs(passk_advantages(few, group_id, k=4)).sum()) > 1
    np.testing.assert_array_equal(passk_advantages(many, group_id, k=4), 0)


@pytest.mark.parametrize("right", [0, 3])
def test_unanimous_groups_give_exactly_zero(right):
    correct = jnp.arange(3) < right
    for baseline, scale in itertools.product(
        ("mean", "leave_one_out"), ("group", "none")
    ):
        found = passk_advantages(
            correct, jnp.zeros(3, int), k=2, baseline=baseline, scale=scale
        )
        np.testing.assert_array_equal(found, 0)


def test_errors():
    unchecked = getattr(passk_advantages, "__wrapped__", passk_advantages)
    correct, group_id = jnp.ones(2, bool), jnp.zeros(2, int)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        unchecked(correct, group_id, k=0)
    with pytest.raises(ValueError, match="got 'median' and 'group'"):
        unchecked(correct, group_id, k=1, baseline="median")


def test_is_jittable_with_a_static_k():
    jitted = jax.jit(passk_advantages, static_argnames=("k", "baseline", "scale"))
    found = jitted(jnp.array([True, False]), jnp.zeros(2, int), k=1)
    np.testing.assert_allclose(found, [1, -1], rtol=1e-6)
